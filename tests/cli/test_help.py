"""What the command says of itself."""

import subprocess
import sys
from collections.abc import Callable

import pytest

from pinstripe import __version__

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("command", ["doctor", "place", "bench", "embed", "load", "accuracy", "launch", "report"])
def test_help_teaches_with_an_example(command: str, pinstripe: Run) -> None:
    """Each command's help ends with a line to try."""
    finished = pinstripe(command, "--help")

    assert finished.returncode == 0
    assert f"Example: pinstripe {command}" in finished.stdout


@pytest.mark.parametrize(("words", "command"), [(("embed",), "pinstripe embed"), (("nonsense",), "pinstripe")])
def test_words_that_cannot_be_read_point_to_the_right_help(
    words: tuple[str, ...], command: str, pinstripe: Run
) -> None:
    """A missing argument of a command sends people to the help of that command."""
    finished = pinstripe(*words)

    assert finished.returncode == 2
    assert f"see `{command} --help`" in finished.stderr


def test_version(pinstripe: Run) -> None:
    """The version is the package's."""
    assert pinstripe("--version").stdout == f"pinstripe {__version__}\n"


def test_help_imports_nothing_heavy() -> None:
    """Help answers at once: no framework, no numpy, no hub client is imported for it."""
    code = "import sys, pinstripe.cli; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    heavy = {
        "numpy",
        "torch",
        "transformers",
        "onnxruntime",
        "openvino",
        "huggingface_hub",
        "tokenizers",
        "safetensors",
    }
    assert not heavy & set(modules)


def test_closed_pipe_is_no_traceback() -> None:
    """`pinstripe doctor --json | head -1` ends quietly."""
    command = f"{sys.executable} -c 'from pinstripe.cli import main; main()' doctor --json | head -c 1"
    finished = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True)

    assert finished.stdout == "{"
    assert "Traceback" not in finished.stderr

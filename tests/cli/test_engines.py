"""`pinstripe engines`."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from pinstripe.cli.engines import print_engines
from pinstripe.engines.inventory import InstalledEngine
from pinstripe.testing.bare_python import make_bare_python

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]

_FOUND = [
    InstalledEngine(
        name="openvino",
        available=True,
        version="2026.4.1",
        precisions=("float32", "bfloat16", "int8"),
        why_not=None,
        location="/home/someone/environments/serving/lib/python3.11/site-packages/openvino",
    ),
    *(
        InstalledEngine(
            name=name,
            available=False,
            version=None,
            precisions=("float32",),
            why_not="tensorflow is not installed; run `python -m pip install 'pinstripe[tensorflow]'`",
            location=None,
        )
        for name in ("tf-eager", "tf-graph")
    ),
]


def _printed(width: int, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, write_through=True) as file:
        print_engines(_FOUND, Console(file=file, width=width, markup=False))
        return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_cut(width: int) -> None:
    """Rows fit the window, with names, versions and precisions whole; where they lie stands below, on one line."""
    lines = _printed(width).splitlines()
    table = [line for line in lines if ": " not in line]

    assert all(len(line) <= width for line in table)
    assert "2026.4.1" in lines[1]
    assert "float32, bfloat16, int8" in lines[1]
    assert "…" not in "".join(table)
    assert "openvino: in /home/someone/environments/serving/lib/python3.11/site-packages" in lines


def test_the_same_reason_is_said_once_and_whole() -> None:
    """Engines that lack the same are named together, and the command can be copied: it stands on one line."""
    reasons = [line for line in _printed(80).splitlines() if "pip install" in line]

    assert reasons == [f"tf-eager, tf-graph: {_FOUND[1].why_not}"]


def test_plain_terminals() -> None:
    """Where a terminal has no signs for yes and no, the words stand there."""
    lines = _printed(80, encoding="ascii").splitlines()

    assert " yes " in lines[1]
    assert any(line.startswith("tf-eager") and " no " in line for line in lines)


def test_json(pinstripe: Run, tmp_path: Path) -> None:
    """Programs get a list of engines; those of another environment are what that has."""
    python = make_bare_python(tmp_path / "bare")
    finished = pinstripe("engines", "--json", "--python", f"onnxruntime={python}")
    engines = {one["name"]: one for one in json.loads(finished.stdout)}

    assert set(engines["onnxruntime"]) == {"name", "available", "version", "precisions", "why_not", "location"}
    assert engines["onnxruntime"]["available"] is False
    assert f"run `{python} -m pip install 'pinstripe[onnxruntime]'`" in engines["onnxruntime"]["why_not"]
    assert engines["onnxruntime"]["precisions"][0] == "float32"
    assert "fake" not in engines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--python", "no/such/python"), "--python no/such/python: there is no such interpreter"),
        (("--python", "tf-grap=/bin/true"), "did you mean tf-graph?"),
        (("--python", "/bin/true"), "is it a Python with pinstripe"),
    ],
)
def test_a_python_that_is_none(words: tuple[str, ...], message: str, pinstripe: Run) -> None:
    """It is a usage error of one line."""
    finished = pinstripe("engines", *words)

    assert finished.returncode == 2
    assert message in finished.stderr
    assert len(finished.stderr.splitlines()) == 1


def test_help_teaches_with_an_example(pinstripe: Run) -> None:
    """Help ends with a line to try."""
    assert "Example: pinstripe engines" in pinstripe("engines", "--help").stdout

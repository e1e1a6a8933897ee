"""Ending commands before they have anything to show."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# A shell that starts tests in the background has them, and so what they start, ignore Ctrl-C.
HEAR_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
MAIN = (sys.executable, "-c", HEAR_CTRL_C + "from pinstripe.cli import main; main()")
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def _ended(command: list[str], directory: Path, number: signal.Signals, *, patience_s: float) -> tuple[int, str]:
    """Start a command, send a signal as soon as it has a child, or after a time; return its exit code and errors."""
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        deadline = time.monotonic() + patience_s
        while not _children(running.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        children = _children(running.pid)
        running.send_signal(number)
        out, errors = running.communicate(timeout=30)
    assert out == ""
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    return running.returncode, errors


@pytest.mark.parametrize("number", ENDINGS)
def test_a_run_that_has_measured_nothing_says_so(tiny_model: Path, tmp_path: Path, number: signal.Signals) -> None:
    """No silence, no empty file, no process."""
    command = [*MAIN, "bench", str(tiny_model), "--engine", "fake", "--min-time", "60", "--output", "kept.jsonl"]

    assert _ended([*command, "--peak"], tmp_path, number, patience_s=60) == (
        130,
        "stopped before the first measurement had ended; nothing was measured\n",
    )
    assert not (tmp_path / "kept.jsonl").exists()


def _write_sleeping_python(directory: Path) -> str:
    """Write a program that says it has begun, and sleeps."""
    path = directory / "python"
    path.write_text(f"#!/bin/sh\ntouch {directory}/begun\nexec sleep 60\n")
    path.chmod(0o755)
    return str(path)


def _interrupted(command: list[str], directory: Path, number: signal.Signals) -> tuple[int, str]:
    """Send a signal to a command whose export has begun; return its exit code and errors."""
    environment = {**os.environ, "PINSTRIPE_CACHE": str(directory / "cache")}
    with subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True, env=environment) as running:
        deadline = time.monotonic() + 60
        while not (directory / "begun").exists():
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        children = _children(running.pid)
        assert children
        running.send_signal(number)
        began_s = time.monotonic()
        _, errors = running.communicate(timeout=30)
    assert time.monotonic() - began_s < 5
    assert not any(Path(f"/proc/{child}").exists() for child in children)
    assert not [path for path in (directory / "cache" / "exports").iterdir() if path.is_dir()]
    return running.returncode, errors


@pytest.mark.parametrize("number", ENDINGS)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("embed", "texts.txt", "-o", "v.npy"), "stopped before the first texts were written; nothing is kept\n"),
        (("accuracy",), "stopped; nothing was kept, as accuracy writes no file\n"),
        (("bench",), "stopped before the first measurement had ended; nothing was measured\n"),
    ],
    ids=["embed", "accuracy", "bench"],
)
def test_an_export_ends_as_soon(
    tiny_model: Path, tmp_path: Path, words: tuple[str, ...], message: str, number: signal.Signals
) -> None:
    """A signal to the command alone ends what it has started, too, and is not held up by that."""
    (tmp_path / "texts.txt").write_text("a text\n")
    given = [*MAIN, words[0], str(tiny_model), *words[1:], "--engine", "onnxruntime"]

    command = [*given, "--python", _write_sleeping_python(tmp_path)]
    assert _interrupted(command, tmp_path, number) == (130, message)


def test_opening_in_a_program_can_be_interrupted(tiny_model: Path, tmp_path: Path) -> None:
    """Ctrl-C while `pinstripe.open` exports is a KeyboardInterrupt there, and nothing goes on."""
    code = (
        f"{HEAR_CTRL_C}import pinstripe, sys\n"
        "from pinstripe.configuration import Configuration\n"
        "try:\n"
        "    pinstripe.open(sys.argv[1], configuration=Configuration(engine='onnxruntime', python=sys.argv[2]))\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit('interrupted')\n"
    )
    command = [sys.executable, "-c", code, str(tiny_model), _write_sleeping_python(tmp_path)]
    assert _interrupted(command, tmp_path, signal.SIGINT) == (1, "interrupted\n")


@pytest.mark.parametrize("number", ENDINGS)
def test_a_check_up_ends_as_with_ctrl_c(tmp_path: Path, number: signal.Signals) -> None:
    """It is watching the neighbours, or has begun to measure."""
    code, errors = _ended([*MAIN, "doctor", "--measure"], tmp_path, number, patience_s=3)

    assert (code, errors) == (130, "stopped; nothing was kept, as doctor writes no records\n")

"""Ending commands before they have anything to show."""

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


@pytest.mark.parametrize("number", ENDINGS)
def test_a_check_up_ends_as_with_ctrl_c(tmp_path: Path, number: signal.Signals) -> None:
    """It is watching the neighbours, or has begun to measure."""
    code, errors = _ended([*MAIN, "doctor", "--measure"], tmp_path, number, patience_s=3)

    assert (code, errors) == (130, "stopped; nothing was kept, as doctor writes no records\n")

"""The system's mode of huge pages, changed for a while and restored on every way out.

A plain file stands for the kernel's, but in the last tests, which change the real one for moments and restore it.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from pinstripe.errors import KnobError, StartError
from pinstripe.runtime import system_huge_pages
from pinstripe.runtime.system_huge_pages import SystemHugePages

WaitUntil = Callable[[Callable[[], object]], None]

REAL = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HOLD = """
import sys, time
from pathlib import Path
from pinstripe.runtime import system_huge_pages
with system_huge_pages(sys.argv[2], print, Path(sys.argv[1])):
    print("changed", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file as the kernel shows it, with the mode madvise."""
    path = tmp_path / "enabled"
    path.write_text("always [madvise] never\n")
    return path


@pytest.fixture
def said() -> list[str]:
    """What was said."""
    return []


@pytest.fixture
def hold() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that changes a file and holds it so until it is ended."""
    started: list[subprocess.Popen[str]] = []

    def _hold(path: Path, mode: str = "always") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path), mode],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "changed\n"
        return process

    yield _hold
    for process in started:
        process.kill()
        process.communicate()


def _guard_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def test_it_holds_for_the_block_only(file: Path, said: list[str]) -> None:
    """Within the mode is the one that was asked for; afterwards what was there, without a word."""
    with system_huge_pages("always", said.append, file):
        assert file.read_text() == "always"
    assert file.read_text() == "madvise"
    assert said == []


def test_an_exception_restores_it(file: Path) -> None:
    """Also one that the lock itself might have raised passes through unchanged."""
    error = BlockingIOError("mine")
    with pytest.raises(BlockingIOError, match="mine"), system_huge_pages("never", print, file):
        raise error
    assert file.read_text() == "madvise"


def test_nothing_is_written_where_nothing_changes(file: Path, said: list[str]) -> None:
    """The file stays untouched if its mode is the one that is asked for."""
    with system_huge_pages("madvise", said.append, file):
        assert file.read_text() == "always [madvise] never\n"
    assert (file.read_text(), said) == ("always [madvise] never\n", [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGQUIT])
def test_every_signal_restores_it(
    file: Path, hold: Callable[..., subprocess.Popen[str]], wait_until: WaitUntil, number: signal.Signals
) -> None:
    """Ctrl-C, the end of the terminal, a polite end and a kill: the second process sees to it."""
    process = hold(file)
    assert file.read_text() == "always"
    process.send_signal(number)
    process.communicate(timeout=30)
    wait_until(lambda: file.read_text() == "madvise")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_guard_too_changes_nothing(
    file: Path, hold: Callable[..., subprocess.Popen[str]], wait_until: WaitUntil, number: signal.Signals
) -> None:
    """A service manager ends all processes at once: the guard goes on until its parent is gone."""
    process = hold(file)
    guard = _guard_of(process.pid)
    os.kill(guard, number)
    assert file.read_text() == "always"
    process.kill()
    process.communicate()
    wait_until(lambda: file.read_text() == "madvise")
    wait_until(lambda: not Path(f"/proc/{guard}/cmdline").exists() or not Path(f"/proc/{guard}/cmdline").read_bytes())


def test_it_is_restored_without_the_guard(file: Path, said: list[str]) -> None:
    """If somebody kills the second process, this one restores the mode itself."""
    with system_huge_pages("always", said.append, file):
        os.kill(_guard_of(os.getpid()), signal.SIGKILL)
    assert (file.read_text(), said) == ("madvise", [])


def test_a_change_by_others_is_left_and_said(file: Path, said: list[str]) -> None:
    """Who changed the mode meanwhile meant it."""
    with system_huge_pages("always", said.append, file):
        file.write_text("always madvise [never]")
    assert file.read_text() == "always madvise [never]"
    assert said == [f"{file} was set to never by somebody else meanwhile, so it is left so; it was madvise before"]


def test_what_others_restored_needs_no_word(file: Path, said: list[str]) -> None:
    """If the mode is what it was before, all is well."""
    with system_huge_pages("always", said.append, file):
        file.write_text("madvise")
    assert (file.read_text(), said) == ("madvise", [])


def test_a_mode_that_cannot_be_restored_is_said(file: Path, said: list[str]) -> None:
    """The sentence gives the command that remains to be run."""
    with system_huge_pages("always", said.append, file):
        file.unlink()
    assert said == [
        f"{file} could not be set back to madvise (No such file or directory); do it by hand: echo madvise > {file}"
    ]


def test_two_runs_at_once_are_one_too_many(file: Path, hold: Callable[..., subprocess.Popen[str]]) -> None:
    """The second is refused and changes nothing; when the first is over, it is the next one's turn."""
    process = hold(file)
    with (
        pytest.raises(KnobError, match=r"another run has changed .* and will restore it; wait for its end"),
        system_huge_pages("never", print, file),
    ):
        pytest.fail("it was not refused")
    assert file.read_text() == "always"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    with system_huge_pages("never", print, file):
        assert file.read_text() == "never"
    assert file.read_text() == "madvise"


def test_a_run_that_relies_on_the_mode(file: Path) -> None:
    """Nobody may take the mode from it; another run that needs the same mode may go on beside it."""
    with system_huge_pages("madvise", print, file):
        with (
            pytest.raises(KnobError, match=r"^another run relies on the mode madvise of .*; wait for its end$"),
            system_huge_pages("always", print, file),
        ):
            pytest.fail("it was not refused")
        with system_huge_pages("madvise", print, file):
            assert file.read_text() == "always [madvise] never\n"
    with system_huge_pages("always", print, file):
        assert file.read_text() == "always"


def test_threads_are_runs_too(file: Path) -> None:
    """Two threads of one process exclude each other as well."""
    refused: list[str] = []

    def second() -> None:
        try:
            with system_huge_pages("never", print, file):
                pass
        except KnobError as error:
            refused.append(str(error))

    with system_huge_pages("always", print, file):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_bad_requests_are_one_clear_line(file: Path, tmp_path: Path) -> None:
    """A mode that does not exist, and a kernel without huge pages."""
    mode: Any = "sometimes"
    with (
        pytest.raises(KnobError, match="cannot be 'sometimes'; use always, madvise, never"),
        system_huge_pages(mode, print, file),
    ):
        pytest.fail("it was not refused")
    with (
        pytest.raises(KnobError, match="this kernel has no transparent huge pages"),
        system_huge_pages("always", print, tmp_path / "none"),
    ):
        pytest.fail("it was not refused")
    assert file.read_text() == "always [madvise] never\n"


def test_a_mode_that_the_kernel_does_not_keep_is_an_error(
    file: Path, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    """What was written is read back, and what was there is left."""
    monkeypatch.setattr(Path, "write_text", lambda *_: 0)
    with (
        pytest.raises(KnobError, match="the kernel keeps huge pages at madvise although always was written"),
        system_huge_pages("always", said.append, file),
    ):
        pytest.fail("it was not noticed")
    assert (file.read_text(), said) == ("always [madvise] never\n", [])


def test_without_a_guard_nothing_is_changed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the second process cannot start, or ends at once, the mode stays what it is."""
    for executable, words in (("/no/python", "cannot start /no/python"), ("/bin/true", "ended at once")):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(StartError, match=words), system_huge_pages("always", print, file):
            pytest.fail("it was not noticed")
        assert file.read_text() == "always [madvise] never\n"


@pytest.mark.skipif(not REAL.exists(), reason="this kernel has no transparent huge pages")
def test_without_permission_it_says_who_can() -> None:
    """A plain user is told to ask the administrator, and for what; nothing asks for a password."""
    code = (
        "import os\n"
        "from pinstripe.errors import KnobError\n"
        "from pinstripe.runtime import system_huge_pages\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "try:\n"
        "    with system_huge_pages('always', print): print('changed')\n"
        "except KnobError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == (
        f"the system's huge pages cannot be changed ({REAL}: Permission denied); run this as root, where /sys is "
        f"writable, or ask your administrator to: echo always > {REAL}\n"
    )


def _real_mode() -> str:
    return REAL.read_text().partition("[")[2].partition("]")[0]


@pytest.mark.slow
@pytest.mark.skipif(not os.access(REAL, os.W_OK), reason="needs root, and a kernel with transparent huge pages")
@pytest.mark.parametrize("mode", get_args(SystemHugePages))
def test_the_real_file(mode: SystemHugePages, said: list[str]) -> None:
    """The kernel takes each mode, and has what it had afterwards."""
    before = _real_mode()
    with system_huge_pages(mode, said.append):
        assert _real_mode() == mode
    assert (_real_mode(), said) == (before, [])


@pytest.mark.slow
@pytest.mark.skipif(not os.access(REAL, os.W_OK), reason="needs root, and a kernel with transparent huge pages")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_real_file_after_a_signal(
    hold: Callable[..., subprocess.Popen[str]], wait_until: WaitUntil, number: signal.Signals
) -> None:
    """The kernel's own file is restored after Ctrl-C, a polite end and a kill."""
    before = _real_mode()
    other = "always" if before != "always" else "madvise"
    process = hold(REAL, other)
    assert _real_mode() == other
    process.send_signal(number)
    process.communicate(timeout=30)
    wait_until(lambda: _real_mode() == before)

"""Which huge pages a started process may have."""

import errno
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pinstripe.errors import StartError
from pinstripe.runtime import Process, inherited_huge_pages, read_evidence

Launch = Callable[..., Process]

KERNEL = tuple(int(part) for part in platform.release().split(".")[:2])
TELL = "from pinstripe.runtime import inherited_huge_pages; print(inherited_huge_pages())"
SLEEP = "import time; time.sleep(60)"

# Has prctl(41, ..), which is PR_SET_THP_DISABLE, not run but return -argv[1] (seccomp, linux/filter.h, for x86-64):
# load the number; is it 157? load the first argument; is it 41? return ERRNO(argv[1]), else ALLOW.
FILTERED = """
import ctypes, struct, sys
from pinstripe.errors import StartError
from pinstripe.runtime import StartRequest, start
deny, allow = 0x00050000 | int(sys.argv[1]), 0x7FFF0000
instructions = [
    (0x20, 0, 0, 0), (0x15, 0, 3, 157), (0x20, 0, 0, 16), (0x15, 0, 1, 41), (0x06, 0, 0, deny), (0x06, 0, 0, allow)
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in instructions))
program = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
try:
    start(StartRequest(argv=("sleep", "60"), huge_pages="never"))
except StartError as error:
    print(error)
"""


def test_never_disables_them_for_the_process_and_what_it_starts(launch: Launch) -> None:
    """The kernel's status of the command says so after exec, and its own child inherits it; the parent is unchanged."""
    before = inherited_huge_pages()
    process = launch(SLEEP, huge_pages="never")
    assert "THP_enabled:\t0" in Path(f"/proc/{process.pid}/status").read_text().splitlines()
    assert read_evidence(process.pid).thp_enabled is False
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {TELL!r}], check=True)"
    child = launch(code, huge_pages="never")
    assert (child.wait(30), child.output_tail()) == (0, "never\n")
    assert inherited_huge_pages() == before


def test_without_a_wish_it_is_inherited(launch: Launch) -> None:
    """The command has what this process has."""
    process = launch(TELL)
    assert (process.wait(30), process.output_tail()) == (0, f"{inherited_huge_pages()}\n")


def test_advised_leaves_those_that_are_asked_for(launch: Launch) -> None:
    """From Linux 6.18 on the kernel takes the exception; before, the start fails and says what is needed."""
    if KERNEL < (6, 18):
        with pytest.raises(StartError, match=r"refused \(Invalid argument\); they need Linux 6.18"):
            launch(TELL, huge_pages="advised")
        return
    process = launch(TELL, huge_pages="advised")
    assert (process.wait(30), process.output_tail()) == (0, "advised\n")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter is written for x86-64")
@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.EPERM, "Operation not permitted"), (0, "the kernel reads back 0 instead of 1")],
)
def test_a_refused_wish_fails_the_start(number: int, reason: str) -> None:
    """Where the call is filtered the command does not run; nor where it succeeds without doing anything."""
    run = subprocess.run(
        [sys.executable, "-c", FILTERED, str(number)], check=True, capture_output=True, text=True, timeout=60
    )
    assert run.stdout == (
        f"cannot start 'sleep': doing without huge pages is refused ({reason}); a filter of system calls may forbid "
        "it, so choose inherit\n"
    )

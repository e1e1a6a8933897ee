"""What a process finds out about its huge pages."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pinstripe.errors import ExecutionError
from pinstripe.runtime import HugePagesObservation, Process, huge_pages_probe
from pinstripe.runtime.huge_pages_probe import Pages, observe_huge_pages

Launch = Callable[..., Process]

MODE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
TELL = """
from pinstripe.runtime.huge_pages_probe import observe_huge_pages
seen = observe_huge_pages()
print(seen.allocated, seen.advised)
"""

SMAPS = """\
7f0000000000-7f0000200000 rw-p 00000000 00:00 0
Rss:                2048 kB
AnonHugePages:      2048 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac hg
7f0000200000-7f0000400000 rw-p 00000000 00:00 0          [heap]
AnonHugePages:         0 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac
7f0000400000-7f0000600000 rw-p 00000000 00:00 0
AnonHugePages:         0 kB
THPeligible:           0
VmFlags: rd wr mr mw me ac
7f0000600000-7f0000800000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
THPeligible:           1
VmFlags: rd wr mr mw me ac
"""


@pytest.fixture
def mode() -> str:
    """The system's mode; skips the test where there is none, or where no huge page is free."""
    seen = observe_huge_pages()
    if seen is None:
        pytest.skip("this kernel has no transparent huge pages")
    if "scarce" in {seen.allocated, seen.advised}:
        pytest.skip("no huge page is free on this machine now")
    return MODE.read_text().partition("[")[2].partition("]")[0]


def _told(process: Process) -> list[str]:
    assert process.wait(30) == 0, process.output_tail()
    return process.output_tail().split()


def test_it_sees_what_the_system_gives(mode: str, launch: Launch) -> None:
    """A plain process gets what the system's mode says: nothing, advised memory, or all."""
    expected = {"never": ["small", "small"], "madvise": ["small", "huge"], "always": ["huge", "huge"]}
    assert _told(launch(TELL, environment={"LD_PRELOAD": None, "GLIBC_TUNABLES": None})) == expected[mode]


def test_it_sees_that_the_process_is_restricted(mode: str, launch: Launch) -> None:
    """A process without huge pages gets none, not even where it asks for them."""
    del mode
    assert _told(launch(TELL, huge_pages="never")) == ["small", "small"]


def test_it_sees_that_the_allocator_asks(mode: str, launch: Launch) -> None:
    """With the C library's tunable, malloc's memory comes in huge pages where the system's mode is madvise."""
    if mode != "madvise" or os.confstr("CS_GNU_LIBC_VERSION") is None:
        pytest.skip("needs the mode madvise and glibc")
    environment = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "LD_PRELOAD": None}
    assert _told(launch(TELL, environment=environment)) == ["huge", "huge"]


def test_it_leaves_the_process_as_it_was(launch: Launch) -> None:
    """No mapping stays, and the C library maps blocks as before: glibc's threshold did not move with what was freed."""
    code = """
import ctypes
from pathlib import Path
from pinstripe.runtime.huge_pages_probe import observe_huge_pages
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
observe_huge_pages()
before = Path("/proc/self/maps").read_text().count("\\n")
for _ in range(20):
    observe_huge_pages()
print(Path("/proc/self/maps").read_text().count("\\n") - before)
print(libc.malloc(ctypes.c_size_t(1 << 20)) % 4096)
"""
    added, offset = _told(launch(code, environment={"LD_PRELOAD": None, "GLIBC_TUNABLES": None}))
    assert int(added) <= 1  # Python's own memory may have grown
    if os.confstr("CS_GNU_LIBC_VERSION") is not None:
        assert offset == "16"  # a mapping of its own, after the header of a chunk


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        ([("small", "scarce"), ("small", "huge")], ("small", "huge")),
        ([("scarce", "huge"), ("scarce", "scarce")], ("scarce", "scarce")),
        ([("small", "small")], ("small", "small")),
    ],
)
def test_it_tries_a_second_time_where_no_huge_page_was_free(
    monkeypatch: pytest.MonkeyPatch, tries: list[tuple[Pages, Pages]], expected: tuple[Pages, Pages]
) -> None:
    """Fragmented memory gets one more chance, at other addresses; what is settled is not tried again."""
    if not MODE.exists():
        pytest.skip("this kernel has no transparent huge pages")
    left = iter(tries)
    monkeypatch.setattr(huge_pages_probe, "_try", lambda *_: next(left))
    assert observe_huge_pages() == HugePagesObservation(allocated=expected[0], advised=expected[1])
    assert next(left, None) is None


def test_it_reads_mappings_by_their_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each state is told from the others, and a neighbour's pages are not counted."""
    (tmp_path / "smaps").write_text(SMAPS)
    monkeypatch.setattr(huge_pages_probe, "_SMAPS", tmp_path / "smaps")
    read = huge_pages_probe._read_pages({0x7F0000000000, 0x7F0000200000, 0x7F0000400000})
    assert read == {0x7F0000000000: "huge", 0x7F0000200000: "scarce", 0x7F0000400000: "small"}


@pytest.mark.parametrize("missing", ["7f0000400000-", "AnonHugePages:         0 kB\nTHPeligible:           0\n"])
def test_a_kernel_that_does_not_tell_is_no_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    """Sandboxes imitate /proc in part; that is said instead of a verdict."""
    (tmp_path / "smaps").write_text(SMAPS.replace(missing, ""))
    monkeypatch.setattr(huge_pages_probe, "_SMAPS", tmp_path / "smaps")
    with pytest.raises(ExecutionError, match="does not list the memory that was tried"):
        huge_pages_probe._read_pages({0x7F0000400000})


def test_no_huge_pages_and_too_large_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without them there is nothing to say; those of 512 MiB, as on arm64 with pages of 64 KiB, are not tried."""
    monkeypatch.setattr(huge_pages_probe, "_PAGE_SIZE", tmp_path / "size")
    assert observe_huge_pages() is None
    (tmp_path / "size").write_text("536870912\n")
    with pytest.raises(ExecutionError, match="huge pages have 512 MiB here"):
        observe_huge_pages()


def test_no_memory_to_try_with_is_one_clear_line() -> None:
    """At the limit of address space the probe says so, and the process lives on."""
    if not MODE.exists():
        pytest.skip("this kernel has no transparent huge pages")
    code = (
        "import resource\n"
        "from pinstripe.errors import ExecutionError\n"
        "from pinstripe.runtime.huge_pages_probe import observe_huge_pages\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20),) * 2)\n"
        "try: observe_huge_pages()\n"
        "except ExecutionError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "malloc has no memory left to try huge pages with\n"

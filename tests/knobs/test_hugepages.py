"""Huge pages: offered or refused, applied to the worker alone, and proved."""

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pinstripe.engines import Artefact, EngineReport, LoadRequest, engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, Seen, Setting, combined_setting, hugepages, read_host
from pinstripe.knobs.hugepages import HugePagesKnob
from pinstripe.machine import read_machine
from pinstripe.pool import InstanceEvidence, Pool, WorkerSpec, gather_evidence
from pinstripe.runtime import (
    HugePages,
    HugePagesObservation,
    InstalledLibrary,
    MemoryPolicyEffect,
    ProcessObservation,
    read_evidence,
    system_huge_pages,
)
from pinstripe.runtime.huge_pages_probe import Pages, observe_huge_pages
from pinstripe.runtime.system_huge_pages import SystemHugePages
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import container_2cpu

KNOB = HugePagesKnob()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_CONF", "MIMALLOC_ALLOW_THP"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def host() -> Host:
    """This host; skips the test where huge pages cannot be told apart on it."""
    host = read_host(read_machine())
    if host.huge_pages != "madvise" or (host.glibc or (0, 0)) < (2, 35):
        pytest.skip("needs the mode madvise, which is the default of most distributions, and glibc 2.35")
    seen = observe_huge_pages()
    if seen is None or "scarce" in {seen.allocated, seen.advised}:
        pytest.skip("no huge page is free on this machine now")
    return host


def _context(
    *,
    mode: str | None = "madvise",
    kernel: tuple[int, int] = (6, 18),
    glibc: tuple[int, int] | None = (2, 36),
    libraries: tuple[InstalledLibrary, ...] = (),
    **chosen: str,
) -> Context:
    host = Host(machine=container_2cpu(), huge_pages=mode, kernel=kernel, glibc=glibc, libraries=libraries)
    return Context(host=host, engine=engine("fake"), chosen=chosen)


def _mimalloc(path: Path, *, asks: bool) -> tuple[InstalledLibrary, ...]:
    path.write_bytes(b"\x7fELF..allow_large_os_pages\0" + (b"allow_thp\0" if asks else b""))
    return (InstalledLibrary(name="mimalloc", path=str(path)),)


def _spec(setting: Setting, value: str) -> WorkerSpec:
    load = LoadRequest(
        network=fake_network(), artefact=Artefact(format="none", path="", origin="model"), threads=1, options={}
    )
    return WorkerSpec(
        engine="fake",
        load=load,
        cpus=None,
        knobs={"hugepages": value},
        environment=dict(setting.environment),
        preload=setting.preload,
        huge_pages=setting.huge_pages,
    )


def _evidence(spec: WorkerSpec) -> InstanceEvidence:
    async def gather() -> InstanceEvidence:
        async with Pool([spec], restart=False) as pool:
            return await gather_evidence(pool.instances[0])

    return asyncio.run(gather())


def _chosen(host: Host, value: str) -> Setting:
    return combined_setting(Context(host=host, engine=engine("fake"), chosen={"hugepages": value}))


@pytest.mark.parametrize(
    ("value", "fields", "words"),
    [
        ("never", {"mode": None}, "this kernel has no transparent huge pages; leave it at auto"),
        (
            "madvise",
            {"mode": "never"},
            "the system's mode is never; `bench --system-hugepages madvise`, as root, changes it for",
        ),
        (
            "always",
            {"mode": "never"},
            "`bench --system-hugepages always`, as root, changes it for its run, an administrator",
        ),
        ("madvise", {"mode": "always", "kernel": (6, 17)}, "it needs Linux 6.18, and this is 6.17"),
        (
            "always",
            {"glibc": (2, 34)},
            "glibc 2.34 cannot ask for huge pages, 2.35 could; choose another allocator",
        ),
        ("always", {"glibc": None}, "the C library does not ask for huge pages"),
        (
            "always",
            {"allocator": "tcmalloc"},
            "tcmalloc does not ask for huge pages, and the system gives none unasked",
        ),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_way_out(value: str, fields: dict[str, Any], words: str) -> None:
    """The reason is the system's mode, the kernel, or the allocator; the text says what would do."""
    refusal = KNOB.refusal(value, _context(**fields))
    assert refusal is not None
    assert words in refusal


@pytest.mark.parametrize(
    ("value", "fields", "huge_pages", "environment"),
    [
        ("never", {}, "never", {}),
        ("never", {"mode": "always"}, "never", {}),
        ("never", {"mode": "never"}, "never", {}),
        ("madvise", {}, "inherit", {}),
        ("madvise", {"kernel": (5, 10)}, "inherit", {}),
        ("madvise", {"mode": "always"}, "advised", {}),
        ("always", {}, "inherit", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        ("always", {"allocator": "auto"}, "inherit", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        ("always", {"allocator": "glibc-tuned"}, "inherit", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
        ("always", {"allocator": "jemalloc"}, "inherit", {"MALLOC_CONF": "thp:always"}),
        ("always", {"allocator": "jemalloc-keep"}, "inherit", {"MALLOC_CONF": "thp:always"}),
        ("always", {"mode": "always"}, "inherit", {}),
        ("always", {"mode": "always", "allocator": "tcmalloc"}, "inherit", {}),
        ("always", {"mode": "always", "glibc": (2, 31)}, "inherit", {}),
    ],
)
def test_what_can_be_had_changes_only_what_it_needs(
    value: str, fields: dict[str, Any], huge_pages: HugePages, environment: dict[str, str]
) -> None:
    """Each value by the least means: a restriction of the process, or its allocator's own option."""
    context = _context(**fields)
    assert KNOB.refusal(value, context) is None
    assert KNOB.setting(value, context) == Setting(huge_pages=huge_pages, environment=environment)


def test_mimalloc_asks_by_itself_where_it_can(tmp_path: Path) -> None:
    """A version with the option gives `always` and never `madvise`; one without it the other way round."""
    asks = _context(libraries=_mimalloc(tmp_path / "libmimalloc.so.3.4", asks=True), allocator="mimalloc")
    assert KNOB.refusal("always", asks) is None
    assert KNOB.setting("always", asks).environment == {"MIMALLOC_ALLOW_THP": "1"}
    assert "mimalloc asks for huge pages for all memory" in str(KNOB.refusal("madvise", asks))
    silent = _context(libraries=_mimalloc(tmp_path / "libmimalloc.so.2.0", asks=False), allocator="mimalloc")
    assert "this mimalloc does not ask for huge pages, version 3.4 does" in str(KNOB.refusal("always", silent))
    assert KNOB.refusal("madvise", silent) is None


def test_an_inherited_allocator_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no allocator is chosen, the one that the worker will inherit by LD_PRELOAD is the one that has to ask."""
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libother.so /usr/lib/libjemalloc.so.2")
    assert KNOB.setting("always", _context()).environment == {"MALLOC_CONF": "thp:always"}
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libtcmalloc_minimal.so.4")
    assert "tcmalloc does not ask" in str(KNOB.refusal("always", _context()))
    assert KNOB.refusal("always", _context(allocator="glibc")) is None


def test_an_inherited_allocator_without_a_directory_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The loader searches for it; the file that it stands for, beside the one that is known, has the option or not."""
    (tmp_path / "asks").mkdir()
    asks = _mimalloc(tmp_path / "asks/libmimalloc.so.3.4", asks=True)
    (tmp_path / "asks/libmimalloc.so.3").symlink_to("libmimalloc.so.3.4")
    silent = _mimalloc(tmp_path / "libmimalloc.so.2.0", asks=False)
    monkeypatch.setenv("LD_PRELOAD", "libmimalloc.so.3")
    context = _context(libraries=(*silent, *asks))
    assert KNOB.refusal("always", context) is None
    assert "mimalloc asks for huge pages for all memory" in str(KNOB.refusal("madvise", context))
    monkeypatch.setenv("LD_PRELOAD", "libmimalloc.so.2.0")
    assert "this mimalloc does not ask" in str(KNOB.refusal("always", context))


def test_the_file_that_the_allocator_takes_is_judged(tmp_path: Path) -> None:
    """Of two mimallocs the newer one would be preloaded: what the other can do does not matter."""
    older = _mimalloc(tmp_path / "libmimalloc.so.2.0", asks=True)
    newer = _mimalloc(tmp_path / "libmimalloc.so.3.9", asks=False)
    context = _context(libraries=(*older, *newer), allocator="mimalloc")
    assert "this mimalloc does not ask" in str(KNOB.refusal("always", context))
    assert KNOB.refusal("madvise", context) is None


def test_what_asks_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """For only advised memory in huge pages, inherited settings that would advise all of it are taken out."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=2:glibc.malloc.arena_max=1")
    monkeypatch.setenv("MALLOC_CONF", "thp:always,narenas:2")
    expected = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1", "MALLOC_CONF": "narenas:2"}
    assert KNOB.setting("madvise", _context()).environment == expected
    named = combined_setting(_context(allocator="glibc", hugepages="madvise"))
    assert named.environment == {"GLIBC_TUNABLES": None, "MALLOC_CONF": None}
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1")
    monkeypatch.delenv("MALLOC_CONF")
    assert KNOB.setting("madvise", _context()).environment == {}


def test_what_is_inherited_does_not_spoil_madvise(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real worker of a parent whose own glibc asks for all memory."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    assert _evidence(_spec(_chosen(host, "madvise"), "madvise")).problems == ()


@pytest.mark.parametrize(
    ("inherited", "refused"), [("never", ["madvise", "always"]), ("advised", ["always"]), ("inherit", [])]
)
def test_an_inherited_restriction_is_seen(
    monkeypatch: pytest.MonkeyPatch, inherited: HugePages, refused: list[str]
) -> None:
    """What started this process may have taken huge pages from it, and so from its workers."""
    monkeypatch.setattr(hugepages, "inherited_huge_pages", lambda: inherited)
    reasons = {value: KNOB.refusal(value, _context(mode="always")) for value in KNOB.values()}
    assert [value for value, reason in reasons.items() if reason is not None] == refused
    assert all(f"restricts it to {inherited}" in str(reasons[value]) for value in refused)


def test_other_words_are_no_values() -> None:
    """Only the three words are."""
    assert [word for word in ("never", "madvise", "always", "auto", "on", "Always", "") if KNOB.is_value(word)] == list(
        KNOB.values()
    )


@pytest.mark.parametrize("value", ["never", "madvise", "always"])
def test_each_value_takes_effect(host: Host, value: str) -> None:
    """The worker's own memory shows it, and the trial has no problem."""
    evidence = _evidence(_spec(_chosen(host, value), value))
    effects = [(one.requested, one.effective) for one in evidence.knobs if one.knob == "hugepages"]
    assert effects == [(value, value)]
    assert evidence.problems == ()


def test_what_is_in_effect_unasked_is_recorded(host: Host) -> None:
    """Without a wish the system's mode shows."""
    del host
    evidence = _evidence(_spec(Setting(), "auto"))
    assert [one.effective for one in evidence.knobs if one.knob == "hugepages"] == ["madvise"]
    assert evidence.problems == ()


@pytest.mark.parametrize(
    ("asked", "really", "problem"),
    [
        (
            "never",
            Setting(),
            "hugepages: asked never, memory of malloc came in small pages, advised memory in huge ones",
        ),
        (
            "never",
            Setting(environment={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
            "hugepages: asked never, memory of malloc came in huge pages",
        ),
        (
            "madvise",
            Setting(environment={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
            "hugepages: asked madvise, memory of malloc came in huge pages",
        ),
        (
            "madvise",
            Setting(huge_pages="never"),
            "hugepages: asked madvise, the process may have no huge pages (THP_enabled: 0)",
        ),
        (
            "always",
            Setting(environment={"GLIBC_TUNABLES": None}),
            "hugepages: asked always, memory of malloc came in small pages, advised memory in huge ones",
        ),
        (
            "always",
            Setting(environment={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}, huge_pages="never"),
            "hugepages: asked always, the process may have no huge pages (THP_enabled: 0)",
        ),
    ],
)
def test_sabotage_is_noticed(host: Host, asked: str, really: Setting, problem: str) -> None:
    """The restriction left out, the tunable stripped, or one that nobody asked for: the trial fails with it."""
    del host
    (found,) = _evidence(_spec(really, asked)).problems
    assert found.startswith(problem)
    huge, all_of_it = map(int, re.findall(r"; (\d+) of the process's (\d+) MiB are in huge pages$", found)[0])
    assert 0 <= huge <= all_of_it


@pytest.mark.parametrize(
    ("allocator", "environment", "value"),
    [
        ("jemalloc", {"MALLOC_CONF": "thp:always"}, "always"),
        ("jemalloc", {}, "madvise"),
        ("mimalloc", {"MIMALLOC_ALLOW_THP": "1"}, "always"),
        ("mimalloc", {"MIMALLOC_ALLOW_THP": "0"}, "never"),
        ("tcmalloc", {}, "madvise"),
    ],
)
def test_other_allocators(host: Host, allocator: str, environment: Mapping[str, str], value: str) -> None:
    """Each allocator does with its option what the knob says of it, the installed versions themselves."""
    paths = [library.path for library in host.libraries if library.name == allocator]
    if allocator == "mimalloc":
        paths = [path for path in paths if b"allow_thp" in Path(path).read_bytes()]
    if not paths:
        pytest.skip(f"{allocator} is not installed, or not in a version that asks for huge pages")
    evidence = _evidence(_spec(Setting(environment=environment, preload=(paths[0],)), value))
    assert evidence.problems == ()


@pytest.mark.parametrize(
    ("pages", "in_huge_pages", "value", "words"),
    [
        (("scarce", "scarce"), 0, "unknown", "but none is free: memory is short or fragmented"),
        (
            ("scarce", "scarce"),
            8 << 20,
            "always",
            "huge pages; none is free now; 8 of the process's 40 MiB are in",
        ),
        (("huge", "scarce"), 8 << 20, "always", "memory of malloc may come in huge pages"),
        (("small", "scarce"), None, "unknown", "only advised memory may come in huge pages, but none is free"),
        (
            ("small", "scarce"),
            2 << 20,
            "madvise",
            "only advised memory may come in huge pages; none is free now; 2 of",
        ),
        (("small", "small"), 0, "never", "the process may have no huge pages"),
    ],
)
def test_fragmented_memory_is_not_taken_for_a_refusal(
    pages: tuple[Pages, Pages], in_huge_pages: int | None, value: str, words: str
) -> None:
    """Where the kernel would give huge pages and has none, the process's other memory decides; without any, nothing."""
    effective = KNOB.effective(_seen(HugePagesObservation(allocated=pages[0], advised=pages[1]), in_huge_pages))
    assert effective.value == value
    assert words in effective.why


def test_what_was_not_read_is_unknown() -> None:
    """A probe that failed proves nothing: its reason is the sentence."""
    effective = KNOB.effective(_seen(None, 0, {"huge_pages": "huge pages have 512 MiB here"}))
    assert (effective.value, effective.why) == ("unknown", "huge pages have 512 MiB here")


def _seen(
    observed: HugePagesObservation | None, in_huge_pages: int | None, unread: dict[str, str] | None = None
) -> Seen:
    process = msgspec.structs.replace(read_evidence(os.getpid()), anonymous_huge_bytes=in_huge_pages, thp_enabled=True)
    process = msgspec.structs.replace(process, rss_bytes=40 << 20)
    return Seen(
        engine=engine("fake"),
        report=EngineReport(engine="fake", version="1", precision="float32", threads=1),
        process=process,
        observation=ProcessObservation(huge_pages=observed, unread=unread or {}),
        memory=MemoryPolicyEffect(requested="auto", effective="none", nodes=(), why=""),
        cpus=None,
        cores=(),
    )


def test_a_run_is_refused_before_it_starts() -> None:
    """The message of the knob names value and reason on one line."""
    with pytest.raises(KnobError, match=r"^hugepages=always cannot be had here: the system's mode is never; [^\n]*$"):
        combined_setting(_context(mode="never", hugepages="always"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "value", "effective"),
    [
        ("always", "auto", "always"),
        ("always", "never", "never"),
        ("always", "madvise", "madvise"),
        ("always", "always", "always"),
        ("never", "auto", "never"),
        ("never", "never", "never"),
    ],
)
def test_under_another_mode_of_the_system(host: Host, mode: SystemHugePages, value: str, effective: str) -> None:
    """The system's mode is changed for a moment, and restored: the process gets what was asked for all the same."""
    if not os.access("/sys/kernel/mm/transparent_hugepage/enabled", os.W_OK):
        pytest.skip("needs root, to change the system's mode")
    if host.kernel < (6, 18):
        pytest.skip("needs Linux 6.18, to have only advised memory in huge pages")
    with system_huge_pages(mode, print):
        changed = read_host(host.machine)
        evidence = _evidence(_spec(_chosen(changed, value), value))
    assert [one.effective for one in evidence.knobs if one.knob == "hugepages"] == [effective]
    assert evidence.problems == ()

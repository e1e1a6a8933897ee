"""What could be chosen and is not here is named, with the package that brings it."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pinstripe.diagnosis import Finding, diagnose, observe
from pinstripe.diagnosis.refusals import list_refusals
from pinstripe.knobs import Host
from pinstripe.runtime.installed import InstalledLibrary
from pinstripe.testing.machines import c5_metal, uniform

Look = Callable[..., dict[str, Finding]]


@pytest.fixture
def on_host() -> Callable[..., Any]:
    """Return what knobs refuse on a host of this processor that has some libraries."""

    def refused(*engines: str, libraries: tuple[InstalledLibrary, ...] = (), **changes: Any) -> Any:
        software = {"huge_pages": "madvise", "kernel": (6, 18), "glibc": (2, 36)} | changes
        return list_refusals(Host(machine=uniform(), libraries=libraries, **software), engines)

    return refused


@pytest.mark.parametrize(
    ("allocator", "package"),
    [("tcmalloc", "libtcmalloc-minimal4"), ("jemalloc", "libjemalloc2"), ("mimalloc", "mimalloc")],
)
def test_every_missing_allocator_is_named_with_its_package(
    look: Look, on_host: Callable[..., Any], allocator: str, package: str
) -> None:
    """Names of Debian's packages, and of the wheel of mimalloc; how to compare them is said with the knob."""
    found = look(refused_knobs=on_host("torch-eager"))["allocators"]

    assert found.severity == "note"
    assert allocator in found.title
    assert package in (found.remedy or "")
    assert "`pinstripe bench MODEL --allocator all`" in (found.remedy or "")


def test_one_missing_allocator(look: Look, on_host: Callable[..., Any]) -> None:
    """Where others are there, the one that is not is still named, and they are not."""
    there = ("/usr/lib/libtcmalloc_minimal.so.4", "/usr/lib/libmimalloc.so.2")
    libraries = tuple(
        InstalledLibrary(name=name, path=path)  # type: ignore[arg-type]  # names of two libraries
        for name, path in zip(("tcmalloc", "mimalloc"), there, strict=True)
    )
    found = look(refused_knobs=on_host("onnxruntime", libraries=libraries))["allocators"]

    assert found.title.startswith("Allocators not installed: jemalloc")
    assert "tcmalloc" in found.seen
    assert "libjemalloc2" in (found.remedy or "")
    assert "tcmalloc" not in (found.remedy or "")


@pytest.mark.parametrize(("engine", "is_found"), [("torch-eager", True), ("torchscript", True), ("openvino", False)])
def test_openmp_runtimes_are_for_engines_that_use_them(
    look: Look,
    on_host: Callable[..., Any],
    engine: str,
    is_found: bool,  # noqa: FBT001 - a case's value
) -> None:
    """Nobody without torch is told to install an OpenMP runtime."""
    found = look(refused_knobs=on_host(engine)).get("openmp")

    assert (found is not None) is is_found
    if found is not None:
        assert "intel" in found.title
        assert "llvm" in found.title
        assert "intel-openmp" in (found.remedy or "")
        assert "libomp5" in (found.remedy or "")
        assert "`pinstripe bench MODEL --openmp all`" in (found.remedy or "")


def test_titles_stay_short_with_everything_missing(look: Look, on_host: Callable[..., Any]) -> None:
    """A package that several values need is named once, and in one line."""
    found = look(refused_knobs=on_host("torch-eager"))

    assert found["allocators"].title == "Allocators not installed: tcmalloc, jemalloc, mimalloc, tbbmalloc"
    assert found["openmp"].title == "OpenMP runtimes not installed: intel, llvm"
    assert (found["allocators"].remedy or "").count("libjemalloc2") == 1


def test_nothing_is_said_of_knobs_without_engines(look: Look, on_host: Callable[..., Any]) -> None:
    """Where no engine is installed, that is the finding."""
    assert not {"allocators", "openmp", "memory-policy"} & look(refused_knobs=on_host()).keys()


def test_what_no_package_mends_is_not_missing(look: Look) -> None:
    """A runtime for other processors only is not asked for."""
    refused = {"openmp": {"intel": "it exists for x86-64 alone; use gnu"}}
    found = look(refused_knobs=refused)["openmp"]

    assert (found.severity, found.title) == ("good", "OpenMP runtimes to choose from: 2")
    assert found.seen == "gnu, llvm; it exists for x86-64 alone; use gnu"


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("madvise", "`pinstripe bench MODEL --hugepages madvise,always`"),
        ("never", "sudo tee /sys/kernel/mm/transparent_hugepage/enabled`; or `bench --system-hugepages madvise`, as "),
    ],
)
def test_huge_pages(look: Look, on_host: Callable[..., Any], mode: str, says: str) -> None:
    """How to have them, for good or for a run, is said by mode of the system."""
    found = look(replace(uniform(), thp=mode), refused_knobs=on_host("fake", huge_pages=mode))["huge-pages"]

    assert says in (found.remedy or "")


def test_memory_policy_refused(look: Look, on_host: Callable[..., Any]) -> None:
    """A filter of system calls is a finding where there is more than one node, with what lifts it."""
    refused = on_host("fake", memory_policy_error="Operation not permitted")
    found = look(c5_metal(), refused_knobs=refused)["memory-policy"]

    assert found.seen == "set_mempolicy says Operation not permitted"
    assert found.remedy == "allow it, as `docker run --cap-add SYS_NICE` does"
    assert "memory-policy" not in look(uniform(), refused_knobs=refused)


def test_this_machine() -> None:
    """Every value that a knob refuses here comes with a reason, and titles stay short."""
    seen = observe(watch_s=0.01, sleep=lambda _: None)

    assert seen.refused_knobs is not None
    assert all(why for values in seen.refused_knobs.values() for why in values.values())
    assert all(len(finding.title) <= 72 for finding in diagnose(seen))

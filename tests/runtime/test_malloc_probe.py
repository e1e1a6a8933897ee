"""Asking a process which library serves its memory, in processes that were started so or otherwise."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pinstripe.runtime import LoadedLibrary, MallocObservation, Process, find_libraries

Launch = Callable[..., Process]

_SAY = """
import ctypes, os, resource, sys, time, msgspec
from pathlib import Path
from pinstripe.runtime.libraries import loaded_allocators, mapped_files
from pinstripe.runtime.malloc_probe import observe_malloc
{before}
resident = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before = resident()
observed = observe_malloc()
grown = resident() - before
until = time.monotonic() + 10
while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < until:  # a thread ends a moment after its join
    time.sleep(0.01)
maps = mapped_files(Path("/proc/self/maps").read_text())
print(msgspec.json.encode([observed, loaded_allocators(maps), grown, len(os.listdir("/proc/self/task"))]).decode())
"""
# Page faults of an array of 200 MiB (51200 pages of 4 KiB) that is filled once such ones have been freed.
_FAULTS = """
import resource
import numpy as np
for _ in range(6):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(25 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
_KEEPS = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "1000000000000", "MALLOC_ARENA_MAX": "1"}
_CLEAN: dict[str, str | None] = dict.fromkeys(("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_CONF", *_KEEPS))
_Said = tuple[MallocObservation | None, tuple[LoadedLibrary, ...], int, int]


def _library(name: str) -> str:
    found = [library.path for library in find_libraries().own if library.name == name]
    if not found:
        pytest.skip(f"no {name} is installed")
    return found[-1]


def _output(launch: Launch, code: str, environment: dict[str, str | None]) -> str:
    process = launch(code, environment=_CLEAN | environment)
    status, text = process.wait(60), process.output_tail()
    assert status == 0, text
    return text.splitlines()[-1]


def _observe(launch: Launch, before: str = "", /, **environment: str | None) -> tuple[MallocObservation, list[str]]:
    said = _output(launch, _SAY.format(before=before), environment)
    observation, mapped, _, _ = msgspec.json.decode(said, type=_Said)
    assert observation is not None
    return observation, [library.path for library in mapped]


def test_the_c_library(launch: Launch) -> None:
    """Without anything else, the C library in the memory map serves; glibc gives large blocks back."""
    observation, mapped = _observe(launch)
    if observation.name != "glibc":
        pytest.skip("the C library is not glibc")
    assert observation.path.rpartition("/")[2] in {path.rpartition("/")[2] for path in mapped}
    assert observation.keeps_large is False
    assert observation.settings["version"].startswith("2.")


@pytest.mark.parametrize("name", ["tcmalloc", "jemalloc", "mimalloc"])
def test_a_preloaded_allocator_serves(name: str, launch: Launch) -> None:
    """It is named by its file, and says its version."""
    path = _library(name)
    observation, mapped = _observe(launch, LD_PRELOAD=path)
    assert (observation.name, observation.path, mapped) == (name, path, [path])
    assert any(character.isdigit() for character in observation.settings["version"])


@pytest.mark.parametrize("name", ["tcmalloc", "mimalloc"])
def test_mapped_but_not_serving(name: str, launch: Launch) -> None:
    """One that is loaded late, for all to see, is in the memory map and serves nothing."""
    path = _library(name)
    observation, mapped = _observe(launch, f"ctypes.CDLL({path!r}, mode=ctypes.RTLD_GLOBAL)")
    assert mapped == [path]
    assert observation.name == "glibc"


@pytest.mark.parametrize(
    ("environment", "keeps"),
    [
        pytest.param({}, False, id="default"),
        pytest.param(_KEEPS, True, id="all kept"),
        pytest.param(_KEEPS | {"MALLOC_TRIM_THRESHOLD_": "131072"}, False, id="trimmed"),
        pytest.param(_KEEPS | {"MALLOC_MMAP_MAX_": None, "MALLOC_MMAP_THRESHOLD_": "131072"}, False, id="mapped"),
        pytest.param(_KEEPS | {"MALLOC_ARENA_MAX": None}, False, id="not in other threads"),
    ],
)
def test_what_glibc_keeps(environment: dict[str, str | None], keeps: bool, launch: Launch) -> None:  # noqa: FBT001 - a parameter
    """A block is kept if it is neither mapped nor trimmed, in the main thread and in others."""
    observation, _ = _observe(launch, **environment)
    if observation.name != "glibc":
        pytest.skip("the C library is not glibc")
    assert observation.keeps_large is keeps


@pytest.mark.parametrize("name", ["glibc", "tuned", "jemalloc", "jemalloc-keep"])
def test_page_faults_agree(name: str, launch: Launch) -> None:
    """Where it says that large blocks are kept, arrays that are made over and over have no page faults."""
    environment: dict[str, str | None] = dict(_KEEPS) if name == "tuned" else {}
    if name.startswith("jemalloc"):
        keep = "oversize_threshold:0,dirty_decay_ms:-1,muzzy_decay_ms:-1"
        environment = {"LD_PRELOAD": _library("jemalloc"), "MALLOC_CONF": keep if name.endswith("keep") else None}
    observation, _ = _observe(launch, **environment)
    faults = int(_output(launch, _FAULTS, environment))
    assert observation.keeps_large is (faults < 10)
    assert observation.keeps_large is (name in {"tuned", "jemalloc-keep"})


def test_jemallocs_settings_are_read_back(launch: Launch) -> None:
    """They are those that it was given, not its defaults."""
    conf = "dirty_decay_ms:1234,background_thread:true,narenas:3,thp:never"
    observation, _ = _observe(launch, LD_PRELOAD=_library("jemalloc"), MALLOC_CONF=conf)
    settings = {name: observation.settings[f"opt.{name}"] for name in ("dirty_decay_ms", "background_thread", "thp")}
    assert settings == {"dirty_decay_ms": "1234", "background_thread": "true", "thp": "never"}
    assert observation.settings["opt.narenas"] == "3"


@pytest.mark.parametrize("room_mib", [pytest.param(50, id="no block"), pytest.param(100, id="no block beside a stack")])
def test_too_little_memory_to_tell(room_mib: int, launch: Launch) -> None:
    """Where a large block is not to be had, it is not known what would become of it, and nothing breaks."""
    size = "int(Path('/proc/self/statm').read_text().split()[0]) * os.sysconf('SC_PAGE_SIZE')"
    observation, _ = _observe(
        launch, f"resource.setrlimit(resource.RLIMIT_AS, ({size} + ({room_mib} << 20), resource.RLIM_INFINITY))"
    )
    assert observation.keeps_large is None


def test_an_unknown_variant_has_no_settings(launch: Launch, tmp_path: Path) -> None:
    """A library by an allocator's name, without its functions, serves and is named, and no setting is read."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    for name in ("jemalloc", "tcmalloc", "mimalloc"):
        path = tmp_path / f"lib{name}.so.2"
        source = tmp_path / "variant.c"
        source.write_text(
            "#include <stddef.h>\nextern void *__libc_malloc(size_t);\n"
            "void *malloc(size_t bytes) { return __libc_malloc(bytes); }\n"
        )
        subprocess.run([compiler, "-shared", "-fPIC", "-o", path, source], check=True)
        observation, _ = _observe(launch, LD_PRELOAD=str(path))
        assert (observation.name, observation.settings) == (name, {})


def test_it_leaves_little_behind(launch: Launch) -> None:
    """The block is hardly touched, and the helping thread gone, so that the process's own figures stay true."""
    said = _output(launch, _SAY.format(before=""), dict(_KEEPS))
    _, _, grown_bytes, threads = msgspec.json.decode(said, type=_Said)
    assert grown_bytes < 40 << 20  # 16 touches, each of which may take a huge page of 2 MiB
    assert threads == 1

"""The allocator that was asked for serves the worker's memory, or the evidence says otherwise."""

import asyncio
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, combined_setting, knob, preload_variable
from pinstripe.models import Network
from pinstripe.pool import InstanceEvidence, Pool, WorkerSpec, gather_evidence
from pinstripe.runtime import InstalledLibrary
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import container_2cpu

Spoil = Callable[[WorkerSpec], WorkerSpec]

_VALUES = ("glibc", "glibc-tuned", "tcmalloc", "jemalloc", "jemalloc-keep", "mimalloc", "tbbmalloc")
_NO_FILE = Artefact(format="none", path="", origin="model")
_TENSORFLOW_PYTHON = os.environ.get("PINSTRIPE_TENSORFLOW_PYTHON") or (
    sys.executable if importlib.util.find_spec("tensorflow") and importlib.util.find_spec("keras_hub") else ""
)


@pytest.fixture(autouse=True)
def _nothing_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing in the environment that a test does not put there itself."""
    for name in ("LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_CONF", "MALLOC_ARENA_MAX"):
        monkeypatch.delenv(name, raising=False)


def _library(name: str, *paths: str) -> tuple[InstalledLibrary, ...]:
    return tuple(msgspec.convert({"name": name, "path": path}, InstalledLibrary) for path in paths)


def _context(*libraries: InstalledLibrary, value: str, of: str = "torch-eager", **chosen: str) -> Context:
    host = Host(machine=container_2cpu(), libraries=libraries, glibc=(2, 36), huge_pages="madvise")
    return Context(host=host, engine=engine(of), chosen={"allocator": value, **chosen})


def _evidence(
    host: Host,
    value: str,
    spoil: Spoil = lambda spec: spec,
    *,
    of: str = "fake",
    what: tuple[Network, Artefact] | None = None,
    python: str = sys.executable,
) -> InstanceEvidence:
    """Run a worker with an allocator, or with what spoils it, and return the evidence."""
    context = Context(host=host, engine=engine(of), chosen={"allocator": value})
    try:
        setting = combined_setting(context)
    except KnobError as error:
        pytest.skip(str(error))
    network, artefact = what or (fake_network(), _NO_FILE)
    spec = WorkerSpec(
        engine=of,
        load=LoadRequest(network=network, artefact=artefact, threads=1),
        cpus=(min(os.sched_getaffinity(0)),),
        knobs={"allocator": value},
        environment=dict(setting.environment),
        preload=setting.preload,
        unload=setting.unload,
        python=python,
    )
    return asyncio.run(_gathered(spoil(spec)))


async def _gathered(spec: WorkerSpec) -> InstanceEvidence:
    async with Pool([spec], restart=False) as pool:
        return await gather_evidence(pool.instances[0])


def _effect(evidence: InstanceEvidence) -> KnobEffect:
    return next(effect for effect in evidence.knobs if effect.knob == "allocator")


@pytest.mark.parametrize("value", _VALUES)
def test_it_serves(value: str, host: Host) -> None:
    """Each that is installed takes effect in a worker."""
    evidence = _evidence(host, value)
    assert (_effect(evidence).effective, evidence.problems) == (value, ())


@pytest.mark.parametrize("value", ["tcmalloc", "jemalloc", "mimalloc"])
def test_a_preload_that_misses(value: str, host: Host) -> None:
    """Not preloaded, the C library serves, and the trial fails saying so."""
    evidence = _evidence(host, value, lambda spec: msgspec.structs.replace(spec, preload=()))
    assert evidence.problems[0].startswith(f"allocator: asked {value}, memory map shows glibc")


@pytest.mark.parametrize(
    ("value", "seen"),
    [("glibc-tuned", "memory map shows glibc, which gives large blocks back"), ("jemalloc-keep", "gives large blocks")],
)
def test_settings_that_miss(value: str, seen: str, host: Host) -> None:
    """The right library without its settings is not what was asked for."""
    evidence = _evidence(host, value, lambda spec: msgspec.structs.replace(spec, environment={}))
    assert evidence.problems[0].startswith(f"allocator: asked {value}, ")
    assert seen in evidence.problems[0]


@pytest.mark.parametrize("value", ["tcmalloc", "mimalloc"])
def test_loaded_too_late(value: str, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is mapped, but did not come before the C library, serves nothing."""

    def late(spec: WorkerSpec) -> WorkerSpec:
        code = f"import ctypes\nctypes.CDLL({spec.preload[0]!r}, mode=ctypes.RTLD_GLOBAL)\n"
        (tmp_path / "usercustomize.py").write_text(code)
        (tmp_path / "sitecustomize.py").write_text(code)
        return msgspec.structs.replace(spec, preload=())

    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    evidence = _evidence(host, value, late)
    assert evidence.process.allocators[0].name == value
    assert f"allocator: asked {value}, malloc is that of" in evidence.problems[0]
    assert "mapped but idle" in evidence.problems[0]


@pytest.mark.parametrize("value", ["glibc", "jemalloc"])
def test_what_is_inherited_is_undone(value: str, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allocators preloaded, and settings made, around the parent do not reach a worker that asks for another."""
    others = [library.path for library in host.libraries if library.name == "tcmalloc"]
    if not others:
        pytest.skip("no tcmalloc is installed")
    monkeypatch.setenv("LD_PRELOAD", others[0])
    monkeypatch.setenv("MALLOC_CONF", "dirty_decay_ms:-1,oversize_threshold:0")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000")
    assert _effect(_evidence(host, "auto")).effective == "tcmalloc"
    evidence = _evidence(host, value)
    assert (_effect(evidence).effective, evidence.problems) == (value, ())


def test_only_what_concerns_memory_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other libraries and tunables stay; nothing that is not there is removed."""
    assert combined_setting(_context(value="glibc")).environment == {}
    monkeypatch.setenv("LD_PRELOAD", "/opt/libtcmalloc.so.4 /opt/libfast.so:libmimalloc.so.2")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=3:glibc.rtld.nns=8")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    setting = combined_setting(_context(value="glibc"))
    assert setting.environment == {"GLIBC_TUNABLES": "glibc.rtld.nns=8", "MALLOC_ARENA_MAX": None}
    assert preload_variable(setting.preload, setting.unload) == {"LD_PRELOAD": "/opt/libfast.so"}
    tuned = combined_setting(_context(value="glibc-tuned")).environment["GLIBC_TUNABLES"] or ""
    assert tuned.startswith("glibc.rtld.nns=8:glibc.malloc.")
    jemalloc = combined_setting(_context(*_library("jemalloc", "/l/libjemalloc.so.2"), value="jemalloc"))
    preloaded = preload_variable(jemalloc.preload, jemalloc.unload)
    assert preloaded == {"LD_PRELOAD": "/l/libjemalloc.so.2:/opt/libfast.so"}


@pytest.mark.parametrize("first", ["allocator", "hugepages"])
@pytest.mark.parametrize("value", ["glibc", "glibc-tuned", "jemalloc-keep"])
def test_with_huge_pages(value: str, first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both knobs' settings of one variable are there, in either order."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=7")
    monkeypatch.setenv("MALLOC_CONF", "narenas:7")
    context = _context(*_library("jemalloc", "/l/libjemalloc.so.2"), value=value, hugepages="always")
    chosen = dict(sorted(context.chosen.items(), reverse=first == "hugepages"))
    environment = combined_setting(Context(host=context.host, engine=context.engine, chosen=chosen)).environment
    both = " ".join(filter(None, environment.values()))
    assert ("glibc.malloc.hugetlb=1" in both) is value.startswith("glibc")
    assert ("thp:always" in both) is value.startswith("jemalloc")
    assert ("glibc.malloc.trim_threshold=" in both) is (value == "glibc-tuned")
    assert ("dirty_decay_ms:-1" in both) is (value == "jemalloc-keep")
    assert "7" not in both.replace("1099511627776", "").replace("67108864", "")


def test_the_newest_is_taken() -> None:
    """A wheel's 3.4 goes before the distribution's 2.0, whose path is longer; of tcmalloc the plain one."""
    wheel = "/v/lib/python3.11/site-packages/cmeel.prefix/lib/libmimalloc.so"
    paths = (f"{wheel}.3.4", "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2.0", wheel, f"{wheel}.3")
    mimalloc = _library("mimalloc", *paths)
    assert combined_setting(_context(*mimalloc, value="mimalloc")).preload == (f"{wheel}.3.4",)
    tcmalloc = _library("tcmalloc", "/l/libtcmalloc.so.5", "/l/libtcmalloc_minimal.so.4", "/l/libtcmalloc_minimal.so.3")
    assert combined_setting(_context(*tcmalloc, value="tcmalloc")).preload == ("/l/libtcmalloc_minimal.so.4",)
    proxy = _library("tbbmalloc", "/w/libtbbmalloc_proxy.so.2")
    assert combined_setting(_context(*proxy, value="tbbmalloc")).preload == (proxy[0].path, "/w/libtbbmalloc.so.2")


@pytest.mark.parametrize(
    ("value", "package"),
    [
        ("tcmalloc", "libtcmalloc-minimal4"),
        ("jemalloc", "libjemalloc2"),
        ("jemalloc-keep", "libjemalloc2"),
        ("mimalloc", "cmeel-mimalloc"),
        ("tbbmalloc", "tbb"),
    ],
)
def test_what_is_not_installed_is_refused_with_its_package(value: str, package: str) -> None:
    """The refusal names what to install."""
    with pytest.raises(KnobError, match=rf"^allocator={value} cannot be had here: .* is not installed; .*{package}"):
        combined_setting(_context(value=value))


def test_other_refusals() -> None:
    """A library for another processor, another C library, and a glibc without tunables are named."""
    foreign = _library("jemalloc", "/usr/lib/aarch64-linux-gnu/libjemalloc.so.2")
    host = Host(machine=container_2cpu(), foreign=foreign, glibc=(2, 17))
    context = Context(host=host)
    refusal = knob("allocator").refusal
    assert (refusal("jemalloc", context) or "").startswith(f"{foreign[0].path} is for another processor; libjemalloc")
    assert "2.17 has no tunables" in (refusal("glibc-tuned", context) or "")
    assert refusal("glibc", context) is None
    assert "not glibc" in (refusal("glibc", Context(host=Host(machine=container_2cpu()))) or "")


def test_tbb_is_told_of_replacements_only() -> None:
    """OpenVINO's TBB would abort under a replacement; other engines need no such setting."""
    jemalloc = _library("jemalloc", "/l/libjemalloc.so.2")
    assert combined_setting(_context(*jemalloc, value="jemalloc", of="openvino")).environment == {
        "TBB_ENABLE_SANITIZERS": "1"
    }
    assert combined_setting(_context(*jemalloc, value="jemalloc", of="onnxruntime")).environment == {}
    assert combined_setting(_context(value="glibc", of="openvino")).environment == {}


def _runs(name: str, value: str, host: Host, what: tuple[Network, Artefact], python: str = sys.executable) -> None:
    evidence = _evidence(host, value, of=name, what=what, python=python)
    assert (_effect(evidence).effective, evidence.problems) == (value, ())


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("value", _VALUES)
@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "torch-compile", "torch-eager", "torchscript"])
def test_every_engine(
    name: str, value: str, host: Host, tiny_artefact: Callable[[str], tuple[Network, Artefact]]
) -> None:
    """Each engine loads, runs and is served by each allocator."""
    pytest.importorskip(engine(name).distributions[0])
    _runs(name, value, host, tiny_artefact(name))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not _TENSORFLOW_PYTHON, reason="PINSTRIPE_TENSORFLOW_PYTHON names no environment with TensorFlow")
@pytest.mark.parametrize("value", _VALUES)
@pytest.mark.parametrize("name", ["tf-eager", "tf-graph", "tf-xla"])
def test_every_engine_of_tensorflow(
    name: str, value: str, host: Host, tiny_artefact: Callable[[str], tuple[Network, Artefact]]
) -> None:
    """Each loads, runs and is served by each allocator, in the environment of its own."""
    network, _ = tiny_artefact("torch-eager")
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    _runs(name, value, host, (network, artefact), _TENSORFLOW_PYTHON)

"""The OpenMP runtime that was asked for computes, each thread on a CPU of its own, or the evidence says otherwise."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, Seen, Setting, combined_setting, knob, preload_variable
from pinstripe.models import Network
from pinstripe.pool import InstanceEvidence, Pool, WorkerSpec, gather_evidence
from pinstripe.runtime import InstalledLibrary
from pinstripe.testing.machines import container_2cpu
from pinstripe.testing.tiny_families import make_tiny_network

MakeContext = Callable[..., Context]
See = Callable[..., Seen]


def _problem(seen: Seen, requested: str) -> str | None:
    found = knob("openmp").effective(seen)
    return KnobEffect(knob="openmp", requested=requested, effective=found.value, why=found.why).problem


def _context(*libraries: InstalledLibrary, value: str, cpus: tuple[int, ...] | None = (4, 2)) -> Context:
    host = Host(machine=container_2cpu(), libraries=libraries)
    return Context(host=host, engine=engine("torch-eager"), cpus=cpus, chosen={"openmp": value})


_INTEL = InstalledLibrary(name="iomp", path="/v/lib/libiomp5.so")
_LLVM = (
    InstalledLibrary(name="omp", path="/usr/lib/llvm-14/lib/libomp.so.5"),
    InstalledLibrary(name="omp", path="/usr/lib/llvm-9/lib/libomp.so.5"),
)


@pytest.fixture(autouse=True)
def _no_preload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing preloaded that a test does not preload itself."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)


def test_all_are_given_the_same_affinity() -> None:
    """One place, or one entry, for each compute thread, in the order of the instance's CPUs."""
    gnu = combined_setting(_context(value="gnu"))
    assert (gnu.environment, gnu.preload) == ({"OMP_PLACES": "{4},{2}", "OMP_PROC_BIND": "close"}, ())
    intel = combined_setting(_context(_INTEL, value="intel"))
    assert intel.environment == {"KMP_AFFINITY": "granularity=fine,explicit,proclist=[4,2]"}
    assert intel.preload == ("/v/lib/libiomp5.so",)
    llvm = combined_setting(_context(*_LLVM, value="llvm"))
    assert llvm.environment == intel.environment
    assert llvm.preload == ("/usr/lib/llvm-14/lib/libomp.so.5",)


def test_an_instance_that_is_not_bound_gets_no_affinity() -> None:
    """Where the kernel places threads, the runtime does not."""
    assert combined_setting(_context(_INTEL, value="intel", cpus=None)).environment == {}


@pytest.mark.parametrize(("value", "package"), [("intel", "pip install intel-openmp"), ("llvm", "apt-get install")])
def test_what_is_not_installed_is_refused_with_its_package(value: str, package: str) -> None:
    """The refusal names what to install."""
    with pytest.raises(KnobError, match=f"^openmp={value} cannot be had here: .* is not installed; {package}"):
        combined_setting(_context(value=value))


@pytest.mark.parametrize(
    ("value", "inherited", "preloaded"),
    [
        ("gnu", "/lib/libjemalloc.so.2:/opt/libomp.so.5", "/lib/libjemalloc.so.2"),
        ("gnu", "libiomp5.so", None),
        ("gnu", "/lib/libjemalloc.so.2:/opt/libgomp.so.1", "/lib/libjemalloc.so.2:/opt/libgomp.so.1"),
        ("intel", "/opt/libomp.so.5 /lib/libx.so", "/v/lib/libiomp5.so:/lib/libx.so"),
        ("intel", "/opt/libiomp5.so", "/v/lib/libiomp5.so"),
        ("intel", "/v/lib/libiomp5.so", "/v/lib/libiomp5.so"),
    ],
)
def test_other_runtimes_are_not_inherited(
    value: str, inherited: str, preloaded: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker gets the runtime that is asked for and no other, and whatever else is preloaded."""
    monkeypatch.setenv("LD_PRELOAD", inherited)
    setting = combined_setting(_context(_INTEL, value=value))
    changed = {"LD_PRELOAD": inherited, **preload_variable(setting.preload, setting.unload)}
    assert changed["LD_PRELOAD"] == preloaded


@pytest.mark.parametrize("value", ["gnu", "llvm"])
def test_it_serves_instead_of_an_inherited_one(
    value: str, openmp_context: MakeContext, seen_with_openmp: See, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Intel's runtime around the parent, the one that is asked for computes, and Intel's is not even mapped."""
    intel = openmp_context(openmp="intel")
    context = openmp_context(openmp=value)
    monkeypatch.setenv("LD_PRELOAD", combined_setting(intel).preload[0])
    seen = seen_with_openmp(context)
    assert _problem(seen, value) is None
    assert "iomp" not in {library.name for library in seen.process.threading_libraries}


@pytest.mark.parametrize(
    ("name", "reason"), [("openvino", "TBB"), ("onnxruntime", "pool of its own"), ("fake", "no compute threads")]
)
def test_strangers(name: str, reason: str) -> None:
    """Engines without OpenMP say what they have instead."""
    assert reason in (knob("openmp").stranger(engine(name)) or "")


@pytest.mark.parametrize("value", ["gnu", "intel", "llvm"])
def test_it_serves_and_is_bound(value: str, openmp_context: MakeContext, seen_with_openmp: See) -> None:
    """What is asked for is in effect; the same threads without affinity are not what is asked for."""
    context = openmp_context(openmp=value)
    assert _problem(seen_with_openmp(context), value) is None
    unbound = replace(combined_setting(context), environment={})
    cpus = "%d-%d" if context.cpus == (0, 1) else "%d,%d"
    both = cpus % (context.cpus or ())
    problem = _problem(seen_with_openmp(context, unbound), value) or ""
    assert problem.startswith(f"openmp: asked {value}, lib")
    assert problem.endswith(f", its threads are not bound: each may run on CPUs {both}")


@pytest.mark.parametrize("value", ["intel", "llvm"])
def test_a_preload_that_misses(value: str, openmp_context: MakeContext, seen_with_openmp: See) -> None:
    """Not preloaded, GNU's serves, and its threads obey no KMP_AFFINITY either."""
    context = openmp_context(openmp=value)
    missed = replace(combined_setting(context), preload=())
    problem = _problem(seen_with_openmp(context, missed), value) or ""
    assert problem.startswith(f"openmp: asked {value}, libgomp")
    assert " serves" in problem


@pytest.mark.parametrize("value", ["gnu", "intel"])
def test_threads_on_the_same_cpu(value: str, openmp_context: MakeContext, seen_with_openmp: See) -> None:
    """Two threads that are bound, but to one CPU, have not what was asked for."""
    context = openmp_context(openmp=value)
    first = min(context.cpus or ())
    squeezed = {"OMP_PLACES": f"{{{first}}}", "KMP_AFFINITY": f"granularity=fine,explicit,proclist=[{first}]"}
    setting = replace(combined_setting(context), environment=squeezed | {"OMP_PROC_BIND": "close"})
    assert f"its threads on CPUs {first}; {first}, not" in (_problem(seen_with_openmp(context, setting), value) or "")


def test_a_process_that_cannot_be_asked(openmp_context: MakeContext, seen_with_openmp: See) -> None:
    """Without an observation nothing is claimed, and the reason stands in the sentence."""
    seen = seen_with_openmp(openmp_context(), Setting())
    blind = replace(seen, observation=msgspec.structs.replace(seen.observation, openmp=None, unread={"openmp": "odd"}))
    assert _problem(blind, "gnu") == "openmp: asked gnu, which OpenMP runtime computes cannot be told: odd"
    assert _problem(blind, "auto") is None


def _worker(network: Network, context: Context, setting: Setting) -> WorkerSpec:
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    return WorkerSpec(
        engine="torch-eager",
        load=LoadRequest(network=network, artefact=artefact, threads=2),
        cpus=context.cpus,
        knobs=dict(context.chosen),
        environment=dict(setting.environment),
        preload=setting.preload,
        unload=setting.unload,
    )


def test_workers_with_torch(openmp_context: MakeContext, tmp_path: Path) -> None:
    """Of real workers, those that started as asked have no problems, and those that did not name both knobs.

    In all of them threads that do not compute may run on both CPUs.
    """
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    network = make_tiny_network(tmp_path, "bert")
    intel = openmp_context(openmp="intel", spin="5")
    gnu = openmp_context(openmp="gnu", spin="0")
    setting = combined_setting(intel)
    specs = [
        _worker(network, intel, setting),
        _worker(network, gnu, combined_setting(gnu)),
        _worker(network, intel, replace(setting, preload=())),
        _worker(network, gnu, replace(combined_setting(gnu), environment={"OMP_THREAD_LIMIT": "1"})),
    ]

    async def gather() -> None:
        async with Pool(specs) as pool:
            fine, also_fine, missed, small = [await gather_evidence(instance) for instance in pool.instances]
        for evidence in (fine, also_fine):
            assert evidence.problems == ()
            team = {thread.tid for thread in evidence.observation.openmp.team} if evidence.observation.openmp else set()
            assert len(team) == 2
            assert evidence.process.pid in team
            others = {thread.cpus for thread in evidence.process.threads if thread.tid not in team}
            assert others == {intel.cpus}
        assert [problem[:28] for problem in missed.problems] == [
            "openmp: asked intel, libgomp",
            "spin: asked 5, idle threads ",
        ]
        assert small.problems[0] == "OpenMP computes with a team of 1 instead of 2"

    asyncio.run(gather())


@pytest.mark.parametrize("value", ["gnu", "llvm"])
def test_workers_that_would_inherit_another_runtime(
    value: str, openmp_context: MakeContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Intel's around the parent they start, answer, and compute with what is asked for."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    inherited = combined_setting(openmp_context(openmp="intel")).preload[0]
    context = openmp_context(openmp=value)
    monkeypatch.setenv("LD_PRELOAD", inherited)
    spec = _worker(make_tiny_network(tmp_path, "bert"), context, combined_setting(context))

    async def gather() -> InstanceEvidence:
        async with Pool([spec]) as pool:
            return await gather_evidence(pool.instances[0])

    assert asyncio.run(gather()).problems == ()

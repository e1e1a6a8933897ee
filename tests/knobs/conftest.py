"""Processes that a knob's setting starts, without a framework; and workers that hold an engine."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final, Protocol

import msgspec
import pytest

from pinstripe.engines import Artefact, EngineReport, LoadRequest, Precision, engine, prepare
from pinstripe.knobs import (
    Context,
    Host,
    KnobEffect,
    Seen,
    Setting,
    combined_setting,
    knob,
    preload_variable,
    read_host,
)
from pinstripe.machine import read_machine
from pinstripe.models import Network
from pinstripe.pool import InstanceEvidence, Pool, WorkerSpec, gather_evidence
from pinstripe.runtime import (
    MemoryPolicyEffect,
    ProcessEvidence,
    ProcessObservation,
    StartRequest,
    read_evidence,
    start,
    thread_environment,
)
from pinstripe.testing.machines import container_2cpu
from pinstripe.testing.tiny_families import make_tiny_network

# As importing torch does: GNU's runtime comes into the global scope, behind what is preloaded.
_OPENMP_PROCESS: Final = """
import ctypes, os, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import msgspec
from pinstripe.runtime import observe_process, read_evidence
print(msgspec.json.encode([observe_process(openmp=True), read_evidence(os.getpid())]).decode())
"""


@pytest.fixture(scope="session")
def host() -> Host:
    """Return what this host has for knobs."""
    return read_host(read_machine())


@pytest.fixture
def openmp_context(host: Host, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Context]:
    """Return a maker of contexts of an instance with an OpenMP engine on two CPUs; it skips what is not installed."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    cpus = tuple(sorted(os.sched_getaffinity(0))[:2])
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")

    def make(*, bound: bool = True, **chosen: str) -> Context:
        context = Context(host=host, engine=engine("torch-eager"), cpus=cpus if bound else None, chosen=chosen)
        library = {"intel": "iomp", "llvm": "omp"}.get(chosen.get("openmp", ""))
        if library and all(one.name != library for one in host.libraries):
            pytest.skip(f"no {library} is installed")
        return context

    return make


@pytest.fixture
def seen_with_openmp(host: Host) -> Callable[[Context, Setting | None], Seen]:
    """Return what is seen of a process with two OpenMP threads, started by a context's knobs or another setting."""
    gnu = [library.path for library in host.libraries if library.name == "gomp"]
    if not gnu:
        pytest.skip("no libgomp is installed")

    def see(context: Context, setting: Setting | None = None) -> Seen:
        of = combined_setting(context) if setting is None else setting
        request = StartRequest(
            argv=(sys.executable, "-c", _OPENMP_PROCESS, gnu[-1]),
            cpus=context.cpus,
            environment={
                **thread_environment(2, os.environ),
                **of.environment,
                **preload_variable(of.preload, of.unload),
            },
            output="keep",
        )
        process = start(request)
        try:
            assert process.wait(60) == 0, process.output_tail()
            line = process.output_tail().splitlines()[-1]
        finally:
            with suppress(OSError):
                process.stop(grace_s=0)
        observation, evidence = msgspec.json.decode(line, type=tuple[ProcessObservation, ProcessEvidence])
        assert context.engine is not None
        return Seen(
            engine=context.engine,
            report=EngineReport(engine="torch-eager", version="1", precision="float32", threads=2),
            process=evidence,
            observation=observation,
            memory=MemoryPolicyEffect(requested="auto", effective="none", nodes=(), why=""),
            cpus=context.cpus,
            cores=(),
            chosen=context.chosen,
        )

    return see


_TORCH_PROCESS: Final = """
import sys
from types import SimpleNamespace
import msgspec
from pinstripe.engines.pytorch.options import start_torch
from pinstripe.engines.pytorch.report import make_report
from pinstripe.engines.torch_eager import TorchEagerOptions
options = msgspec.convert(msgspec.json.decode(sys.argv[1]), TorchEagerOptions)
torch = start_torch(SimpleNamespace(precision="float32", threads=2), options, options.fpmath)
report = make_report(torch, engine="torch-eager", precision="float32", settings={})
print("REPORT" + msgspec.json.encode(report).decode())
"""


_ASKED: Final = {"primitive_cache": "64", "flush_denormals": "on", "interop_threads": "3", "fpmath": "strict"}
_OTHERS: Final = {"primitive_cache": "65", "flush_denormals": "off", "interop_threads": "1"}


@pytest.fixture(scope="session")
def torch_effect(host: Host) -> Callable[..., KnobEffect]:
    """Return what tells a knob's effect in one of two processes with torch, started once a session.

    One is started by knobs, among them isa=avx2 where this machine allows it, and the other by other values of them,
    fpmath=bf16 where this machine allows it, and no isa.
    """
    pytest.importorskip("torch")

    @cache
    def report(*, others: bool) -> EngineReport:
        wanted = dict(_OTHERS if others else _ASKED)
        name, value = ("fpmath", "bf16") if others else ("isa", "avx2")
        if knob(name).refusal(value, torch_context()) is None:
            wanted[name] = value
        return _torch_report(combined_setting(torch_context(**wanted)))

    def torch_context(**chosen: str) -> Context:
        return Context(host=host, engine=engine("torch-eager"), chosen=chosen)

    def effect(name: str, requested: str, *, others: bool = False) -> KnobEffect:
        found = knob(name).effective(_seen(torch_context(**{name: requested}), report(others=others)))
        return KnobEffect(knob=name, requested=requested, effective=found.value, why=found.why)

    return effect


def _torch_report(setting: Setting) -> EngineReport:
    request = StartRequest(
        argv=(sys.executable, "-W", "ignore", "-c", _TORCH_PROCESS, msgspec.json.encode(setting.options).decode()),
        environment={**thread_environment(2, os.environ), **setting.environment},
        output="keep",
    )
    process = start(request)
    try:
        assert process.wait(120) == 0, process.output_tail()
        said = process.output_tail()
    finally:
        with suppress(OSError):
            process.stop(grace_s=0)
    return msgspec.json.decode(said.partition("REPORT")[2].splitlines()[0], type=EngineReport)


def _seen(context: Context, report: EngineReport) -> Seen:
    assert context.engine is not None
    return Seen(
        engine=context.engine,
        report=report,
        process=read_evidence(os.getpid()),
        observation=ProcessObservation(),
        memory=MemoryPolicyEffect(requested="auto", effective="none", nodes=(), why=""),
        cpus=None,
        cores=(),
        chosen=context.chosen,
    )


@pytest.fixture
def reported() -> Callable[..., KnobEffect]:
    """Return what a knob makes of an engine's settings."""

    def effect(name: str, value: str, engine_name: str, **settings: str) -> KnobEffect:
        context = Context(host=Host(machine=container_2cpu()), engine=engine(engine_name), chosen={name: value})
        report = EngineReport(engine=engine_name, version="1", precision="float32", threads=2, settings=settings)
        found = knob(name).effective(_seen(context, report))
        return KnobEffect(knob=name, requested=value, effective=found.value, why=found.why)

    return effect


class Try(Protocol):
    """Runs a worker with knobs, and returns the evidence."""

    def __call__(
        self,
        engine_name: str,
        *,
        precision: Precision = "float32",
        spoil: Callable[[WorkerSpec], WorkerSpec] = lambda spec: spec,
        **knobs: str,
    ) -> InstanceEvidence:
        """Run one.

        Args:
            engine_name: The engine, which is skipped where it is not installed.
            precision: The precision.
            spoil: Changes how the worker is started, so that a knob does not take effect.
            knobs: What is asked for.
        """
        ...


@pytest.fixture(scope="session")
def tiny_artefact(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Network, Artefact]]:
    """Return a tiny network, and what an engine loads of it."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    network = make_tiny_network(tmp_path_factory.mktemp("tiny"), "bert")

    @cache
    def make(name: str) -> tuple[Network, Artefact]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PINSTRIPE_CACHE", str(tmp_path_factory.mktemp("cache")))
            return network, prepare(engine(name), network)

    return make


@pytest.fixture
def try_knobs(
    host: Host,
    tiny_artefact: Callable[[str], tuple[Network, Artefact]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Try:
    """Return what runs a worker of two threads with knobs."""
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path / "cache"))
    cpus = tuple(sorted(os.sched_getaffinity(0))[:2])

    def run(
        engine_name: str,
        *,
        precision: Precision = "float32",
        spoil: Callable[[WorkerSpec], WorkerSpec] = lambda spec: spec,
        **knobs: str,
    ) -> InstanceEvidence:
        one = engine(engine_name)
        pytest.importorskip(one.distributions[0])
        network, artefact = tiny_artefact(engine_name)
        setting = combined_setting(Context(host=host, engine=one, cpus=cpus, chosen=knobs))
        load = LoadRequest(
            network=network, artefact=artefact, precision=precision, threads=len(cpus), options=dict(setting.options)
        )
        spec = WorkerSpec(
            engine=engine_name,
            load=load,
            cpus=cpus,
            knobs=knobs,
            environment=dict(setting.environment),
            preload=setting.preload,
            unload=setting.unload,
        )
        return asyncio.run(_evidence(spoil(spec)))

    return run


async def _evidence(spec: WorkerSpec) -> InstanceEvidence:
    async with Pool([spec]) as pool:
        return await gather_evidence(pool.instances[0])

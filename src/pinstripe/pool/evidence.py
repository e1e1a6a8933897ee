"""What really took effect in an instance, and whether it is what was asked."""

import msgspec

from pinstripe.engines import EngineReport, engine
from pinstripe.knobs import KnobEffect, Seen, knob_effects
from pinstripe.machine import format_cpu_list
from pinstripe.pool.instance import Instance
from pinstripe.pool.messages import Report
from pinstripe.pool.spec import WorkerSpec
from pinstripe.runtime import MemoryPolicyEffect, ProcessEvidence, ProcessObservation, read_evidence, stray_threads

__all__ = ["InstanceEvidence", "gather_evidence"]


class InstanceEvidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Evidence of one instance.

    Attributes:
        index: Its place in the pool.
        cpus: CPUs it was to be bound to; None for an unpinned one.
        memory: Memory policy: requested, effective, why.
        load_ns: Time to load the model.
        first_forward_ns: Time of the first forward pass.
        engine: What the engine says of itself.
        thread_pools: Threads of each thread pool in the process, by its library's path, as threadpoolctl finds them.
        rebound_threads: Threads that a library had moved off the instance's CPUs, or squeezed onto one of them although
            they do not compute, and that were put back.
        process: What the kernel says.
        observation: What the process found out about itself.
        knobs: What was asked for of each knob that concerns the engine, and what is in effect.
        problems: Sentences on what did not take effect as asked; empty if everything did.
    """

    index: int
    cpus: tuple[int, ...] | None
    memory: MemoryPolicyEffect
    load_ns: int
    first_forward_ns: int
    engine: EngineReport
    thread_pools: dict[str, int]
    rebound_threads: int
    process: ProcessEvidence
    observation: ProcessObservation = ProcessObservation()
    knobs: tuple[KnobEffect, ...] = ()
    problems: tuple[str, ...]


async def gather_evidence(instance: Instance) -> InstanceEvidence:
    """Ask the worker, then the kernel.

    Raises:
        WorkerError: The worker ended meanwhile.
    """
    report = await instance.report()
    process = read_evidence(instance.process.pid)
    spec = instance.spec
    seen = Seen(
        engine=engine(spec.engine),
        report=report.engine,
        process=process,
        observation=report.observation,
        memory=instance.process.memory,
        cpus=spec.cpus,
        cores=spec.cores,
        chosen=spec.knobs,
    )
    knobs = knob_effects(seen)
    return InstanceEvidence(
        index=instance.index,
        cpus=spec.cpus,
        memory=instance.process.memory,
        load_ns=instance.load_ns,
        first_forward_ns=instance.first_forward_ns,
        engine=report.engine,
        thread_pools=report.thread_pools,
        rebound_threads=report.rebound_threads,
        process=process,
        observation=report.observation,
        knobs=knobs,
        problems=(*_problems(spec, report, process), *(one.problem for one in knobs if one.problem)),
    )


def _problems(spec: WorkerSpec, report: Report, process: ProcessEvidence) -> list[str]:
    engine, openmp = report.engine, report.observation.openmp
    problems = []
    if spec.cpus is not None and (strays := stray_threads(process, spec.cpus)):
        names = ", ".join(f"{thread.name} ({thread.tid})" for thread in strays)
        problems.append(f"threads may run outside CPUs {format_cpu_list(spec.cpus)}: {names}")
    threads = spec.load.threads
    if threads is not None and engine.threads != threads:
        problems.append(f"{engine.engine} runs {engine.threads} compute threads instead of {threads}")
    if threads is not None and openmp is not None and len(openmp.team) != threads:
        problems.append(f"OpenMP computes with a team of {len(openmp.team)} instead of {threads}")
    if engine.precision != spec.load.precision:
        problems.append(f"{engine.engine} computes in {engine.precision}, not {spec.load.precision}")
    return problems

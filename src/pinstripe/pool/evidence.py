"""What really took effect in an instance, and whether it is what was asked."""

import msgspec

from pinstripe.machine import format_cpu_list
from pinstripe.pool.instance import Instance, WorkerSpec
from pinstripe.pool.messages import Report
from pinstripe.runtime import MemoryPolicyEffect, ProcessEvidence, read_evidence, stray_threads

__all__ = ["InstanceEvidence", "gather_evidence"]


class InstanceEvidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Evidence of one instance.

    Attributes:
        index: Its place in the pool.
        cpus: CPUs it was to be bound to; None for an unpinned one.
        memory: Memory policy: requested, effective, why.
        load_ns: Time to load the model.
        first_forward_ns: Time of the first forward pass.
        report: What the worker and its framework say.
        process: What the kernel says.
        problems: Sentences on what did not take effect as asked; empty if everything did.
    """

    index: int
    cpus: tuple[int, ...] | None
    memory: MemoryPolicyEffect
    load_ns: int
    first_forward_ns: int
    report: Report
    process: ProcessEvidence
    problems: tuple[str, ...]


async def gather_evidence(instance: Instance) -> InstanceEvidence:
    """Ask the worker, then the kernel.

    Raises:
        WorkerError: The worker ended meanwhile.
    """
    report = await instance.report()
    process = read_evidence(instance.process.pid)
    return InstanceEvidence(
        index=instance.index,
        cpus=instance.spec.cpus,
        memory=instance.process.memory,
        load_ns=instance.load_ns,
        first_forward_ns=instance.first_forward_ns,
        report=report,
        process=process,
        problems=tuple(_problems(instance.spec, report, process)),
    )


def _problems(spec: WorkerSpec, report: Report, process: ProcessEvidence) -> list[str]:
    problems = []
    if spec.cpus is not None and (strays := stray_threads(process, spec.cpus)):
        names = ", ".join(f"{thread.name} ({thread.tid})" for thread in strays)
        problems.append(f"threads may run outside CPUs {format_cpu_list(spec.cpus)}: {names}")
    threads = spec.load.threads
    if threads is not None and report.engine.threads != threads:
        problems.append(f"{report.engine.engine} runs {report.engine.threads} compute threads instead of {threads}")
    if report.engine.precision != spec.load.precision:
        problems.append(f"{report.engine.engine} computes in {report.engine.precision}, not {spec.load.precision}")
    return problems

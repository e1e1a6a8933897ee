"""Limits on this process: CPU quota, affinity and cpuset, isolated CPUs."""

import math

from pinstripe.diagnosis.finding import Finding
from pinstripe.diagnosis.observations import Observations
from pinstripe.machine import format_cpu_list
from pinstripe.placement.cores import cut_to
from pinstripe.placement.quota import thread_limit
from pinstripe.placement.words import counted, named_cpus

__all__ = ["affinity", "cpu_quota", "fractional_quota", "isolated", "shared_cores", "throttled"]

_OFTEN = 0.1
_SOMETIMES = 0.01


def cpu_quota(seen: Observations) -> Finding | None:
    """Is the quota below the CPUs that programs see? Frameworks start a thread for each of those."""
    machine = seen.machine
    quota, cpus = machine.cpu_quota, len(machine.allowed)
    cores = len(cut_to(machine.cores, machine.allowed))
    if quota is None or quota >= cpus:
        title = "No CPU quota" if quota is None else "The CPU quota takes nothing away"
        values = counted(cpus, "CPU") if quota is None else f"quota {quota:g} CPUs, {counted(cpus, 'CPU')}"
        return Finding(subject="cpu-quota", severity="good", title=title, seen=values, certainty="certain")
    threads = int(thread_limit(machine))
    return Finding(
        subject="cpu-quota",
        severity="problem" if threads < cores else "warning",
        title=f"The CPU quota of {quota:g} is below the {counted(cpus, 'CPU')} that programs see",
        seen=f"quota {quota:g} CPUs; {counted(cores, 'core')}, {named_cpus(machine.allowed)}",
        cost="Frameworks start a thread for each core or CPU they see, and ignore the quota. Together these use it up "
        "early in each period (100 ms as a rule), and then all of them stand still until the next one.",
        remedy=f"OMP_NUM_THREADS={threads}; in code torch.set_num_threads({threads}), intra_op_num_threads of ONNX "
        "Runtime, INFERENCE_NUM_THREADS of OpenVINO; pinstripe does so by itself. Better than a quota are whole cores: "
        "`docker run --cpuset-cpus`, or Kubernetes' static CPU manager policy",
        certainty="certain" if seen.counters and seen.counters.nr_throttled else "likely",
    )


def throttled(seen: Observations) -> Finding | None:
    """Has the quota stopped this control group?"""
    counters = seen.counters
    if counters is None or not counters.nr_periods or not counters.nr_throttled:
        return None
    share = counters.nr_throttled / counters.nr_periods
    if share < _SOMETIMES:
        return None
    waited = "" if counters.throttled_ns is None else f", {counters.throttled_ns / 1e9:.0f} s of CPU time waiting"
    return Finding(
        subject="throttled",
        severity="problem" if share >= _OFTEN else "warning",
        title=f"The CPU quota stopped this container in {share:.0%} of its periods",
        seen=f"{counters.nr_throttled} of {counters.nr_periods} periods since it was started{waited}",
        cost="Each stop lasts until the next period, up to 100 ms as a rule: the slowest requests are these.",
        remedy="fewer threads, or a higher quota",
        certainty="certain",
    )


def fractional_quota(seen: Observations) -> Finding | None:
    """Is there a part of the quota that whole threads cannot use?"""
    quota = seen.machine.cpu_quota
    if quota is None or quota >= len(seen.machine.allowed) or quota == math.floor(quota):
        return None
    if quota < 1:
        return Finding(
            subject="fractional-quota",
            severity="problem",
            title=f"The CPU quota of {quota:g} stops even a single thread",
            seen=f"quota {quota:g} CPUs",
            cost=f"A thread that computes runs for {quota:.0%} of each period and stands still for the rest.",
            remedy="a quota of 1 or more: `docker run --cpus 1`, Kubernetes `limits: {cpu: 1}`",
            certainty="certain",
        )
    return Finding(
        subject="fractional-quota",
        severity="note",
        title=f"{quota - math.floor(quota):.2g} CPUs of the quota are left over",
        seen=f"quota {quota:g} CPUs",
        cost="A model's threads wait for each other, so that they use whole CPUs; one more would stop them all.",
        remedy=f"a quota of {math.floor(quota)} or {math.ceil(quota)}, or leave the rest to tokenizing and serving",
        certainty="likely",
    )


def affinity(seen: Observations) -> Finding:
    """Are CPUs of the machine kept from us?"""
    machine = seen.machine
    ours, online = len(machine.allowed), len(machine.online)
    if ours == online:
        title = "The only CPU is ours" if online == 1 else f"All {online} CPUs are ours"
        return Finding(
            subject="affinity", severity="good", title=title, seen=named_cpus(machine.online), certainty="certain"
        )
    return Finding(
        subject="affinity",
        severity="note",
        title=f"{ours} of the machine's {online} CPUs are ours",
        seen=f"affinity and cpuset allow {named_cpus(machine.allowed)}; online are {format_cpu_list(machine.online)}",
        cost="Programs that count the machine's CPUs (os.cpu_count(), `nproc --all`) start too many threads.",
        remedy="count with len(os.sched_getaffinity(0)); pinstripe places within what is allowed",
        certainty="possible",
    )


def shared_cores(seen: Observations) -> Finding | None:
    """Do we have CPUs whose siblings on the same core are not ours?"""
    ours = set(seen.machine.allowed)
    shared = [core for core in seen.machine.cores if 0 < len(ours.intersection(core.cpus)) < len(core.cpus)]
    if not shared:
        return None
    others = [cpu for core in shared for cpu in core.cpus if cpu not in ours]
    return Finding(
        subject="shared-cores",
        severity="warning",
        title=f"Others may run on {len(shared)} of our {counted(len(cut_to(seen.machine.cores, ours)), 'core')}",
        seen=f"not ours are their siblings, {named_cpus(others)}",
        cost="CPUs of one core share its arithmetic units: whoever runs on the sibling takes up to half of them.",
        remedy="give whole cores: a cpuset with all CPUs of a core; Kubernetes: CPU manager option "
        "full-pcpus-only=true",
        certainty="possible",
    )


def isolated(seen: Observations) -> Finding | None:
    """Are there CPUs of ours on which the scheduler spreads no threads?"""
    ours = set(seen.machine.allowed)
    alone = sorted(ours.intersection(seen.machine.isolated))
    if not alone:
        return None
    rest = sorted(ours.difference(alone))
    cpus = format_cpu_list(alone)
    return Finding(
        subject="isolated",
        severity="warning" if rest else "problem",
        title=f"{len(alone)} of our {len(ours)} CPUs are isolated from the scheduler",
        seen=f"isolcpus {cpus}",
        cost="Threads are not spread over isolated CPUs: unless each is pinned to its own, they pile up on one.",
        remedy=(f"leave them out (`taskset -c {format_cpu_list(rest)}`), or " if rest else "")
        + f"bind instances to them by name: `pinstripe place --bind {cpus}`",
        certainty="certain",
    )

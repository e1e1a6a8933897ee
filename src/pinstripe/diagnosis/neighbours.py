"""Others on the same CPUs: other processes, and other guests of the hypervisor."""

from pinstripe.diagnosis.finding import Finding
from pinstripe.diagnosis.observations import Observations
from pinstripe.placement.words import counted

__all__ = ["load", "neighbours", "steal"]

_FEW = 0.05
_MANY = 0.25
_STOLEN_LITTLE = 0.01
_STOLEN_MUCH = 0.1
_LOADED = 0.5
_BUSY = 0.01
"""Share of the CPUs' time that has to be wanted before what was stolen of it says anything: on an idle machine that is
what wakes up for a tick, and waits its turn."""


def neighbours(seen: Observations) -> Finding | None:
    """Do other processes use our CPUs?"""
    activity, cpus = seen.activity, len(seen.machine.allowed)
    if activity is None or activity.foreign_cpus is None:
        return None
    share = min(1.0, activity.foreign_cpus / cpus)  # ticks are counted late, a few more than there were
    values = f"others used {activity.foreign_cpus:.1f} of {counted(cpus, 'CPU')} in {activity.duration_s:.1f} s"
    if share < _FEW:
        return Finding(
            subject="neighbours", severity="good", title="No busy neighbours", seen=values, certainty="certain"
        )
    return Finding(
        subject="neighbours",
        severity="problem" if share >= _MANY else "warning",
        title=f"Other processes use {share:.0%} of our CPUs",
        seen=values,
        cost="A model's threads wait for the slowest of them: one that shares its core holds up all. What is "
        "measured now is "
        "partly the neighbours.",
        remedy="see who it is with `top`, and move it; or a cpuset of our own",
        certainty="certain",
    )


def load(seen: Observations) -> Finding | None:
    """Was the host busy within the last minutes, although it is not now? Ours may have been the work."""
    cpus = len(seen.machine.online)
    if seen.load is None or seen.load < _LOADED * cpus:
        return None
    return Finding(
        subject="load",
        severity="note",
        title="This host has been busy within the last minutes",
        seen=f"load average {seen.load:.1f} on {counted(cpus, 'CPU')}",
        cost="If that work comes back it takes time from models here; it may have been our own.",
        remedy="look again in a while, or for longer: `top`",
        certainty="possible",
    )


def steal(seen: Observations) -> Finding | None:
    """Does the hypervisor take time away? Only what is wanted can be taken, so that idle time does not count."""
    counters, activity = seen.counters, seen.activity
    if counters is None or counters.steal_ns is None or counters.busy_ns is None:
        return None
    if not counters.steal_ns and "hypervisor" not in seen.machine.isa:
        return None
    wanted_ns = counters.steal_ns + counters.busy_ns
    since_start = counters.steal_ns / wanted_ns if wanted_ns else 0.0
    was_busy = seen.idle_ns is None or wanted_ns >= _BUSY * (wanted_ns + seen.idle_ns)
    share = since_start if was_busy else 0.0
    values = f"{since_start:.1%} of the time that was wanted since the system was started"
    values += "" if was_busy else ", which was nearly none"
    if activity and activity.steal_cpus is not None and activity.foreign_cpus is not None:
        now = activity.steal_cpus / len(seen.machine.allowed)
        values += f"; {now:.1%} of all time now"
        share = max(share, now)
    if share < _STOLEN_LITTLE <= since_start:
        return Finding(
            subject="steal",
            severity="note",
            title="The hypervisor may take time away (steal)",
            seen=values,
            cost="The machine was idle nearly always, so that these few ticks do not tell what happens under load.",
            remedy="look again while models run",
            certainty="possible",
        )
    if share < _STOLEN_LITTLE:
        return Finding(
            subject="steal",
            severity="good",
            title="The hypervisor takes no time away",
            seen=values,
            certainty="certain",
        )
    return Finding(
        subject="steal",
        severity="problem" if share >= _STOLEN_MUCH else "warning",
        title=f"The hypervisor gives {share:.0%} of our time to other guests (steal)",
        seen=values,
        cost="A stolen thread holds up all others of its model, at times that nothing in the guest can foresee.",
        remedy="a dedicated host, or an instance type without shared or burstable CPUs",
        certainty="certain" if share >= _STOLEN_MUCH else "likely",
    )

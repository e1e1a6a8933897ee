"""How fast the clock may run."""

from typing import Final

from pinstripe.diagnosis.finding import Finding
from pinstripe.diagnosis.observations import Observations
from pinstripe.placement.words import named_cpus

__all__ = ["boost", "clock_cap", "energy_preference", "governor"]

_SELF_GOVERNED: Final = {"intel_pstate", "amd-pstate-epp"}
"""Drivers under which hardware chooses the clock: there `powersave` is the normal governor, and no slow one."""
_SLOW_TO_RISE: Final = {"conservative", "ondemand"}
_CPU: Final = "/sys/devices/system/cpu"


def governor(seen: Observations) -> Finding | None:
    """Does the governor keep the clock low?"""
    power = seen.power
    if not power.governors:
        return None
    values = f"governor {', '.join(power.governors)}; driver {', '.join(power.drivers) or 'unknown'}"
    is_self_governed = bool(power.drivers) and _SELF_GOVERNED.issuperset(power.drivers)
    remedy = f"`echo performance | sudo tee {_CPU}/cpu*/cpufreq/scaling_governor`"
    if "powersave" in power.governors and not is_self_governed:
        return Finding(
            subject="governor",
            severity="problem",
            title="The governor holds the clock at its lowest (powersave)",
            seen=values,
            cost="Everything runs at the lowest frequency, often a third of what the CPU can do.",
            remedy=remedy,
            certainty="certain",
        )
    slow = sorted(_SLOW_TO_RISE.intersection(power.governors))
    if slow:
        return Finding(
            subject="governor",
            severity="note",
            title=f"The clock rises slowly when work comes (governor {slow[0]})",
            seen=values,
            cost="Short requests after a pause run at a low clock; steady load does not suffer.",
            remedy=remedy,
            certainty="likely",
        )
    return Finding(
        subject="governor", severity="good", title="The governor lets the clock rise", seen=values, certainty="certain"
    )


def energy_preference(seen: Observations) -> Finding | None:
    """Is the hardware told to save power?"""
    saving = [word for word in seen.power.preferences if word in {"power", "balance_power"}]
    if not saving:
        return None
    return Finding(
        subject="energy-preference",
        severity="warning" if "power" in saving else "note",
        title="The CPU is told to save power",
        seen=f"energy-performance preference {', '.join(seen.power.preferences)}",
        cost="The clock rises late and stays lower; laptops on battery are set so.",
        remedy=f"`echo performance | sudo tee {_CPU}/cpu*/cpufreq/energy_performance_preference`",
        certainty="likely",
    )


def boost(seen: Observations) -> Finding | None:
    """Are clocks above the base frequency allowed?"""
    if seen.power.boost is None:
        return None
    if seen.power.boost:
        return Finding(
            subject="boost", severity="good", title="Turbo (boost) is on", seen="boost allowed", certainty="certain"
        )
    return Finding(
        subject="boost",
        severity="warning",
        title="Turbo (boost) is off",
        seen="boost not allowed",
        cost="Cores stay at their base frequency, also when power and cooling would allow more. For measuring that "
        "is fine: "
        "times are steadier.",
        remedy=f"`echo 0 | sudo tee {_CPU}/intel_pstate/no_turbo` (Intel) or `echo 1 | sudo tee "
        f"{_CPU}/cpufreq/boost`; if "
        "that is refused, the firmware's set-up has it off",
        certainty="certain",
    )


def clock_cap(seen: Observations) -> Finding | None:
    """Is the clock kept below what the CPU can do? A few per cent are rounding."""
    cap = seen.power.cap
    if cap is None or cap > 0.95 or seen.power.boost is False:  # noqa: PLR2004 - the share that is said here
        return None
    some = seen.power.capped if set(seen.power.capped) != set(seen.machine.allowed) else ()
    return Finding(
        subject="clock-cap",
        severity="warning",
        title=f"The clock is capped{', at worst' if some else ''} at {cap:.0%} of the CPU's highest",
        seen="scaling_max_freq below cpuinfo_max_freq" + (f", the most on {named_cpus(some)}" if some else ""),
        cost="Models that compute rather than wait for memory run slower by about as much.",
        remedy="write the value of cpuinfo_max_freq to scaling_max_freq, or switch off the power profile that set it",
        certainty="likely",
    )

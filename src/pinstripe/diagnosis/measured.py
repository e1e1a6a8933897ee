"""What was measured: the noise floor, and the peak of matrix products."""

from pinstripe.diagnosis.finding import Finding
from pinstripe.diagnosis.observations import Observations

__all__ = ["noise", "peak"]

_QUIET_PERCENT = 2.0
_NOISY_PERCENT = 5.0


def noise(seen: Observations) -> Finding | None:
    """Which differences can be told from noise on this machine?"""
    if seen.noise_percent is None:
        return None
    floor = f"{seen.noise_percent:.1f} %"
    values = f"a configuration compared with itself: the same, give or take {floor}"
    if seen.noise_percent <= _QUIET_PERCENT:
        return Finding(
            subject="noise",
            severity="good",
            title=f"Differences from {floor} on can be measured",
            seen=values,
            certainty="certain",
        )
    return Finding(
        subject="noise",
        severity="note" if seen.noise_percent <= _NOISY_PERCENT else "warning",
        title=f"Differences below {floor} cannot be told from noise",
        seen=values,
        cost="What a change gains or loses is lost among neighbours, clock changes and chance.",
        remedy="measure more rounds: `pinstripe bench MODEL --repeats 20`"
        if seen.noise_percent <= _NOISY_PERCENT
        else "quieten the machine first; `top` says who is busy, and more rounds cannot make up for this much",
        certainty="likely",
    )


def peak(seen: Observations) -> Finding | None:
    """How much can the cores compute?"""
    rates = {precision: gflops for precision, gflops in (seen.peaks or {}).items() if gflops is not None}
    if not rates:
        return None
    return Finding(
        subject="peak",
        severity="good",
        title=f"The cores give {', '.join(f'{gflops:,.0f} GFLOP/s {name}' for name, gflops in rates.items())}",
        seen="the best of several libraries and large matrix products on all our cores, measured",
        certainty="certain",
    )

"""What people should know before they trust a trial's numbers."""

from collections.abc import Callable, Iterator
from typing import Final

from pinstripe.bench import Disturbance, Disturbances, Result, Trial

__all__ = ["remarks"]

_NEAR_CEILING: Final = 0.5

_DISTURBED: Final[dict[Disturbance, Callable[[Disturbances], str]]] = {
    "throttling": lambda seen: f"throttled by its CPU quota in {_percent(seen.throttled_fraction)} of the periods",
    "steal": lambda seen: (
        f"the hypervisor gave {_percent(seen.steal_fraction)} of the CPU time to others; measure when it does not"
    ),
    "foreign-cpu": lambda seen: (
        f"other processes used {_percent(seen.foreign_cpu_fraction)} of the CPU time that the instances have; "
        "stop them, or measure longer"
    ),
    "clock": lambda seen: (
        f"the clock frequency changed by {_percent(seen.clock_change_fraction)} meanwhile; warm up or measure longer"
    ),
    "suspension": lambda seen: f"this process was suspended for {seen.suspended_s:.0f} s meanwhile; repeat it",
}


def remarks(trial: Trial) -> list[str]:
    """Return a trial's failures, and what disturbed it, each as one line that names the trial."""
    label = f"{trial.configuration.label}, {trial.workload.label}"
    said = [*trial.failures, *(_of_result(trial.result) if trial.result else ())]
    return [f"{label}: {remark}" for remark in said]


def _of_result(result: Result) -> Iterator[str]:
    if not result.steady:
        yield "times had not settled when the warm-up ended; measure longer"
    if not result.complete:
        yield "the window's upper bound came before the least number of forwards; raise --max-time"
    if result.parent_cpu > _NEAR_CEILING:
        yield (
            f"the parent used {result.parent_cpu:.0%} of a CPU, above half of the pool's ceiling; "
            "larger batches would measure the model rather than the pool"
        )
    if result.peak_share is not None and result.peak_share > 1:
        yield (
            f"{result.peak_share:.0%} of the measured peak is impossible: the peak was measured badly, most likely "
            "while something else ran; measure again on a quiet machine"
        )
    for name in result.disturbances.seen:
        yield _DISTURBED[name](result.disturbances)
    if result.outliers:
        yield f"{result.outliers} of {result.n} batches took a time far from the others'; they count like the rest"


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{share:.1%}" if share < 0.1 else f"{share:.0%}"  # noqa: PLR2004 - two digits

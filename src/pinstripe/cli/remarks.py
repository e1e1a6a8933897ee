"""What people should know before they trust the numbers of a run."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from pinstripe.bench import Disturbance, Result, Trial

__all__ = ["remarks"]

_NEAR_CEILING: Final = 0.5

_Words = Callable[[Sequence[Result]], str]

_DISTURBED: Final[dict[Disturbance, _Words]] = {
    "throttling": lambda results: (
        f"throttled by the CPU quota in {_worst(results, 'throttled_fraction')} of the periods"
    ),
    "steal": lambda results: (
        f"the hypervisor gave {_worst(results, 'steal_fraction')} of the instances' CPU time to others; "
        "measure when it does not"
    ),
    "foreign-cpu": lambda results: (
        f"other processes used {_worst(results, 'foreign_cpu_fraction')} of the instances' CPU time; "
        "stop them, or measure more rounds (--repeats)"
    ),
    "clock": lambda results: (
        f"the clock frequency changed by {_worst(results, 'clock_change_fraction')} meanwhile; "
        "warm up or measure longer"
    ),
    "suspension": lambda results: (
        f"this process was suspended for {sum(one.disturbances.suspended_s for one in results):.0f} s meanwhile; "
        "repeat it"
    ),
}


def remarks(trials: Sequence[Trial]) -> list[str]:
    """Return failures, and what disturbed the trials: what many of them share as one line."""
    lines = [f"{_name(trial)}: {failure}" for trial in trials for failure in dict.fromkeys(trial.failures)]
    lines += [f"{_name(trial)}: {remark}" for trial in trials if trial.result for remark in _own(trial.result)]
    for words, concerns in _shared():
        concerned = [trial for trial in trials if trial.result and concerns(trial.result)]
        if concerned:
            said = words([trial.result for trial in concerned if trial.result])
            where = _name(concerned[0]) if len(concerned) == 1 else f"{len(concerned)} of {len(trials)} rows"
            lines.append(f"{where}: {said}")
    return lines


def _name(trial: Trial) -> str:
    return f"{trial.configuration.label}, {trial.workload.label}"


def _own(result: Result) -> Iterator[str]:
    if result.load is not None:
        yield from (f"{count:,} requests failed: {kind}" for kind, count in result.load.failures.items())
    if result.incomplete_because and (result.load is None or result.load.valid):
        yield result.incomplete_because
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


def _shared() -> Iterator[tuple[_Words, Callable[[Result], bool]]]:
    """Yield what may concern many trials at a time, and which."""
    yield _invalid, lambda result: result.load is not None and not result.load.valid
    yield _saturated, lambda result: result.load is not None and bool(result.load.saturated)
    yield lambda _: "times had not settled when the warm-up ended; measure longer", lambda result: not result.steady
    for name, words in _DISTURBED.items():
        yield words, partial(_is_seen, name)
    yield _outliers, lambda result: result.outliers > 0
    yield lambda _: "a few rounds decide little; raise --repeats", _is_undecided


def _is_undecided(result: Result) -> bool:
    """Return whether a comparison was left open by too few rounds for a bootstrap."""
    return result.ratio is not None and result.ratio.verdict == "undecided" and result.ratio.method != "bootstrap"


def _is_seen(name: Disturbance, result: Result) -> bool:
    return name in result.disturbances.seen


def _invalid(results: Sequence[Result]) -> str:
    loads = [result.load for result in results if result.load]
    return max(loads, key=lambda load: load.lag_p99_ms).invalid_because or ""


def _saturated(results: Sequence[Result]) -> str:
    return next((result.load.saturated_because for result in results if result.load), None) or ""


def _outliers(results: Sequence[Result]) -> str:
    outliers, values = sum(one.outliers for one in results), sum(one.n for one in results)
    return f"{outliers} of {values} batches took a time far from the others'; they count like the rest"


def _worst(results: Sequence[Result], name: str) -> str:
    """Return the largest share in words: `up to` it, if there are several."""
    share = max(getattr(one.disturbances, name) for one in results)
    digits = f"{share:.1%}" if share < 0.1 else f"{share:.0%}"  # noqa: PLR2004 - two digits
    return f"up to {digits}" if len(results) > 1 else digits

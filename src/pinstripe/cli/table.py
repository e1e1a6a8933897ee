"""Trials as a table for people."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from pinstripe.bench import LatencyMs, Ratio, Result, Trial

__all__ = ["print_trials"]

_MIB: Final = 1 << 20
_NEAR_CEILING: Final = 0.5
_LEAST_NAME_WIDTH: Final = 12
_COLUMNS: Final = ("samples/s", "tokens/s", "p50 ms", "p90 ms", "p99 ms", "n", "MiB", "ratio (95 % CI)")


def print_trials(trials: Sequence[Trial], console: Console) -> None:
    """Print the trials of a run: a table for each workload with equal columns, and remarks below.

    Numbers are never cut: where the window is narrow, the configurations' names are folded.
    """
    first = {trial.workload: trial for trial in reversed(trials)}
    cells = {id(trial): _cells(trial.result, base=first[trial.workload] is trial) for trial in trials}
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *cells.values(), strict=True)]
    for workload in dict.fromkeys(trial.workload for trial in trials):
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
        table.add_column("configuration", overflow="fold", min_width=_LEAST_NAME_WIDTH)
        for name, width in zip(_COLUMNS, widths, strict=True):
            table.add_column(name, justify="right", no_wrap=True, width=width)
        for trial in trials:
            if trial.workload == workload:
                table.add_row(trial.configuration.label, *cells[id(trial)])
        console.print(workload.label, style="bold", highlight=False)
        console.print(table)
    for remark in dict.fromkeys(remark for trial in trials for remark in _remarks(trial)):
        console.print(remark, style="yellow", highlight=False)


def _cells(result: Result | None, *, base: bool) -> list[str]:
    if result is None:
        return ["failed", *[""] * (len(_COLUMNS) - 1)]
    return [
        _number(result.samples_per_s),
        f"{result.tokens_per_s:,.0f}",
        *_latencies(result.latency_ms),
        str(result.n),
        "?" if result.rss_bytes is None else f"{result.rss_bytes / _MIB:,.0f}",
        "1 (base)" if base else _ratio(result.ratio),
    ]


def _latencies(latency: LatencyMs) -> list[str]:
    return [_number(value) for value in (latency.p50, latency.p90, latency.p99)]


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits say all that is known


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "no base"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f} (one pair)"
    return f"{ratio.value:.2f} ({_number(ratio.low)}-{_number(ratio.high)})"


def _remarks(trial: Trial) -> list[str]:
    label = f"{trial.configuration.label}, {trial.workload.label}"
    remarks = [f"{label}: {failure}" for failure in trial.failures]
    if trial.result and not trial.result.steady:
        remarks.append(f"{label}: times had not settled when the warm-up ended; measure longer")
    if trial.result and trial.result.suspended_s:
        remarks.append(f"{label}: this process was suspended for {trial.result.suspended_s:.0f} s meanwhile; repeat it")
    if trial.result and not trial.result.complete:
        remarks.append(f"{label}: the window's upper bound came before the least number of forwards; raise --max-time")
    if trial.result and trial.result.parent_cpu > _NEAR_CEILING:
        remarks.append(
            f"{label}: the parent used {trial.result.parent_cpu:.0%} of a CPU, above half of the pool's ceiling; "
            "larger batches would measure the model rather than the pool"
        )
    if trial.result and trial.result.throttled:
        remarks.append(f"{label}: throttled by its CPU quota while it was measured")
    return remarks

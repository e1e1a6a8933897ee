"""Trials as a table for people."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from pinstripe.bench import LatencyMs, Ratio, Result, Trial

__all__ = ["print_trials"]

_MIB: Final = 1 << 20
_NEAR_CEILING: Final = 0.5
_COLUMNS: Final = ("samples/s", "tokens/s", "p50 ms", "p90 ms", "p99 ms", "n", "RSS MiB", "ratio (95 % CI)")


def print_trials(trials: Sequence[Trial], console: Console) -> None:
    """Print a table of trials, a block a workload, and remarks below it."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("configuration", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for workload in dict.fromkeys(trial.workload for trial in trials):
        table.add_row(f"[bold]{workload.label}[/bold]")
        for trial in trials:
            if trial.workload == workload:
                table.add_row(f"  {trial.configuration.label}", *_cells(trial.result))
    console.print(table)
    for remark in dict.fromkeys(remark for trial in trials for remark in _remarks(trial)):
        console.print(remark, style="yellow", highlight=False)


def _cells(result: Result | None) -> list[str]:
    if result is None:
        return ["failed"]
    return [
        _number(result.samples_per_s),
        f"{result.tokens_per_s:,.0f}",
        *_latencies(result.latency_ms),
        str(result.n),
        "?" if result.rss_bytes is None else f"{result.rss_bytes / _MIB:,.0f}",
        _ratio(result.ratio),
    ]


def _latencies(latency: LatencyMs) -> list[str]:
    return [_number(value) for value in (latency.p50, latency.p90, latency.p99)]


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits say all that is known


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "1 (base)"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f} (one pair)"
    return f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def _remarks(trial: Trial) -> list[str]:
    label = f"{trial.configuration.label}, {trial.workload.label}"
    remarks = [f"{label}: {failure}" for failure in trial.failures]
    if trial.result and not trial.result.steady:
        remarks.append(f"{label}: times had not settled when the warm-up ended; measure longer")
    if trial.result and trial.result.parent_cpu > _NEAR_CEILING:
        remarks.append(
            f"{label}: the parent used {trial.result.parent_cpu:.0%} of a CPU, above half of the pool's ceiling; "
            "larger batches would measure the model rather than the pool"
        )
    if trial.result and trial.result.throttled:
        remarks.append(f"{label}: throttled by its CPU quota while it was measured")
    return remarks

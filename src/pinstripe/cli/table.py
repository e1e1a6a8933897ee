"""Trials as a table for people."""

import math
from collections.abc import Sequence
from itertools import compress
from typing import Final

from rich.console import Console
from rich.table import Table

from pinstripe.bench import Ratio, Result, Trial
from pinstripe.cli.console import can_show
from pinstripe.cli.remarks import remarks

__all__ = ["print_trials"]

_MIB: Final = 1 << 20
_LEAST_NAME_WIDTH: Final = 13
_LEAST_FOR_P99: Final = 299
_COLUMNS: Final = (
    *("offered/s", "samples/s", "tokens/s", "padding", "GFLOP/s (of peak)", "p50 ms", "p90 ms", "p99 ms (≤95 %)"),
    *("n", "MiB", "ratio (95 % CI)"),
)
_DISPENSABLE: Final = ("MiB", "p90 ms", "tokens/s")
"""Left out, in this order, where a table is still too wide; JSON has them."""
_SUBSTITUTES: Final[dict[str, str | int | None]] = {"≤": "<=", "∞": "inf"}
"""For terminals that do not have these signs."""


def print_trials(trials: Sequence[Trial], console: Console) -> None:
    """Print the trials of a run: a table for each workload with columns of equal width, and remarks below.

    Numbers are never cut: where the window is narrow, intervals go below their values, and the configurations' names
    are folded; where it is narrower still, dispensable columns are left out.
    """
    first = _first_by_subject(trials)
    classes = _classes(trials)
    rows: list[Sequence[str]] = [
        [*_COLUMNS[:-3], *classes.values(), *_COLUMNS[-3:]],
        *(_cells(trial, tuple(classes), base=first[trial.workload.subject] is trial) for trial in trials),
    ]
    rows = _without_empty_columns(rows)
    if not can_show("".join(_SUBSTITUTES), console.encoding):
        rows = [[cell.translate(str.maketrans(_SUBSTITUTES)) for cell in row] for row in rows]
    if _width(rows) > console.width:
        rows = [[cell.replace(" (", "\n(") for cell in row] for row in rows]
    for name in _DISPENSABLE:
        if _width(rows) > console.width:
            rows = _without_column(rows, rows[0].index(name))
    header, *cells = rows
    for subject, base in first.items():
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
        table.add_column("configuration", overflow="fold", min_width=_LEAST_NAME_WIDTH)
        own = [(trial, row) for trial, row in zip(trials, cells, strict=True) if trial.workload.subject == subject]
        said = [any(column) for column in zip(*(row for _, row in own), strict=True)]
        for name, width in compress(zip(header, _widths([header, *cells]), strict=True), said):
            table.add_column(name, justify="right", no_wrap=True, width=width)
        for trial, row in own:
            name = f"{trial.configuration.label} {trial.workload.batching}".rstrip()
            table.add_row(name, *compress(row, said))
        console.print(base.workload.title, style="bold")
        console.print(table)
    for remark in remarks(trials):
        console.print(remark, style="yellow")


def _first_by_subject(trials: Sequence[Trial]) -> dict[str, Trial]:
    """Return the first trial of each subject, in order: what the others are compared with."""
    first: dict[str, Trial] = {}
    for trial in trials:
        first.setdefault(trial.workload.subject, trial)
    return first


def _without_empty_columns(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return a header and rows without the columns that say nothing of any trial."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    return list(zip(*columns, strict=True))


def _without_column(rows: Sequence[Sequence[str]], number: int) -> list[Sequence[str]]:
    return [[*row[:number], *row[number + 1 :]] for row in rows]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column, whose cells may have several lines."""
    return [max(len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)]


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Return the width of a table, the least for its configurations' names and a blank before each column included."""
    return _LEAST_NAME_WIDTH + sum(width + 1 for width in _widths(rows))


def _classes(trials: Sequence[Trial]) -> dict[int | None, str]:
    """Return columns for the length classes of requests, ascending; none if all requests are of one class."""
    loads = [trial.result.load for trial in trials if trial.result and trial.result.load]
    found = {one.max_tokens for load in loads for one in load.classes}
    ordered = sorted(most for most in found if most is not None) + ([None] if None in found else [])
    if len(ordered) < 2:  # noqa: PLR2004 - a single class is all requests
        return {}
    return {most: "p99 rest" if most is None else f"p99 ≤{most}" for most in ordered}


def _cells(trial: Trial, classes: Sequence[int | None], *, base: bool) -> list[str]:
    result = trial.result
    if result is None:
        return ["", "failed", *[""] * (len(_COLUMNS) + len(classes) - 2)]
    p99_by_class = {one.max_tokens: _number(one.p99_ms) for one in result.load.classes} if result.load else {}
    return [
        _offered(trial),
        _number(result.samples_per_s),
        f"{result.tokens_per_s:,.0f}",
        f"{result.padding_fraction:.1%}" if result.padding_fraction else "",
        _gflops(result),
        _number(result.latency_ms.p50),
        _number(result.latency_ms.p90),
        _p99(result),
        *(p99_by_class.get(most, "") for most in classes),
        str(result.n),
        "?" if result.rss_bytes is None else f"{result.rss_bytes / _MIB:,.0f}",
        "1 (base)" if base else _ratio(result.ratio),
    ]


def _offered(trial: Trial) -> str:
    """Return how many texts arrived a second; nothing where their number depends on the answers."""
    arrivals, load = trial.workload.arrivals, trial.result and trial.result.load
    if arrivals is None or not load or load.offered_per_s is None:
        return ""
    return _number(load.offered_per_s * arrivals.texts)


def _gflops(result: Result) -> str:
    """Return the rate with its share of the peak; nothing where no peak was measured."""
    if result.gflops is None or result.peak_share is None:
        return ""
    return f"{_number(result.gflops)} ({result.peak_share:.0%})"


def _p99(result: Result) -> str:
    """Return the percentile with its bound, or with the number of values that a bound needs."""
    bound = result.latency_bound_ms.p99
    said = f"(n<{_LEAST_FOR_P99})" if bound is None else f"(≤{_number(bound)})"
    return f"{_number(result.latency_ms.p99)} {said}"


def _number(value: float) -> str:
    if math.isinf(value):
        return "∞"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits say all that is known


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "no base"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f} (one pair)"
    return f"{_precise(ratio.value)} {ratio.verdict} ({_precise(ratio.low)}-{_precise(ratio.high)})"


def _precise(value: float) -> str:
    """Return a ratio to hundredths, or to three digits if it is large."""
    return f"{value:.2f}" if value < 10 else f"{value:.3g}" if value < 1000 else "∞"  # noqa: PLR2004 - see above

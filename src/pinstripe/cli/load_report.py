"""What a load found, for people."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pinstripe.cli.console import can_show
from pinstripe.configuration import Arrivals
from pinstripe.load import LoadPercentiles, LoadReport, Peak, PeakStep

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_peak", "print_report"]

_LEAST_FOR_P99: Final = 299
_LEAST_FOR_QUEUE: Final = 50
_KEPT_UP: Final = 0.9
_WORDS: Final = ("", "because")
"""Headers of columns that hold words."""
_SUBSTITUTES: Final[dict[str, str | int | None]] = {"≤": "<=", "∞": "inf"}
"""For terminals that do not have these signs."""


def print_report(report: LoadReport, arrivals: Arrivals, console: "Console") -> None:
    """Print a run: percentiles as a table, rates below, and what should be known before they are trusted."""
    rows = [
        ("latency ms", report.latency_ms),
        ("  ≤ (95 %)", report.latency_bound_ms),
        ("service ms", report.service_ms),
        ("generator's lag ms", report.lag_ms),
    ]
    if report.clients is not None:  # a closed loop is never late
        rows = [("latency ms (closed loop)", report.latency_ms), rows[1]]
    _print_table(
        arrivals.label,
        ("", "p50", "p90", "p95", "p99", "p99.9"),
        [(name, *(_number(value) for value in _values(times))) for name, times in rows],
        console,
    )
    for line in _rates(report):
        _print(line, console)
    for remark in _remarks(report):
        _print(remark, console, style="yellow")


def print_peak(peak: Peak, console: "Console") -> None:
    """Print a search: its runs as a table, and what it found."""
    _print_table(
        f"p99 ≤ {peak.p99_ms:g} ms",
        ("requests/s", "seed", "requests", "p50 ms", "p99 ms", "holds", "because"),
        [_step(step) for step in peak.steps],
        console,
    )
    for line, style in _found(peak):
        _print(line, console, style=style)


def _found(peak: Peak) -> Iterator[tuple[str, str]]:
    if peak.limit == "stopped":
        best = max((step.rate_per_s for step in peak.steps if step.holds), default=None)
        so_far = "no rate has held so far" if best is None else f"the highest rate that held so far is {best:.1f}/s"
        yield f"it was stopped; {so_far}", "yellow"
        return
    if peak.rate_per_s is None:
        lowest = min(peak.steps, key=lambda step: step.rate_per_s)
        yield f"no rate holds; at {lowest.rate_per_s:.3g} a second: {lowest.because}", "yellow"
    else:
        last = peak.steps[-1].report
        bound = f", ≤ {_number(last.latency_bound_ms.p99)} ms with 95 % confidence"
        held = f"{peak.rate_per_s:.1f} requests a second hold p99 ≤ {peak.p99_ms:g} ms"
        yield f"{held}; with other arrivals p99 was {_number(last.latency_ms.p99)} ms{bound}", "bold"
    if peak.limit == "generator":
        over = min((step.rate_per_s for step in peak.steps if not step.report.valid), default=math.inf)
        yield f"the generator, not the server, is the limit at {over:.1f} requests a second", "yellow"


def _step(step: PeakStep) -> tuple[str, ...]:
    report = step.report
    return (
        f"{step.rate_per_s:,.1f}",
        str(step.seed),
        f"{report.requests:,}",
        _number(report.latency_ms.p50),
        _number(report.latency_ms.p99),
        "yes" if step.holds else "no",
        step.because or "",
    )


def _rates(report: LoadReport) -> Iterator[str]:
    offered = "" if report.offered_per_s is None else f"offered {report.offered_per_s:,.1f}/s, "
    yield (
        f"{_requests(report.requests)}, {report.answered:,} answered; {offered}completed "
        f"{report.completed_per_s:,.1f}/s; at most {report.most_in_flight:,} under way; the generator used "
        f"{report.cpu_share:.0%} of a CPU"
    )
    if report.failures:
        kinds = "; ".join(f"{kind} ({count:,})" for kind, count in list(report.failures.items())[:5])
        more = "; …" if len(report.failures) > 5 else ""  # noqa: PLR2004 - as many as above
        yield f"failed, and so infinitely late: {kinds}{more}"


def _remarks(report: LoadReport) -> Iterator[str]:
    if report.end == "stopped":
        yield "it was stopped; this is what was measured so far"
    if not report.valid:
        yield f"invalid: {report.invalid_because}"
    if report.saturated:
        yield f"saturated: {report.saturated_because}"
    elif report.valid and _left_a_queue(report):
        yield (
            f"answered {report.completed_per_s:,.1f} of {report.offered_per_s:,.1f} offered a second; too few answers "
            "to tell whether it would go on so"
        )
    if report.clients is not None:
        yield (
            "a closed loop sends less when the server is slow, so its latencies are not those of users who arrive by "
            "themselves; use --rate for a promise to them"
        )
    elif report.requests < _LEAST_FOR_P99:
        are = "is" if report.requests == 1 else "are"
        yield f"{_requests(report.requests)} {are} too few to bound the 99th percentile, which needs {_LEAST_FOR_P99}"


def _left_a_queue(report: LoadReport) -> bool:
    """Return whether much was still to be answered when the last request was due, in a run too short to judge that.

    Requests that failed are no queue, so they are taken out of what was offered.
    """
    if report.saturated is not None or report.offered_per_s is None or report.requests < _LEAST_FOR_QUEUE:
        return False
    return report.completed_per_s < _KEPT_UP * report.offered_per_s * report.answered / report.requests


def _requests(number: int) -> str:
    return "1 request" if number == 1 else f"{number:,} requests"


def _values(times: LoadPercentiles) -> tuple[float | None, ...]:
    return times.p50, times.p90, times.p95, times.p99, times.p999


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if math.isinf(value):
        return "∞"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" if value < 10 else f"{value:.1f}"  # noqa: PLR2004


def _print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], console: "Console") -> None:
    from rich.table import Table  # noqa: PLC0415

    _print(title, console, style="bold")
    if not console.is_terminal:
        for line in _lines(header, rows):
            _print(line, console)
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name in header:
        table.add_column(name, justify="left" if name in _WORDS else "right", no_wrap=name not in _WORDS)
    for row in rows:
        table.add_row(*(_shown(cell, console) for cell in row))
    console.print(table)


def _lines(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table for a file or another program: a line for each row, however long, without blanks at its end."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        cells = zip(row, widths, header, strict=True)
        yield "  ".join(cell.ljust(w) if name in _WORDS else cell.rjust(w) for cell, w, name in cells).rstrip()


def _print(text: str, console: "Console", style: str | None = None) -> None:
    console.print(_shown(text, console), style=style, soft_wrap=True)


def _shown(text: str, console: "Console") -> str:
    if can_show("".join(_SUBSTITUTES), console.encoding):
        return text
    return text.translate(str.maketrans(_SUBSTITUTES))

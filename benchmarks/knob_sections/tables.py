"""Records of arms as Markdown: rates, page faults, and what the hypothesis about glibc says."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from knob_sections.arms import arm_label, failure_lines, in_ms
from pinstripe.bench import Ratio, Record, Result, Trial, summarize

__all__ = ["hypothesis_table", "record_tables"]

_REPLACEMENTS: Final = ("tcmalloc", "jemalloc", "jemalloc-keep", "mimalloc", "tbbmalloc")
_FAULTS_OF: Final = ("faults: base", "faults: glibc-tuned", "faults: fastest other")
_RECOVERED: Final = 0.5
"""Share of a replacement's gain that glibc-tuned has to have for the hypothesis to hold."""
_FEWER: Final = 0.5
"""Share of glibc's page faults below which there are far fewer."""
_Shape: TypeAlias = tuple[int, int]
"""Batch and sequence length."""


def record_tables(records: Sequence[Record]) -> Iterator[str]:
    """Yield lines of Markdown: for each run and batch size, an arm a row, a sequence length a column."""
    for trials in _runs(records):
        for batch in sorted({trial.workload.batch or 0 for trial in trials}):
            part = [trial for trial in trials if trial.workload.batch == batch]
            heading = f"{_heading(part[0])}, batch {batch}"
            yield from _table(f"{heading}: latency (base) and how many times faster, by tokens", part, _speed)
            yield from _table(f"{heading}: page faults of a forward pass, by tokens", part, _faults)
        yield from failure_lines((trial.configuration, why) for trial in trials for why in trial.failures)
        yield ""


def hypothesis_table(records: Sequence[Record]) -> Iterator[str]:
    """Yield lines of Markdown that say, for each shape, whether page faults explain what other allocators gain.

    The hypothesis: glibc gives large buffers back to the kernel after each forward pass and has them faulted in again
    in the next. Then where another allocator is faster, glibc has many page faults and glibc-tuned (which gives
    nothing back) has few, and glibc-tuned is faster by at least half as much.
    """
    columns = (*_FAULTS_OF, "fastest other", "glibc-tuned", "share of the gain", "reading")
    yield f"| model, engine | batch x tokens | {' | '.join(columns)} |"
    yield f"|---|---|{'---:|' * (len(columns) - 1)}---|"
    for trials in _runs(records):
        shapes: dict[_Shape, dict[str, Result]] = defaultdict(dict)
        for trial in trials:
            if trial.result is not None:
                shape = (trial.workload.batch or 0, trial.workload.sequence_tokens or 0)
                shapes[shape][_allocator(trial)] = trial.result
        for (batch, tokens), by_allocator in sorted(shapes.items()):
            if (row := _hypothesis_row(by_allocator)) is not None:
                yield f"| {_heading(trials[0])} | {batch} x {tokens} | {' | '.join(row)} |"


def _allocator(trial: Trial) -> str:
    return trial.configuration.knobs.get("allocator", "base")


def _hypothesis_row(results: Mapping[str, Result]) -> list[str] | None:
    others = {name: one.ratio for name, one in results.items() if name in _REPLACEMENTS and one.ratio is not None}
    base, tuned = results.get("base"), results.get("glibc-tuned")
    if base is None or tuned is None or tuned.ratio is None or not others:
        return None
    fastest, ratio = max(others.items(), key=lambda item: item[1].value)
    faults = [one.page_faults_per_forward for one in (base, tuned, results[fastest])]
    share = math.log(tuned.ratio.value) / math.log(ratio.value) if ratio.verdict == "faster" else None
    return [
        *("?" if one is None else f"{one:,.0f}" for one in faults),
        f"{fastest} {_said(ratio)}",
        _said(tuned.ratio),
        "" if share is None else f"{share:.0%}",
        _reading(tuned.ratio, share, faults[0], faults[1]),
    ]


def _reading(tuned: Ratio, share: float | None, of_base: float | None, of_tuned: float | None) -> str:
    if share is None:
        return "nothing to explain"
    if of_base is None or of_tuned is None:
        return "page faults unknown"
    if of_tuned > of_base * _FEWER:
        return "refuted: no fewer faults"
    if tuned.verdict == "faster" and share >= _RECOVERED:
        return "confirmed"
    return "refuted: fewer faults, little gain"


def _runs(records: Sequence[Record]) -> Iterator[list[Trial]]:
    runs: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        runs[record.run].append(record)
    return (summarize(run) for run in runs.values())


def _heading(trial: Trial) -> str:
    return f"{trial.model}, {trial.configuration.engine}, {trial.configuration.cores} cores"


def _table(title: str, trials: Sequence[Trial], cell: Callable[[Result], str]) -> Iterator[str]:
    lengths = sorted({trial.workload.sequence_tokens or 0 for trial in trials})
    rows: dict[str, dict[int, str]] = {}
    labels: dict[str, str] = {}
    for trial in trials:
        key = arm_label(trial.configuration)
        labels.setdefault(key, arm_label(trial.configuration, trial.evidence[0].knobs if trial.evidence else ()))
        rows.setdefault(key, {})[trial.workload.sequence_tokens or 0] = cell(trial.result) if trial.result else "failed"
    yield from (f"**{title}**", "", f"| | {' | '.join(map(str, lengths))} |", f"|---|{'---:|' * len(lengths)}")
    yield from (
        f"| {labels[key]} | {' | '.join(cells.get(one, '') for one in lengths)} |" for key, cells in rows.items()
    )
    yield ""


def _speed(result: Result) -> str:
    if result.ratio is None:
        return in_ms(result.latency_ms.p50)
    return _said(result.ratio)


def _faults(result: Result) -> str:
    return "?" if result.page_faults_per_forward is None else f"{result.page_faults_per_forward:,.0f}"


def _said(ratio: Ratio) -> str:
    """Return a ratio with its interval, in bold where it decides."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.2f} (one pair)"
    said = f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
    return said if ratio.verdict == "undecided" else f"**{said}**"

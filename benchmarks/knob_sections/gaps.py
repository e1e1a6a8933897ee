"""Requests with pauses between them: what a first request after a pause takes, and what waiting costs in CPU time.

In a tight loop threads that spin are always ready, and cost nothing that would not be used; services have pauses.
"""

import asyncio
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final, TypeVar

import msgspec

from knob_sections.arms import arm_label, failure_lines, in_ms
from knob_sections.measuring import Subject
from pinstripe.bench import fixed_batch, paired_ratio
from pinstripe.bench.watch import cpu_time_ns
from pinstripe.configuration import Configuration
from pinstripe.errors import ExecutionError
from pinstripe.knobs import KnobEffect
from pinstripe.models import TokenBatch
from pinstripe.pool import Pool, Setup

__all__ = ["GapRecord", "gap_tables", "measure_gaps"]

_WARM_S: Final = 1.0
_Value = TypeVar("_Value")


class GapRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One arm with one pause in one round.

    Attributes:
        run: Those of one run may be compared in pairs.
        repeat: Round, from 0.
        model: Name of the model.
        processor: Model name of the CPU.
        configuration: How it ran.
        batch: Texts of a request.
        sequence_tokens: Tokens of each text.
        gap_ms: Pause before each request, in milliseconds.
        latency_ns: Raw times from handing a request out to having its results.
        cpu_ns: CPU time of the worker over all pauses and requests.
        elapsed_ns: How long these were.
        knobs: What was in effect.
        failure: Why there are no values; None where there are.
    """

    run: str
    repeat: int
    model: str
    processor: str
    configuration: Configuration
    batch: int
    sequence_tokens: int
    gap_ms: float
    latency_ns: tuple[int, ...] = ()
    cpu_ns: int = 0
    elapsed_ns: int = 0
    knobs: tuple[KnobEffect, ...] = ()
    failure: str | None = None


async def measure_gaps(
    subject: Subject,
    setups: Sequence[Setup],
    *,
    batch: int,
    sequence_tokens: int,
    gaps_ms: Sequence[float],
    requests: int,
    rounds: int,
    keep: Callable[[GapRecord], None],
    say: Callable[[str], None],
) -> None:
    """Measure all arms with all pauses, in rounds that are rotated, each arm in a fresh process.

    Args:
        subject: What the arms have in common.
        setups: The arms.
        batch: Texts of a request.
        sequence_tokens: Tokens of each text.
        gaps_ms: Pauses before a request, in milliseconds.
        requests: Requests with each pause.
        rounds: How often.
        keep: Is given each record.
        say: Is told what begins, and what failed.
    """
    run = uuid.uuid4().hex
    tokens = fixed_batch(subject.network, batch, sequence_tokens)
    for repeat in range(rounds):
        for setup in _rotated(setups, repeat):
            say(f"round {repeat + 1} of {rounds}: {subject.network.name}, {setup.configuration.label}, with pauses")
            common = GapRecord(
                run=run,
                repeat=repeat,
                model=subject.network.name,
                processor=subject.machine.model_name or "",
                configuration=setup.configuration,
                batch=batch,
                sequence_tokens=sequence_tokens,
                gap_ms=0,
            )
            with _apart(setup):
                records = await _measure_one(common, setup, tokens, _rotated(gaps_ms, repeat), requests)
            for record in records:
                if record.failure:
                    say(f"failed: {setup.configuration.label}: {record.failure}")
                keep(record)


async def _measure_one(
    common: GapRecord, setup: Setup, batch: TokenBatch, gaps_ms: Sequence[float], requests: int
) -> list[GapRecord]:
    try:
        async with Pool(setup.specs, restart=False) as pool:
            warm_until = time.monotonic() + _WARM_S
            while time.monotonic() < warm_until:
                await pool.submit(batch)
            records = [await _with_gap(common, pool, batch, gap_ms, requests) for gap_ms in gaps_ms]
            evidence = await pool.evidence()
    except ExecutionError as error:
        return [msgspec.structs.replace(common, failure=str(error))]
    problems = "; ".join(problem for one in evidence for problem in one.problems)
    if problems:  # what did not take effect was not measured
        return [msgspec.structs.replace(common, failure=problems)]
    return [msgspec.structs.replace(record, knobs=evidence[0].knobs) for record in records]


async def _with_gap(common: GapRecord, pool: Pool, batch: TokenBatch, gap_ms: float, requests: int) -> GapRecord:
    pid = pool.instances[0].process.pid
    await pool.submit(batch)  # what the pause before it does to this one is not counted
    latency_ns = []
    began_ns, cpu_ns = time.monotonic_ns(), cpu_time_ns(pid)
    for _ in range(requests):
        await asyncio.sleep(gap_ms / 1000)
        latency_ns.append((await pool.submit(batch)).timing.round_trip_ns)
    return msgspec.structs.replace(
        common,
        gap_ms=gap_ms,
        latency_ns=tuple(latency_ns),
        cpu_ns=cpu_time_ns(pid) - cpu_ns,
        elapsed_ns=time.monotonic_ns() - began_ns,
    )


def gap_tables(records: Sequence[GapRecord]) -> Iterator[str]:
    """Yield lines of Markdown: for each run, latency after a pause, and CPU time of a request with its pause."""
    runs: dict[str, list[GapRecord]] = defaultdict(list)
    for record in records:
        runs[record.run].append(record)
    for run in runs.values():
        first = run[0]
        shape = f"{first.batch} x {first.sequence_tokens} tokens"
        heading = f"{first.model}, {first.configuration.engine}, {first.configuration.cores} cores, {shape}"
        arms: dict[str, list[GapRecord]] = defaultdict(list)
        for record in run:
            arms[arm_label(record.configuration)].append(record)
        gaps = sorted({record.gap_ms for record in run if record.latency_ns})
        yield from _table(
            f"{heading}: latency after a pause of … ms (median; compared with the base)", gaps, arms, _latency
        )
        yield from _table(f"{heading}: CPU time in ms of a request and the pause before it", gaps, arms, _cpu)
        yield from failure_lines((one.configuration, one.failure) for one in run if one.failure)
        yield ""


def _table(
    title: str,
    gaps: Sequence[float],
    arms: dict[str, list[GapRecord]],
    cell: Callable[[Sequence[GapRecord], Sequence[GapRecord]], str],
) -> Iterator[str]:
    base = next(iter(arms.values()))
    yield from (f"**{title}**", "", f"| | {' | '.join(f'{gap:g}' for gap in gaps)} |", f"|---|{'---:|' * len(gaps)}")
    for of_arm in arms.values():
        label = arm_label(of_arm[0].configuration, next((one.knobs for one in of_arm if one.knobs), ()))
        cells = [cell(_with(of_arm, gap), _with(base, gap)) for gap in gaps]
        yield f"| {label} | {' | '.join(cells)} |"
    yield ""


def _with(records: Sequence[GapRecord], gap_ms: float) -> list[GapRecord]:
    return [record for record in records if record.gap_ms == gap_ms and record.latency_ns]


def _latency(records: Sequence[GapRecord], base: Sequence[GapRecord]) -> str:
    if not records:
        return "failed"
    typical = {record.repeat: median(record.latency_ns) for record in records}
    value = in_ms(median(typical.values()) / 1e6)
    of_base = {record.repeat: median(record.latency_ns) for record in base}
    both = sorted(typical.keys() & of_base.keys())
    if not both or records[0].configuration == base[0].configuration:
        return value
    # Of rates, so that above 1 is faster, as everywhere.
    ratio = paired_ratio([1 / typical[repeat] for repeat in both], [1 / of_base[repeat] for repeat in both])
    if ratio.low is None or ratio.high is None:
        return f"{value}, {ratio.value:.2f} (one pair)"
    said = f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
    return f"{value}, {said}" if ratio.verdict == "undecided" else f"{value}, **{said}**"


def _cpu(records: Sequence[GapRecord], _: Sequence[GapRecord]) -> str:
    if not records:
        return "failed"
    return f"{median(record.cpu_ns / len(record.latency_ns) for record in records) / 1e6:.3g}"


def _rotated(values: Sequence[_Value], by: int) -> list[_Value]:
    start = by % len(values)
    return [*values[start:], *values[:start]]


@contextmanager
def _apart(setup: Setup) -> Iterator[None]:
    """Keep this process on CPUs that no instance has, where there are some."""
    before = os.sched_getaffinity(0)
    if setup.placement is not None and setup.placement.idle:
        os.sched_setaffinity(0, setup.placement.idle)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

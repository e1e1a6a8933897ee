"""Measure a grid of configurations and workloads, interleaved, in fresh processes each time."""

import os
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from pinstripe import __version__
from pinstripe.bench.inputs import fixed_batch
from pinstripe.bench.measurement import Measurement
from pinstripe.bench.record import Failure, Host, Record
from pinstripe.bench.scenarios import Limits, offline, single_stream
from pinstripe.bench.setup import Setup
from pinstripe.configuration import Workload
from pinstripe.errors import ConfigurationError, ExecutionError
from pinstripe.machine import Counters, Machine, read_counters
from pinstripe.models import Network, TokenBatch
from pinstripe.pool import InstanceEvidence, Pool

__all__ = ["Grid", "Skipped", "make_grid", "run_grid"]

_SCENARIOS: Final = {"single-stream": single_stream, "offline": offline}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A point of a grid that cannot be run, and why."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Grid:
    """What to measure.

    Attributes:
        rows: Each setup with the workloads that it can run.
        skipped: The points that were left out.
    """

    rows: tuple[tuple[Setup, tuple[Workload, ...]], ...]
    skipped: tuple[Skipped, ...]

    @property
    def trials(self) -> int:
        """Number of points that will be run."""
        return sum(len(workloads) for _, workloads in self.rows)


def make_grid(setups: Sequence[Setup], workloads: Sequence[Workload], network: Network) -> Grid:
    """Cross setups with workloads, and leave out the points that make no sense.

    Raises:
        ConfigurationError: No point is left; the message is the first one's reason.
    """
    rows = []
    skipped = []
    for setup in setups:
        possible = []
        for workload in workloads:
            try:
                _part(setup, workload, network)
            except ConfigurationError as error:
                skipped.append(Skipped(f"{setup.configuration.label}, {workload.label}", str(error)))
            else:
                possible.append(workload)
        rows.append((setup, tuple(possible)))
    if not any(possible for _, possible in rows):
        raise ConfigurationError(skipped[0].reason)
    return Grid(tuple(row for row in rows if row[1]), tuple(skipped))


async def run_grid(
    grid: Grid,
    *,
    network: Network,
    machine: Machine,
    host: Host,
    run: str,
    repeats: int,
    limits: Limits,
    on_step: Callable[[int, Setup, Workload], None],
) -> AsyncGenerator[Record, None]:
    """Measure every point `repeats` times and yield each record as soon as there is one.

    In each round all configurations have their turn, in an order that is rotated from round to round, so that what
    drifts over minutes meets all of them alike. A configuration gets fresh processes in each round.

    Args:
        grid: What to measure.
        network: The model.
        machine: What the host offers; stored in each record.
        host: Software; likewise.
        run: Identifies this call; likewise.
        repeats: Rounds, at least 1.
        limits: How long to measure each point.
        on_step: Told before each measurement: in which round, what, under which workload.

    Raises:
        EngineError: An engine refuses a configuration.
    """

    def record(setup: Setup, workload: Workload, repeat: int, outcome: "_Outcome | ExecutionError") -> Record:
        measured = None if isinstance(outcome, ExecutionError) else outcome
        problems = "; ".join(problem for one in measured.evidence for problem in one.problems) if measured else None
        reason = problems or (str(outcome) if measured is None else None)
        return Record(
            pinstripe=__version__,
            run=run,
            repeat=repeat,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            host=host,
            machine=machine,
            network=network,
            artefact=setup.artefact,
            configuration=setup.configuration,
            placement=setup.placement,
            workload=workload,
            limits=limits,
            measurement=measured.measurement if measured and not reason else None,
            failure=Failure(message=reason) if reason else None,
            counters=measured.counters if measured else None,
            suspended_s=measured.suspended_s if measured else None,
            parent_cpus=_spare_cpus(setup, machine),
            parent_cpu=measured.parent_cpu if measured else None,
            evidence=measured.evidence if measured else (),
        )

    for repeat in range(repeats):
        start = repeat % len(grid.rows)
        step = partial(on_step, repeat)
        for setup, workloads in grid.rows[start:] + grid.rows[:start]:
            with _on_cpus(_spare_cpus(setup, machine)):
                async with aclosing(_measure(setup, workloads, network, limits, step)) as outcomes:
                    async for workload, outcome in outcomes:
                        yield record(setup, workload, repeat, outcome)


@dataclass(frozen=True, slots=True)
class _Outcome:
    measurement: Measurement
    counters: Counters
    suspended_s: float
    parent_cpu: float
    evidence: tuple[InstanceEvidence, ...]


async def _measure(
    setup: Setup,
    workloads: Sequence[Workload],
    network: Network,
    limits: Limits,
    on_step: Callable[[Setup, Workload], None],
) -> AsyncGenerator[tuple[Workload, _Outcome | ExecutionError], None]:
    """Run workloads one after the other in one pool; after a failure the rest get a new one."""
    remaining = list(workloads)
    while remaining:
        try:
            async with Pool(setup.specs, restart=False) as pool:
                while remaining:
                    on_step(setup, remaining[0])
                    outcome = await _measure_one(pool, _part(setup, remaining[0], network), remaining[0], limits)
                    yield remaining.pop(0), outcome
        except ExecutionError as error:
            yield remaining.pop(0), error


def _spare_cpus(setup: Setup, machine: Machine) -> tuple[int, ...] | None:
    """Return the CPUs that no instance has, for the parent; None where there are none or nothing is pinned."""
    if setup.placement is None:
        return None
    spare = {*setup.placement.idle, *setup.placement.reserved} - set(machine.isolated)
    return tuple(sorted(spare)) or None


@contextmanager
def _on_cpus(cpus: tuple[int, ...] | None) -> Iterator[None]:
    """Keep this process's main thread on some CPUs meanwhile; None leaves it where it is."""
    before = os.sched_getaffinity(0)
    if cpus is not None:
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


async def _measure_one(pool: Pool, part: TokenBatch, workload: Workload, limits: Limits) -> _Outcome:
    before, began_s, began_cpu_s = read_counters(), time.monotonic(), time.process_time()
    suspended_s = pool.suspended_s
    measured = await _SCENARIOS[workload.scenario](pool, part, limits)
    counters = read_counters().since(before)
    parent_cpu = (time.process_time() - began_cpu_s) / (time.monotonic() - began_s)
    return _Outcome(
        measurement=measured,
        counters=counters,
        suspended_s=pool.suspended_s - suspended_s,
        parent_cpu=parent_cpu,
        evidence=tuple(await pool.evidence()),
    )


def _part(setup: Setup, workload: Workload, network: Network) -> TokenBatch:
    """The batch that each instance gets under a workload."""
    return fixed_batch(network, workload.shard(len(setup.specs)), workload.sequence_tokens)

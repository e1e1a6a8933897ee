"""Measure a grid of configurations and workloads, interleaved, in fresh processes each time."""

import os
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from msgspec.structs import replace

from pinstripe import __version__
from pinstripe.bench.inputs import fixed_batch
from pinstripe.bench.measurement import Measurement
from pinstripe.bench.record import Failure, Host, Record
from pinstripe.bench.scenarios import Limits, offline, single_stream
from pinstripe.configuration import Workload
from pinstripe.errors import ConfigurationError, ExecutionError
from pinstripe.machine import Counters, Machine, read_counters
from pinstripe.models import Network, TokenBatch
from pinstripe.pool import InstanceEvidence, Pool, Setup

__all__ = ["Grid", "Session", "Skipped", "make_grid", "run_grid"]

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


@dataclass(frozen=True, slots=True)
class Session:
    """What all measurements of one run share.

    Attributes:
        run: Identifies the run.
        network: The model.
        machine: What the host offers.
        host: Software.
        limits: How long each point is measured.
    """

    run: str
    network: Network
    machine: Machine
    host: Host
    limits: Limits


async def run_grid(
    grid: Grid, session: Session, *, repeats: int, on_step: Callable[[int, Setup, Workload], None]
) -> AsyncGenerator[Record, None]:
    """Measure every point `repeats` times and yield each record as soon as there is one.

    In each round all configurations have their turn, in an order that is rotated from round to round, so that what
    drifts over minutes meets all of them alike. A configuration gets fresh processes in each round.

    Args:
        grid: What to measure.
        session: What all records share.
        repeats: Rounds, at least 1.
        on_step: Told before each measurement: in which round, what, under which workload.

    Raises:
        EngineError: An engine refuses a configuration.
    """
    for repeat in range(repeats):
        start = repeat % len(grid.rows)
        step = partial(on_step, repeat)
        for setup, workloads in grid.rows[start:] + grid.rows[:start]:
            with _on_cpus(_spare_cpus(setup, session.machine)):
                async with aclosing(_measure(session, setup, workloads, step)) as outcomes:
                    async for workload, outcome in outcomes:
                        yield _record(session, setup, workload, repeat, outcome)


@dataclass(frozen=True, slots=True)
class _Outcome:
    measurement: Measurement
    counters: Counters
    suspended_s: float
    parent_cpu: float
    evidence: tuple[InstanceEvidence, ...]

    @property
    def problems(self) -> str:
        return "; ".join(problem for one in self.evidence for problem in one.problems)


def _record(
    session: Session, setup: Setup, workload: Workload, repeat: int, outcome: _Outcome | ExecutionError
) -> Record:
    common = Record(
        pinstripe=__version__,
        run=session.run,
        repeat=repeat,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        host=session.host,
        machine=session.machine,
        network=session.network,
        artefact=setup.artefact,
        configuration=setup.configuration,
        placement=setup.placement,
        workload=workload,
        limits=session.limits,
        parent_cpus=_spare_cpus(setup, session.machine),
    )
    if isinstance(outcome, ExecutionError):
        return replace(common, failure=Failure(message=str(outcome)))
    # What did not take effect as asked was not measured.
    return replace(
        common,
        measurement=None if outcome.problems else outcome.measurement,
        failure=Failure(message=outcome.problems) if outcome.problems else None,
        counters=outcome.counters,
        suspended_s=outcome.suspended_s,
        parent_cpu=outcome.parent_cpu,
        evidence=outcome.evidence,
    )


async def _measure(
    session: Session, setup: Setup, workloads: Sequence[Workload], on_step: Callable[[Setup, Workload], None]
) -> AsyncGenerator[tuple[Workload, _Outcome | ExecutionError], None]:
    """Run workloads one after the other in one pool; after a failure the rest get a new one."""
    remaining = list(workloads)
    while remaining:
        try:
            async with Pool(setup.specs, restart=False) as pool:
                while remaining:
                    on_step(setup, remaining[0])
                    part = _part(setup, remaining[0], session.network)
                    outcome = await _measure_one(pool, part, remaining[0], session.limits)
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

"""Measure a grid of configurations and workloads, interleaved, in fresh processes each time."""

import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pinstripe import __version__
from pinstripe.bench.driver import Driver, groups_of, make_driver, sample_flops
from pinstripe.bench.inputs import TokenizedTexts
from pinstripe.bench.measurement import Measurement
from pinstripe.bench.record import Failure, Host, Record, trial_key
from pinstripe.bench.scenarios import Limits
from pinstripe.bench.server import offsets_ns
from pinstripe.bench.watch import Surroundings, watching
from pinstripe.configuration import Workload
from pinstripe.errors import ConfigurationError, EngineError, ExecutionError, PinstripeError
from pinstripe.machine import Machine
from pinstripe.models import Network
from pinstripe.peak import Peak, measure_peak, probe_places
from pinstripe.pool import InstanceEvidence, Pool, Setup

__all__ = ["Grid", "Session", "Skipped", "make_grid", "run_grid"]


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


def make_grid(
    setups: Sequence[Setup], workloads: Sequence[Workload], network: Network, texts: TokenizedTexts | None = None
) -> Grid:
    """Cross setups with workloads, and leave out the points that make no sense.

    Args:
        setups: How the model runs.
        workloads: What is asked of it.
        network: The model.
        texts: The tokens of the workloads' texts, where they have some.

    Raises:
        ConfigurationError: No point is left; the message is the first one's reason.
    """
    rows = []
    skipped = []
    for setup in setups:
        possible = []
        for workload in workloads:
            try:
                make_driver(workload, network, groups_of(setup), texts)
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
        texts: The tokens of the workloads' texts, where they have some.
        times: The times of their trace, see `read_trace`, likewise.
        peak: Whether to measure the peak of a configuration's cores before each of its turns.
    """

    run: str
    network: Network
    machine: Machine
    host: Host
    limits: Limits
    texts: TokenizedTexts | None = None
    times: NDArray[np.int64] | None = None
    peak: bool = False


async def run_grid(
    grid: Grid,
    session: Session,
    *,
    repeats: int,
    on_step: Callable[[int, Setup, Workload], None],
    on_peak: Callable[[int, Setup], None] | None = None,
    done: Collection[tuple[bytes, int]] = (),
) -> AsyncGenerator[Record, None]:
    """Measure every point `repeats` times and yield each record as soon as there is one.

    In each round all configurations have their turn, in an order that is rotated from round to round, so that what
    drifts over minutes meets all of them alike. A configuration gets fresh processes in each round.

    Args:
        grid: What to measure.
        session: What all records share.
        repeats: Rounds, at least 1.
        on_step: Told before each measurement: in which round, what, under which workload.
        on_peak: Told before a peak is measured: in which round, for what.
        done: Key of the trial and repeat of measurements that are there already, and are left out.

    A configuration that its engine refuses only in the worker is a failure of its own, if there are others.

    Raises:
        EngineError: An engine refuses the only configuration.
        ConfigurationError: So many requests as are to arrive cannot be kept, or none arrives.
    """
    for one in {workload.arrivals for _, workloads in grid.rows for workload in workloads if workload.arrivals}:
        if one.rate_per_s is not None or session.times is not None:
            offsets_ns(one, session.limits, session.times)  # raises what would else be said only after a while
    for repeat in range(repeats):
        start = repeat % len(grid.rows)
        step = partial(on_step, repeat)
        for setup, workloads in grid.rows[start:] + grid.rows[:start]:
            missing = [one for one in workloads if (trial_key(setup.configuration, one), repeat) not in done]
            with _on_cpus(_spare_cpus(setup, session.machine)):
                peak = None
                if session.peak and missing:
                    if on_peak is not None:
                        on_peak(repeat, setup)
                    peak = await _peak(setup, session.machine)
                async with aclosing(_measure(session, setup, missing, step, alone=len(grid.rows) == 1)) as outcomes:
                    async for workload, outcome in outcomes:
                        yield replace(_record(session, setup, workload, repeat, outcome), peak=peak)


@dataclass(frozen=True, slots=True)
class _Outcome:
    measurement: Measurement
    surroundings: Surroundings
    evidence: tuple[InstanceEvidence, ...]

    @property
    def problems(self) -> str:
        return "; ".join(problem for one in self.evidence for problem in one.problems)


def _record(
    session: Session, setup: Setup, workload: Workload, repeat: int, outcome: _Outcome | PinstripeError
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
    if isinstance(outcome, PinstripeError):
        return replace(common, failure=Failure(message=str(outcome)))
    # What did not take effect as asked was not measured.
    return replace(
        common,
        measurement=None if outcome.problems else outcome.measurement,
        failure=Failure(message=outcome.problems) if outcome.problems else None,
        sample_flops=sample_flops(workload, session.network, session.texts),
        surroundings=outcome.surroundings,
        evidence=outcome.evidence,
    )


async def _peak(setup: Setup, machine: Machine) -> Peak:
    return await measure_peak(probe_places(setup, machine), setup.configuration.precision, machine.isa)


async def _measure(
    session: Session,
    setup: Setup,
    workloads: Sequence[Workload],
    on_step: Callable[[Setup, Workload], None],
    *,
    alone: bool,
) -> AsyncGenerator[tuple[Workload, _Outcome | PinstripeError], None]:
    """Run workloads one after the other in one pool; after a failure the rest get a new one.

    A refusal by the engine is a failure, unless the setup is `alone` in its grid.
    """
    remaining = list(workloads)
    while remaining:
        try:
            async with Pool(setup.specs, restart=False) as pool:
                while remaining:
                    on_step(setup, remaining[0])
                    driver = make_driver(remaining[0], session.network, groups_of(setup), session.texts, session.times)
                    outcome = await _measure_one(pool, driver, session)
                    yield remaining.pop(0), outcome
        except (ExecutionError, EngineError) as error:
            if alone and isinstance(error, EngineError):
                raise
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


async def _measure_one(pool: Pool, driver: Driver, session: Session) -> _Outcome:
    async with watching(pool, session.machine) as watch:
        measured = await driver(pool, session.limits, watch.window_opens)
        surroundings = watch.surroundings()
    return _Outcome(measurement=measured, surroundings=surroundings, evidence=tuple(await pool.evidence()))

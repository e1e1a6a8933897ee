"""Arms on their way through the project's own grid, in rounds and fresh processes."""

import platform
import uuid
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib import metadata

from knob_sections.arms import Arm
from pinstripe.api import artefact_finder
from pinstripe.bench import Grid, Host, Limits, Record, Session, make_grid, run_grid
from pinstripe.configuration import Configuration, Workload
from pinstripe.engines import engine
from pinstripe.errors import PinstripeError
from pinstripe.machine import Machine
from pinstripe.models import Network
from pinstripe.pool import Setup, set_up

__all__ = ["Subject", "measure_arms", "set_up_arms"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What all arms have in common.

    Attributes:
        network: The model.
        machine: Where it runs.
        engine: With which engine.
        cores: Cores of the one instance; None for all.
    """

    network: Network
    machine: Machine
    engine: str
    cores: int | None


def set_up_arms(subject: Subject, arms: Sequence[Arm], say: Callable[[str], None]) -> list[Setup]:
    """Return the arms that this machine can have, and say why it cannot have the others.

    Args:
        subject: What they have in common.
        arms: The first is what the others are compared with.
        say: Is told, once for each reason.

    Raises:
        PinstripeError: It cannot have the first.
    """
    find = artefact_finder(subject.network)
    setups = []
    reasons = set()
    for arm in arms:
        try:
            configuration = Configuration(engine=subject.engine, cores=subject.cores, knobs=arm)
            setups.append(set_up(configuration, subject.machine, subject.network, find))
        except PinstripeError as error:
            if not arm:
                raise
            if str(error) not in reasons:
                say(f"left out: {subject.engine}: {error}")
            reasons.add(str(error))
    return setups


async def measure_arms(
    subject: Subject,
    setups: Sequence[Setup],
    workloads: Sequence[Workload],
    *,
    limits: Limits,
    rounds: int,
    keep: Callable[[Record], None],
    say: Callable[[str], None],
) -> None:
    """Measure all arms under all workloads.

    Each workload has processes of its own, because what an allocator does depends on what it served before; all arms
    have their turn with one workload before the next.

    Args:
        subject: What the arms have in common.
        setups: The arms, that which the others are compared with first.
        workloads: What is asked of them.
        limits: How long each is measured.
        rounds: How often.
        keep: Is given each record.
        say: Is told what begins.

    Raises:
        PinstripeError: The engine refuses to run at all, or a record cannot be written.
    """
    whole = make_grid(setups, workloads, subject.network)
    for skipped in whole.skipped:
        say(f"left out: {skipped.label}: {skipped.reason}")
    rows = tuple(
        (setup, (workload,)) for workload in workloads for setup, possible in whole.rows if workload in possible
    )
    session = Session(
        run=uuid.uuid4().hex,
        network=subject.network,
        machine=subject.machine,
        host=_host(subject.engine),
        limits=limits,
    )

    def begins(repeat: int, setup: Setup, workload: Workload) -> None:
        say(f"round {repeat + 1} of {rounds}: {subject.network.name}, {setup.configuration.label}, {workload.label}")

    grid = Grid(rows=rows, skipped=())
    async with aclosing(run_grid(grid, session, repeats=rounds, on_step=begins)) as records:
        async for record in records:
            if record.failure is not None:
                say(f"failed: {record.configuration.label}: {record.failure.message}")
            keep(record)


def _host(engine_name: str) -> Host:
    libraries = {}
    for distribution in engine(engine_name).distributions:
        try:
            libraries[distribution] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return Host(kernel=platform.release(), python=platform.python_version(), libraries=libraries)

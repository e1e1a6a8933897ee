"""A grid on its way from words to records, with everything people see meanwhile."""

import asyncio
import platform
import signal
import uuid
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pinstripe.bench import Grid, Host, Limits, Record, RecordFile, Session, Skipped, make_grid, run_grid
from pinstripe.cli.trials import print_runs
from pinstripe.configuration import Configuration, Workload
from pinstripe.engines import engine, prepare
from pinstripe.errors import ExecutionError, PlacementError
from pinstripe.machine import Machine
from pinstripe.models import Network, Overrides, resolve
from pinstripe.pool import Setup, set_up

__all__ = ["measure"]


def measure(
    model: str,
    *,
    revision: str | None,
    overrides: Overrides,
    machine: Machine,
    configurations: Sequence[Configuration],
    workloads: Sequence[Workload],
    repeats: int,
    limits: Limits,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure a grid, keep a record of each trial, print the result.

    Raises:
        PinstripeError: Something cannot be had as asked, or failed; what was measured before is kept.
        KeyboardInterrupt: Ctrl-C; likewise.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop in order, whoever asks
    screen = Console(stderr=True)
    status = screen.status("reading the model, exporting it if an engine needs that")
    with status if screen.is_terminal else nullcontext():
        file = next((one.file for one in configurations if one.file), None)
        network = resolve(model, revision=revision, overrides=overrides, file=file)
        setups, impossible = _set_up_all(configurations, machine, network)
    grid = make_grid(setups, workloads, network)
    for skipped in (*impossible, *grid.skipped):
        screen.print(f"skipped: {skipped.label}: {skipped.reason}", highlight=False, soft_wrap=True)
    for warning in dict.fromkeys(text for setup in setups if setup.placement for text in setup.placement.warnings):
        screen.print(f"note: {warning}", highlight=False, soft_wrap=True)
    session = Session(run=uuid.uuid4().hex, network=network, machine=machine, host=_host(setups), limits=limits)
    records_file = RecordFile(output or Path("records") / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{session.run[:6]}.jsonl")
    records: list[Record] = []

    def keep(record: Record) -> None:
        records_file.append(record)
        records.append(record)

    try:
        _run_to_the_end(_run(grid, session, repeats, keep, screen))
    finally:
        records_file.close()
        if records:
            print_runs(records, as_json=as_json)
            failed = sum(record.failure is not None for record in records)
            kept = f"{len(records)} of {grid.trials * repeats} measurements kept in {records_file.path}"
            screen.print(f"{kept} ({failed} failed)" if failed else kept, highlight=False, soft_wrap=True)
    if all(record.failure for record in records):
        raise ExecutionError("no measurement succeeded; the reasons are above")


async def _run(grid: Grid, session: Session, repeats: int, keep: Callable[[Record], None], screen: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn())
    _end_in_order_on(signal.SIGTERM, signal.SIGHUP)
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("starting", total=grid.trials * repeats)

        def show(repeat: int, setup: Setup, workload: Workload) -> None:
            progress.update(task, description=f"{repeat + 1}: {setup.configuration.label}, {workload.shape}")

        async with aclosing(run_grid(grid, session, repeats=repeats, on_step=show)) as measured:
            async for record in measured:
                keep(record)
                progress.advance(task)


def _run_to_the_end(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine; a signal that cancels it is Ctrl-C to the caller."""
    try:
        asyncio.run(coroutine)
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error


def _end_in_order_on(*signals: signal.Signals) -> None:
    """Cancel the running task on a signal, as asyncio does on Ctrl-C, so that workers are stopped and results shown."""
    task = asyncio.current_task()
    if task is not None:
        for number in signals:
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def _set_up_all(
    configurations: Sequence[Configuration], machine: Machine, network: Network
) -> tuple[list[Setup], list[Skipped]]:
    """Return the configurations that this machine can hold, and those it cannot.

    Raises:
        PlacementError: It can hold none of them; the message is the first one's.
    """
    setups: list[Setup] = []
    impossible: list[Skipped] = []
    for configuration in configurations:
        try:
            setup = set_up(
                configuration, machine, network, lambda one: prepare(engine(one.engine), network, file=one.file)
            )
        except PlacementError as error:
            if len(configurations) == 1:
                raise
            impossible.append(Skipped(configuration.label, str(error)))
            continue
        # Two wishes may come to the same, such as one instance and one a core on a single core.
        if setup not in setups:
            setups.append(setup)
    if not setups:
        raise PlacementError(impossible[0].reason)
    return setups, impossible


def _host(setups: Sequence[Setup]) -> Host:
    names = {name for setup in setups for name in engine(setup.configuration.engine).distributions}
    return Host(
        kernel=platform.release(),
        python=platform.python_version(),
        libraries={name: version for name in sorted(names | {"numpy"}) if (version := _version(name))},
    )


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None

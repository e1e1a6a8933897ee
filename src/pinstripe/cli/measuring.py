"""A grid on its way from words to records, with everything people see meanwhile."""

import platform
import signal
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pinstripe.api import artefact_finder
from pinstripe.bench import (
    Grid,
    Host,
    Limits,
    Record,
    RecordFile,
    Session,
    Skipped,
    TokenizedTexts,
    check_resumable,
    make_grid,
    read_records,
    run_grid,
    tokenize,
    trial_key,
)
from pinstripe.cli.console import standard_error
from pinstripe.cli.interrupting import run_to_the_end
from pinstripe.cli.shell import shell_word
from pinstripe.cli.trials import print_runs
from pinstripe.cli.workloads import Workloads
from pinstripe.configuration import Configuration, Workload
from pinstripe.engines import engine
from pinstripe.errors import EngineError, ExecutionError, KnobError, PlacementError, UsageError
from pinstripe.knobs import read_host
from pinstripe.load import new_fine_loop
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
    asked: Workloads,
    repeats: int,
    limits: Limits,
    output: Path | None,
    as_json: bool,
    resume: Path | None = None,
    peak: bool = False,
) -> None:
    """Measure a grid, keep a record of each trial, print the result.

    With `peak` the peak of each configuration's cores is measured, too.

    With `resume`, what that file holds is not measured again, failures included; the rest is appended to it, and the
    result covers all.

    Raises:
        PinstripeError: Something cannot be had as asked, or failed; what was measured before is kept.
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP; likewise.
    """
    _stop_in_order()
    if resume is not None and output is not None:
        raise UsageError(f"--resume {resume} names the file that records are appended to; leave --output out")
    if resume is not None and not resume.is_file():
        what = "is no file" if resume.exists() else "does not exist"
        raise UsageError(f"{resume} {what}; name the records of the run to go on with, or leave --resume out")
    screen = standard_error()
    records: list[Record] = []
    status = screen.status("reading the model, exporting it if an engine needs that")
    with _saying_if_empty(records, screen), status if screen.is_terminal else nullcontext():
        file = next((one.file for one in configurations if one.file), None)
        network = resolve(model, revision=revision, overrides=overrides, file=file)
        tokenized = tokenize(network, asked.texts) if asked.texts else None  # before an export that may take minutes
        setups, impossible = _set_up_all(configurations, machine, network)
    grid = make_grid(setups, asked.workloads, network, tokenized)
    for message in _notes(setups, (*impossible, *grid.skipped), network, tokenized):
        screen.print(message, soft_wrap=True)
    session = Session(
        run=uuid.uuid4().hex,
        network=network,
        machine=machine,
        host=_host(setups),
        limits=limits,
        texts=tokenized,
        times=asked.times,
        peak=peak,
    )
    path = resume or output or Path("records") / f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{session.run[:6]}.jsonl"
    records_file = RecordFile(path, drop_cut=resume is not None)

    def keep(record: Record) -> None:
        records_file.append(record)
        records.append(record)

    try:
        if resume is not None:
            records += _records_to_resume(records_file, session, asked.workloads, screen)
            session = replace(session, run=records[0].run if records else session.run)
        done = _done(grid, repeats, records)
        with _saying_if_empty(records, screen):
            run_to_the_end(
                _run(grid, session, repeats=repeats, done=done, keep=keep, screen=screen),
                # Requests are to be sent when they are due, not at the next millisecond.
                new_fine_loop if any(one.arrivals for one in asked.workloads) else None,
            )
    finally:
        records_file.close()
        if records:
            print_runs(records, as_json=as_json)
            failed = sum(record.failure is not None for record in records)
            total, there = grid.trials * repeats, len(_done(grid, repeats, records))
            kept = f"{there} of {total} measurements kept in {path}" + (f" ({failed} failed)" if failed else "")
            rest = f"; go on with --resume {shell_word(str(path))}" if there < total else ""
            screen.print(kept + rest, soft_wrap=True)
    if all(record.failure for record in records):
        raise ExecutionError("no measurement succeeded; the reasons are above")


def _notes(
    setups: Sequence[Setup], skipped: Sequence[Skipped], network: Network, texts: TokenizedTexts | None
) -> Iterator[str]:
    """Yield what is not as it was asked for."""
    yield from (f"skipped: {one.label}: {one.reason}" for one in skipped)
    warnings = dict.fromkeys(text for setup in setups if setup.placement for text in setup.placement.warnings)
    yield from (f"note: {warning}" for warning in warnings)
    if texts and texts.cut:
        verb = "is" if texts.cut == 1 else "are"
        yield f"note: {texts.cut} of {len(texts.rows)} texts {verb} longer than {network.max_tokens} tokens, and cut"


def _stop_in_order() -> None:
    """Take SIGTERM and SIGHUP as Ctrl-C, unless they are ignored."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def _saying_if_empty(records: Sequence[Record], screen: Console) -> Iterator[None]:
    """Say that nothing was measured, if that is so when Ctrl-C comes."""
    try:
        yield
    except KeyboardInterrupt:
        if not records:
            screen.print("stopped before the first measurement had ended; nothing was measured")
        raise


def _records_to_resume(
    file: RecordFile, session: Session, workloads: Sequence[Workload], screen: Console
) -> list[Record]:
    """Return what a file holds, if new measurements may be added to it.

    Raises:
        PinstripeError: They may not, or it cannot be read.
    """
    if file.dropped_bytes:
        screen.print(f"note: the last line of {file.path} was cut off, and is measured again")
    records = read_records(file.path) if file.path.stat().st_size else []
    check_resumable(records, session, workloads, file.path)
    return records


def _done(grid: Grid, repeats: int, records: Sequence[Record]) -> set[tuple[bytes, int]]:
    """Return the measurements of a grid that need not be made any more: key of the trial, and repeat."""
    asked = {
        (trial_key(setup.configuration, workload), repeat)
        for setup, workloads in grid.rows
        for workload in workloads
        for repeat in range(repeats)
    }
    return asked & {(trial_key(record.configuration, record.workload), record.repeat) for record in records}


async def _run(
    grid: Grid,
    session: Session,
    *,
    repeats: int,
    done: Collection[tuple[bytes, int]],
    keep: Callable[[Record], None],
    screen: Console,
) -> None:
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
        task = progress.add_task("starting", total=grid.trials * repeats, completed=len(done))

        def show(repeat: int, setup: Setup, workload: Workload) -> None:
            progress.update(task, description=f"{repeat + 1}: {setup.configuration.label}, {workload.shape}")

        def show_peak(repeat: int, setup: Setup) -> None:
            progress.update(task, description=f"{repeat + 1}: {setup.configuration.label}, peak of its cores")

        steps = run_grid(grid, session, repeats=repeats, on_step=show, on_peak=show_peak, done=done)
        async with aclosing(steps) as measured:
            async for record in measured:
                keep(record)
                progress.advance(task)


def _set_up_all(
    configurations: Sequence[Configuration], machine: Machine, network: Network
) -> tuple[list[Setup], list[Skipped]]:
    """Return the configurations that this machine can hold, and those it cannot.

    Raises:
        PlacementError: It can hold none of them; the message is the first one's.
        EngineError: Likewise for engines that cannot run as asked.
        KnobError: Likewise for knobs.
    """
    find, host = artefact_finder(network), read_host(machine)
    setups: list[Setup] = []
    impossible: list[Skipped] = []
    refusals: list[PlacementError | EngineError | KnobError] = []
    for configuration in configurations:
        try:
            setup = set_up(configuration, machine, network, find, host)
        except (PlacementError, EngineError, KnobError) as error:
            refusals.append(error)
            impossible.append(Skipped(configuration.label, str(error)))
            continue
        # Two wishes may come to the same, such as one instance and one a core on a single core.
        if setup not in setups:
            setups.append(setup)
    if not setups:
        raise refusals[0]
    return setups, impossible


def _host(setups: Sequence[Setup]) -> Host:
    # Those of an engine elsewhere are in its evidence.
    here = [setup.configuration.engine for setup in setups if setup.configuration.python is None]
    names = {name for one in here for name in engine(one).distributions}
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

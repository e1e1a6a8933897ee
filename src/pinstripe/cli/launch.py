"""`pinstripe launch`: any program, pinned as workers are."""

import os
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinstripe.cli.console import print_json
from pinstripe.cli.launch_report import plan, plan_lines, print_summary, replaced_variables
from pinstripe.cli.options import Bind, CoreKindOption, Reserve, SmtOption, StrategyOption, choice, read_wish
from pinstripe.errors import PinstripeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pinstripe.placement import Placement
    from pinstripe.runtime import GroupResult, StartRequest

__all__ = ["launch"]

_COLOURS = (36, 33, 32, 35, 34, 31)  # cyan, yellow, green, magenta, blue, red: ECMA-48, 8.3.117


def launch(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="The program and its arguments, best after --.")],
    *,
    instances: Annotated[int | None, typer.Option(help="How many to start.")] = None,
    cores: Annotated[int | None, typer.Option(help="Physical cores of each.")] = None,
    strategy: StrategyOption = "close",
    smt: SmtOption = "one",
    core_kind: CoreKindOption = "performance",
    reserve: Reserve = 0,
    bind: Bind = None,
    memory: Annotated[
        str, typer.Option(help="Memory policy: auto, preferred, bind, interleave, local, or none.")
    ] = "auto",
    prefix: Annotated[
        bool,
        typer.Option(
            "--prefix/--no-prefix",
            help="Put [0], [1], … before each line of output, or hand on output as it comes (for progress bars).",
        ),
    ] = True,
    output_dir: Annotated[
        Path | None, typer.Option(help="Write each one's output to DIR/instance-0.log, … instead.", metavar="DIR")
    ] = None,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="When one fails, let the others run on.")] = False,
    grace: Annotated[float, typer.Option(help="Seconds from SIGTERM to SIGKILL.", min=0)] = 10.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No summary at the end.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be started, and start nothing.")] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="The plan of --dry-run as JSON; or the summary, as the last line on standard error."
        ),
    ] = False,
) -> None:
    """Start any program several times, each on its own cores with its own memory and number of threads.

    Each finds its place in PINSTRIPE_INSTANCE (from 0), PINSTRIPE_INSTANCES,
    PINSTRIPE_CORES and PINSTRIPE_CPUS, besides OMP_NUM_THREADS and its like.
    Its standard input is empty.

    When one fails, or on Ctrl-C, all are stopped. The exit code is 0 if all ended
    with 0, else that of the first that failed (128 + the signal's number if one
    killed it); 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.

    Example: pinstripe launch --instances 2 --cores 1 -- python score.py --all

    Example: pinstripe launch -- sh -c 'zcat part-$PINSTRIPE_INSTANCE.gz | wc -l'
    """
    from pinstripe.machine import read_machine  # noqa: PLC0415
    from pinstripe.placement import place  # noqa: PLC0415
    from pinstripe.runtime import MemoryPolicy, launch_requests  # noqa: PLC0415

    wish = read_wish(
        instances=instances,
        cores=cores,
        strategy=strategy,
        smt=smt,
        core_kind=core_kind,
        reserve=reserve,
        bind=bind,
    )
    memory_policy = choice(memory, MemoryPolicy, "--memory")
    machine = read_machine(Path("/"))
    placement = place(machine, wish)
    requests = launch_requests(command, placement, machine, os.environ, memory_policy=memory_policy)
    if dry_run:
        if as_json:
            print_json(plan(placement, requests))
        else:
            typer.echo("\n".join(plan_lines(placement, requests)))
        return
    if not quiet:
        for note in (*placement.warnings, *replaced_variables(requests)):
            typer.echo(f"pinstripe: note: {note}", err=True)
    result = _run(placement, requests, prefix=prefix, output_dir=output_dir, grace_s=grace, keep_going=keep_going)
    with suppress(OSError):  # a terminal that has gone
        print_summary(result, as_json=as_json, quiet=quiet)
    raise typer.Exit(result.exit_code)


def _run(
    placement: "Placement",
    requests: "Sequence[StartRequest]",
    *,
    prefix: bool,
    output_dir: Path | None,
    grace_s: float,
    keep_going: bool,
) -> "GroupResult":
    from pinstripe.runtime import Group, end_requests  # noqa: PLC0415

    spare = placement.idle or placement.reserved
    if spare:
        os.sched_setaffinity(0, spare)  # copying output should not take time from what is measured
    group = Group(grace_s=grace_s, keep_going=keep_going)
    prefixed = prefix and output_dir is None
    with _log_files(output_dir, requests) as logged, end_requests(group.interrupt):
        return group.run(logged, _prefixes(len(requests)) if prefixed else None)


@contextmanager
def _log_files(directory: Path | None, requests: "Sequence[StartRequest]") -> "Iterator[Sequence[StartRequest]]":
    """Give the requests with a new file each as their output, if there is a directory.

    When they cannot be started, the files without a word in them are removed.
    """
    import msgspec  # noqa: PLC0415

    if directory is None:
        yield requests
        return
    logs: list[Path] = []
    try:
        with ExitStack() as files:
            logged = []
            try:
                directory.mkdir(parents=True, exist_ok=True)
                for index, request in enumerate(requests):
                    log = directory / f"instance-{index}.log"
                    file = files.enter_context(log.open("xb"))
                    logs.append(log)
                    logged.append(msgspec.structs.replace(request, output=file.fileno()))
            except OSError as error:
                raise UsageError(
                    f"cannot create {error.filename} ({error.strerror}); name a directory without such files, or move "
                    "them"
                ) from error
            yield logged
    except PinstripeError:
        for log in logs:
            if log.exists() and not log.stat().st_size:
                log.unlink()
        raise


def _prefixes(count: int) -> list[bytes]:
    width = len(str(count - 1))
    plain = [f"[{index:{width}}] " for index in range(count)]
    if not (os.isatty(1) and os.isatty(2)) or "NO_COLOR" in os.environ:
        return [text.encode() for text in plain]
    return [f"\x1b[{_COLOURS[index % len(_COLOURS)]}m{text}\x1b[0m".encode() for index, text in enumerate(plain)]

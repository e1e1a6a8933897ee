"""`pinstripe embed`: a whole file of texts through a model."""

import os
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Self

import typer

from pinstripe.cli.console import print_json, standard_error
from pinstripe.cli.engine_options import CalibrationOption, PythonOption, read_wanted
from pinstripe.cli.group_options import GroupsOption, read_groups
from pinstripe.cli.knob_options import KnobOption
from pinstripe.cli.model_options import OverrideOption, Revision, read_overrides
from pinstripe.cli.options import Json, choice

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.console import Console

    from pinstripe.api import Opening
    from pinstripe.bulk import BulkJob, Progress, Summary, Survey

__all__ = ["embed"]

_NAMED: Final = 5
"""Skipped lines that are named on the screen; the file has them all."""


def embed(
    model: Annotated[str, typer.Argument(help="Directory, hub id, package:NAME, or a plan (.toml).")],
    texts: Annotated[
        Path, typer.Argument(help="File of texts: JSON objects in a .jsonl file, else a text on each line.")
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to make: .parquet, .npy or .jsonl; rows are in input order.")
    ],
    engine: Annotated[str | None, typer.Option(help="Engine.", show_default="the fastest that is installed")] = None,
    precision: Annotated[
        str, typer.Option(help="float32, bfloat16 or int8; `pinstripe accuracy` says what the last two change.")
    ] = "float32",
    option: Annotated[
        list[str] | None, typer.Option(help="Option of the engine; may be repeated.", metavar="NAME=VALUE")
    ] = None,
    knob: KnobOption = None,
    calibration: CalibrationOption = None,
    python: PythonOption = None,
    instances: Annotated[int | None, typer.Option(min=1, help="Instances.", show_default="one a core")] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Physical cores of each instance.", show_default="an equal share")
    ] = None,
    groups: GroupsOption = None,
    token_budget: Annotated[
        int | None,
        typer.Option(min=1, max=1 << 24, help="Most tokens in a batch, padding included.", show_default="1024 a core"),
    ] = None,
    field: Annotated[str, typer.Option(help="Field of a JSON object that holds the text.")] = "text",
    prompt: Annotated[
        str | None, typer.Option(help="Prompt of the model to put before each text.", show_default="its default")
    ] = None,
    truncate: Annotated[
        bool,
        typer.Option(
            "--truncate/--no-truncate",
            help="Cut texts that have more tokens than the model takes; else such a line is bad.",
        ),
    ] = True,
    bad_lines: Annotated[str, typer.Option(help="Lines that hold no text: refuse the file, or skip them.")] = "refuse",
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace an output that exists; throw away unfinished work for something else."),
    ] = False,
    override: OverrideOption = None,
    revision: Revision = None,
    as_json: Json = False,
) -> None:
    """Run a whole file of texts through a model, whatever its task is, on all cores.

    Memory stays bounded however long the file is. What is interrupted, even by kill -9, goes on with the same command.

    Example: pinstripe embed sentence-transformers/all-MiniLM-L6-v2 texts.jsonl -o vectors.parquet
    """
    from pinstripe.api import Opening  # noqa: PLC0415
    from pinstripe.bulk import BadLines, BulkJob, rows_kept, workspace_path  # noqa: PLC0415
    from pinstripe.cli.interrupting import run_to_the_end  # noqa: PLC0415
    from pinstripe.configuration import BatchRule  # noqa: PLC0415
    from pinstripe.errors import ExecutionError  # noqa: PLC0415

    job = BulkJob(
        source=texts,
        output=Path(os.path.realpath(output)) if output.is_symlink() else output,
        field=field,
        prompt=prompt,
        bad_lines=choice(bad_lines, BadLines, "--bad-lines"),
        force=force,
    )
    opening = Opening(
        model=model,
        wanted=read_wanted(
            engine,
            precision=precision,
            options=option or [],
            knobs=knob or [],
            calibration=calibration,
            pythons=python or [],
            instances=instances,
            cores=cores,
            groups=read_groups(groups) if groups is not None else (),
        ),
        batching=BatchRule(tokens=token_budget) if token_budget else None,
        revision=revision,
        overrides=read_overrides(override) if override else None,
        truncate=truncate,
    )
    screen = standard_error()
    started = time.monotonic()
    try:
        summary = run_to_the_end(_embed(opening, job, screen))
    except (KeyboardInterrupt, ExecutionError) as error:
        if kept := rows_kept(job):
            _say(screen, f"{kept:,} texts are kept in {workspace_path(job.output)}; the same command goes on with them")
        elif isinstance(error, KeyboardInterrupt):
            _say(screen, "stopped before the first texts were written; nothing is kept")
        raise
    if as_json:
        print_json(summary)
        return
    for line in _lines(summary, job, time.monotonic() - started):
        _say(screen, line)


async def _embed(opening: "Opening", job: "BulkJob", screen: "Console") -> "Summary":
    from pinstripe.api import AsyncModel, run_stoppable  # noqa: PLC0415
    from pinstripe.bulk import check_job, run_bulk, survey_texts  # noqa: PLC0415

    check_job(job)
    with _status(screen, "finding the model, exporting it if its engine needs that"):
        prepared = await run_stoppable(opening.prepare)
    with _status(screen, f"reading {job.source}"):
        found = await run_stoppable(partial(survey_texts, job, prepared.network.task))
    model = AsyncModel(lambda _: prepared)
    with _status(screen, "starting the model"):
        await model.open()
    try:
        _say(screen, f"{model.network.name} runs as {model.configuration.label}")
        for note in model.notes:
            _say(screen, f"note: {note}")
        with _ProgressBar(found, screen) as bar:
            return await run_bulk(model, job, found, bar.show)
    finally:
        await model.close()


class _ProgressBar:
    """Texts done, the rate, and the time left.

    The rate is in tokens and the time left goes by characters, since the long texts come first.
    """

    def __init__(self, survey: "Survey", screen: "Console") -> None:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        columns = (
            BarColumn(20),
            TaskProgressColumn(),
            TextColumn("{task.fields[texts]}", markup=False),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeRemainingColumn(),
        )
        self._texts = survey.texts
        self._bar = Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
        self._task = self._bar.add_task("", total=survey.characters, texts="", rate="")
        self._began_s = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, progress: "Progress") -> None:
        """Show how far the run is."""
        rate = progress.tokens / (time.monotonic() - self._began_s)
        done = progress.kept + progress.texts
        self._bar.update(
            self._task,
            completed=progress.characters,
            texts=f"{done:,} of {self._texts:,} texts",
            rate=f"{rate:,.0f} tokens/s",
        )


def _lines(summary: "Summary", job: "BulkJob", total_s: float) -> list[str]:
    from pinstripe.bulk import skipped_path  # noqa: PLC0415

    lines = [f"{_counted(summary.texts, 'text')} in {job.output}, {total_s:.1f} s in all"]
    if summary.resumed:
        lines.append(f"{summary.resumed:,} of them were there from an earlier start")
    if summary.texts_per_s and summary.tokens_per_s and summary.padding_fraction is not None:
        rates = f"{summary.texts_per_s:,.0f} texts/s, {summary.tokens_per_s:,.0f} tokens/s"
        lines.append(f"{rates}, {summary.padding_fraction:.1%} padding, once the model was ready")
    if summary.cut:
        lines.append(f"{_counted(summary.cut, 'text')} had more tokens than the model takes, and were cut")
    if summary.skipped:
        named = "; ".join(f"line {one.line}: {one.reason}" for one in summary.skipped[:_NAMED])
        more = ", …" if len(summary.skipped) > _NAMED else ""
        skipped = _counted(len(summary.skipped), "line")
        lines.append(f"{skipped} skipped, listed in {skipped_path(job.output)}: {named}{more}")
        if job.output.suffix == ".npy":
            lines.append(f"rows of {job.output} follow each other without them; .jsonl and .parquet number the lines")
    return lines


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _status(screen: "Console", text: str) -> "AbstractContextManager[object]":
    from rich.text import Text  # noqa: PLC0415 - a path's brackets are no markup

    return screen.status(Text(text)) if screen.is_terminal else nullcontext()


def _say(screen: "Console", text: str) -> None:
    screen.print(text, soft_wrap=True)

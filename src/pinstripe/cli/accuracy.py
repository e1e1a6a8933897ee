"""`pinstripe accuracy`: what an engine and a precision cost in quality."""

import asyncio
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pinstripe.cli.console import print_json, standard_error, standard_output
from pinstripe.cli.engine_options import CalibrationOption, PythonOption, read_pythons, read_wanted
from pinstripe.cli.knob_options import KnobOption
from pinstripe.cli.model_options import OverrideOption, Revision, read_overrides
from pinstripe.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from pinstripe.accuracy import Accuracy, Progress
    from pinstripe.api import Opening

__all__ = ["accuracy"]

_REFERENCE: Final = "torch-eager"


def accuracy(
    model: Annotated[str, typer.Argument(help="Directory, hub id, or package:NAME.")],
    *,
    engine: Annotated[
        str | None, typer.Option(help="Engine to judge.", show_default="the fastest that is installed")
    ] = None,
    precision: Annotated[str, typer.Option(help="Precision to judge: float32, bfloat16 or int8.")] = "float32",
    texts: Annotated[
        Path | None,
        typer.Option(
            help="Texts to compare on: JSON objects with a field text (and text_pair) in a .jsonl file, else a text on "
            "each line.",
            show_default="texts that come with pinstripe",
            metavar="FILE",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Pairs that people have rated: score, text, text on each line, separated by tabs.", metavar="FILE"
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=10, help="Most texts, and most pairs, that are taken, evenly spread over the file.")
    ] = 2000,
    option: Annotated[
        list[str] | None, typer.Option(help="Option of the engine; may be repeated.", metavar="NAME=VALUE")
    ] = None,
    knob: KnobOption = None,
    calibration: CalibrationOption = None,
    python: PythonOption = None,
    file: Annotated[
        str | None, typer.Option(help="Exported file for the engine that reads it, such as onnx/model.onnx.")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(help="Engine whose float32 is compared with.", show_default=_REFERENCE, metavar="ENGINE"),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if the accuracy is below the floor.")] = False,
    override: OverrideOption = None,
    revision: Revision = None,
    as_json: Json = False,
) -> None:
    """Compare the outputs of an engine and a precision with those of float32, on real text.

    The floor: for embeddings, cosines of 0.99 in the mean and 0.97 in the 1st
    percentile, or with --pairs a Spearman that falls by at most 0.005; for
    other tasks 99 % equal labels or answers, or a rank correlation of 0.99.
    A text has to keep that among longer ones, too. Below the floor the
    command says so, and still exits with 0 unless --check is given.

    Example: pinstripe accuracy sentence-transformers/all-MiniLM-L6-v2 --engine openvino --precision bfloat16
    """
    from pinstripe.accuracy import check_judgeable, reference_opening  # noqa: PLC0415
    from pinstripe.api import Opening  # noqa: PLC0415
    from pinstripe.cli.accuracy_report import print_accuracy  # noqa: PLC0415
    from pinstripe.cli.interrupting import run_to_the_end  # noqa: PLC0415

    check_judgeable(model)
    opening = Opening(
        model=model,
        wanted=read_wanted(
            engine,
            precision=precision,
            options=option or [],
            knobs=knob or [],
            calibration=calibration,
            pythons=python or [],
            also=(reference or "torch-eager",),
            file=file,
            instances=1,
        ),
        revision=revision,
        overrides=read_overrides(override) if override else None,
    )
    # An interpreter that is named without an engine is for the one that is judged.
    pythons = {name: path for name, path in read_pythons(python or []).items() if name}
    compared = reference_opening(opening, reference, pythons=pythons)
    if reference is None and compared.wanted.engine != _REFERENCE:
        note = f"note: {_REFERENCE} is not installed; the reference is float32 of {compared.wanted.engine}"
        standard_error().print(note, soft_wrap=True)
    try:
        found = run_to_the_end(_measure(opening, compared, texts, pairs, limit))
    except KeyboardInterrupt:
        standard_error().print("stopped; nothing was kept, as accuracy writes no file")
        raise
    if as_json:
        print_json(found)
    else:
        print_accuracy(found, standard_output())
    if check and not found.floor.passed:
        raise typer.Exit(1)


async def _measure(
    opening: "Opening", compared: "Opening", texts: Path | None, pairs: Path | None, limit: int
) -> "Accuracy":
    from pinstripe.accuracy import measure_accuracy, measure_reference, read_inputs  # noqa: PLC0415
    from pinstripe.api import run_stoppable  # noqa: PLC0415
    from pinstripe.models import Overrides, resolve  # noqa: PLC0415

    screen = standard_error()
    status = screen.status("finding the model, exporting it if its engine needs that")
    with status if screen.is_terminal else nullcontext():
        network = await asyncio.to_thread(
            resolve, opening.model, revision=opening.revision, overrides=opening.overrides or Overrides()
        )
        inputs = await asyncio.to_thread(read_inputs, network, texts=texts, pairs=pairs, limit=limit)
        await run_stoppable(opening.prepare)  # what cannot be had is said before the reference runs
    with _progress_bars(screen) as show:
        measured = await measure_reference(compared, inputs, show)
        return await measure_accuracy(opening, measured, show)


@contextmanager
def _progress_bars(screen: "Console") -> "Iterator[Callable[[Progress], None]]":
    """Yield what shows a bar for each part of the measurement."""
    from rich import progress as rich_progress  # noqa: PLC0415

    bars = rich_progress.Progress(
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(20),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeRemainingColumn(),
        console=screen,
        transient=True,
        disable=not screen.is_terminal,
    )
    tasks: dict[str, rich_progress.TaskID] = {}

    def show(progress: "Progress") -> None:
        if progress.what not in tasks:
            tasks[progress.what] = bars.add_task(progress.what, total=progress.total)
        bars.update(tasks[progress.what], completed=progress.done)

    with bars:
        yield show

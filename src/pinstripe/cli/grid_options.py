"""Options of `bench` that span its grid of configurations, and that say how long each point is measured."""

from pathlib import Path
from typing import Annotated

import typer

from pinstripe.cli.knob_options import KNOB_PANEL

__all__ = [
    "BaselineOption",
    "CoresOption",
    "EngineList",
    "EngineOptions",
    "FileOption",
    "GroupsList",
    "InstancesOption",
    "MaxTimeOption",
    "MemoryOption",
    "MinForwardsOption",
    "MinTimeOption",
    "OutputOption",
    "PeakOption",
    "PinOption",
    "PrecisionList",
    "RepeatsOption",
    "ResumeOption",
    "SmtList",
    "SystemHugepagesOption",
    "ThreadsOption",
]

EngineList = Annotated[
    str, typer.Option(help="Engines, a list; all is every one that is installed. `pinstripe engines` lists them.")
]
PrecisionList = Annotated[str, typer.Option(help="Precisions: float32, bfloat16, int8.")]
InstancesOption = Annotated[
    str | None, typer.Option(help="Numbers of instances; per-core is one a core.", show_default="1")
]
CoresOption = Annotated[str | None, typer.Option(help="Physical cores of each instance; an equal share if not named.")]
GroupsList = Annotated[
    str | None,
    typer.Option(
        help='Instances of different sizes, each for texts of some lengths: "<=32: 2x1, <=128: 1x4, rest: 1x8" '
        "(tokens: instances x cores); alternatives are separated by semicolons.",
        metavar="GROUPS",
    ),
]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        help="Begin with one unpinned process of this engine, which is what most people run.", metavar="ENGINE"
    ),
]
PinOption = Annotated[str, typer.Option(help="cores binds instances to their cores; none does not.")]
ThreadsOption = Annotated[
    str, typer.Option(help="auto: one a CPU of the instance. framework: its own choice; needs --pin none.")
]
SmtList = Annotated[str, typer.Option(help="Hardware threads of each core to use: one, all.")]
MemoryOption = Annotated[
    str,
    typer.Option(
        "--memory-policy",
        "--memory",
        help="Memory of an instance: auto, preferred, bind, interleave, local, none; or all that can be had.",
    ),
]
SystemHugepagesOption = Annotated[
    str | None,
    typer.Option(
        help="Mode of transparent huge pages that the whole system has during the run, and not after it: always, "
        "madvise, never; needs root.",
        rich_help_panel=KNOB_PANEL,
        metavar="MODE",
    ),
]
FileOption = Annotated[
    str | None, typer.Option(help="Exported file for the engine that reads it, such as onnx/model.onnx.")
]
EngineOptions = Annotated[
    list[str] | None,
    typer.Option(
        help="Option of the engines, or of one: onnxruntime.optimization=basic,all; several values span the grid.",
        metavar="[ENGINE.]NAME=VALUE",
    ),
]
RepeatsOption = Annotated[int, typer.Option(min=1, max=1000, help="Rounds over all configurations.")]
MinTimeOption = Annotated[
    float | None,
    typer.Option(
        min=0.05,
        max=3600,
        help="Least seconds of a measurement; in server, of arrivals.",
        show_default="2; in server and multi-stream 10",
    ),
]
MinForwardsOption = Annotated[
    int,
    typer.Option(
        min=1, max=1_000_000, help="Least forward passes of an instance; in server and multi-stream requests."
    ),
]
MaxTimeOption = Annotated[
    float, typer.Option(min=0.05, max=86400, help="Most seconds of a measurement, whatever its forwards.")
]
PeakOption = Annotated[
    bool,
    typer.Option(
        "--peak",
        help="Before each configuration measure what its cores give for large matrix products (about 15 s), and "
        "say what share of that the model reaches.",
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option(help="File that records are appended to.", show_default="records/TIME-RUN.jsonl")
]
ResumeOption = Annotated[
    Path | None,
    typer.Option(help="Go on with an interrupted run: measure what is missing in this file.", metavar="FILE"),
]

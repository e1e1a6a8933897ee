"""`pinstripe bench`: measure configurations of a model."""

from contextlib import AbstractContextManager, nullcontext
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pinstripe.cli.engine_options import (
    CalibrationOption,
    PythonOption,
    python_of,
    read_engines,
    read_pythons,
    read_ways,
)
from pinstripe.cli.knob_options import (
    KNOB_PANEL,
    AllocatorOption,
    FlushDenormalsOption,
    FpmathOption,
    GemmOption,
    HugepagesOption,
    InteropThreadsOption,
    IsaOption,
    OpenmpOption,
    PrimitiveCacheOption,
    SpinOption,
    read_knobs,
    read_values,
)
from pinstripe.cli.model_options import OverrideOption, Revision, read_overrides
from pinstripe.cli.options import (
    Bind,
    CoreKindOption,
    Json,
    Reserve,
    StrategyOption,
    choice,
    split_list,
)
from pinstripe.errors import UsageError

if TYPE_CHECKING:
    from pinstripe.configuration import Configuration

__all__ = ["bench"]

_PER_CORE = "per-core"


def bench(
    model: Annotated[
        str,
        typer.Argument(help="Directory, hub id, package:NAME, or random:bert-base|bert-large|minilm-l6|distilbert."),
    ],
    *,
    engine: Annotated[
        str, typer.Option(help="Engines, a list; all is every one that is installed. `pinstripe engines` lists them.")
    ] = "torch-eager",
    precision: Annotated[str, typer.Option(help="Precisions: float32, bfloat16, int8.")] = "float32",
    batch: Annotated[
        str | None, typer.Option(help="Batch sizes; with --texts the most texts in a batch.", show_default="1")
    ] = None,
    seq: Annotated[str | None, typer.Option(help="Sequence lengths in tokens.", show_default="128")] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            help="Measure the texts of this file, with their real lengths: a JSON object with a field text on each "
            "line of a .jsonl file, else a text on each line.",
            metavar="FILE",
        ),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="sorted: texts of near-equal length in a batch, long ones first. arrival: as they come.",
            show_default="sorted",
        ),
    ] = None,
    token_budget: Annotated[
        str | None, typer.Option(help="Most tokens in a batch of texts, padding included.", metavar="TOKENS")
    ] = None,
    scenario: Annotated[
        str,
        typer.Option(
            help="single-stream: one batch at a time, split over the instances. "
            "offline: every instance runs batches of its own."
        ),
    ] = "single-stream",
    instances: Annotated[
        str | None, typer.Option(help="Numbers of instances; per-core is one a core.", show_default="1")
    ] = None,
    cores: Annotated[
        str | None, typer.Option(help="Physical cores of each instance; an equal share if not named.")
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Begin with one unpinned process of this engine, which is what most people run.", metavar="ENGINE"
        ),
    ] = None,
    pin: Annotated[str, typer.Option(help="cores binds instances to their cores; none does not.")] = "cores",
    threads: Annotated[
        str, typer.Option(help="auto: one a CPU of the instance. framework: its own choice; needs --pin none.")
    ] = "auto",
    strategy: StrategyOption = "close",
    smt: Annotated[str, typer.Option(help="Hardware threads of each core to use: one, all.")] = "one",
    core_kind: CoreKindOption = "performance",
    reserve: Reserve = 0,
    bind: Bind = None,
    memory: Annotated[
        str,
        typer.Option(
            "--memory-policy",
            "--memory",
            help="Memory of an instance: auto, preferred, bind, interleave, local, none; or all that can be had.",
        ),
    ] = "auto",
    allocator: AllocatorOption = None,
    openmp: OpenmpOption = None,
    spin: SpinOption = None,
    hugepages: HugepagesOption = None,
    isa: IsaOption = None,
    fpmath: FpmathOption = None,
    gemm: GemmOption = None,
    primitive_cache: PrimitiveCacheOption = None,
    flush_denormals: FlushDenormalsOption = None,
    interop_threads: InteropThreadsOption = None,
    system_hugepages: Annotated[
        str | None,
        typer.Option(
            help="Mode of transparent huge pages that the whole system has during the run, and not after it: always, "
            "madvise, never; needs root.",
            rich_help_panel=KNOB_PANEL,
            metavar="MODE",
        ),
    ] = None,
    file: Annotated[
        str | None, typer.Option(help="Exported file for the engine that reads it, such as onnx/model.onnx.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            help="Option of the engines, or of one: onnxruntime.optimization=basic,all; several values span the grid.",
            metavar="[ENGINE.]NAME=VALUE",
        ),
    ] = None,
    calibration: CalibrationOption = None,
    python: PythonOption = None,
    override: OverrideOption = None,
    revision: Revision = None,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="Rounds over all configurations.")] = 3,
    min_time: Annotated[float, typer.Option(min=0.05, max=3600, help="Least seconds of a measurement.")] = 2.0,
    min_forwards: Annotated[int, typer.Option(min=1, max=1_000_000, help="Least forward passes of an instance.")] = 10,
    max_time: Annotated[
        float, typer.Option(min=0.05, max=86400, help="Most seconds of a measurement, whatever its forwards.")
    ] = 300.0,
    peak: Annotated[
        bool,
        typer.Option(
            "--peak",
            help="Before each configuration measure what its cores give for large matrix products (about 15 s), and "
            "say what share of that the model reaches.",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="File that records are appended to.", show_default="records/TIME-RUN.jsonl")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Go on with an interrupted run: measure what is missing in this file.", metavar="FILE"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure a model: every engine with every number of instances, under every batch size and length, or on texts.

    Values separated by commas span a grid. Each configuration gets fresh processes, pinned to their cores.
    Rounds are interleaved, so that ratios mean something on a machine that is never quite still.

    Example: pinstripe bench random:bert-base --engine openvino --scenario offline --seq 16,128 --instances 1,2

    Example: pinstripe bench MODEL --texts FILE.jsonl --scenario offline --order sorted,arrival --token-budget 1024
    """
    from msgspec.structs import replace  # noqa: PLC0415

    from pinstripe.bench import Limits  # noqa: PLC0415
    from pinstripe.cli.measuring import measure  # noqa: PLC0415
    from pinstripe.cli.workloads import read_workloads  # noqa: PLC0415
    from pinstripe.configuration import Configuration, Pin, Threads  # noqa: PLC0415
    from pinstripe.engines import Precision  # noqa: PLC0415
    from pinstripe.knobs import read_host  # noqa: PLC0415
    from pinstripe.machine import read_machine  # noqa: PLC0415
    from pinstripe.placement import CoreKindWish, SmtUse, Strategy, Wish  # noqa: PLC0415
    from pinstripe.placement import place as place_on  # noqa: PLC0415

    with _system_huge_pages(system_hugepages):
        machine = read_machine()
        smts = [choice(text, SmtUse, "--smt") for text in split_list(smt, "--smt", str)]
        wish = Wish(
            cores=1,
            strategy=choice(strategy, Strategy, "--strategy"),
            smt=smts[0],
            core_kind=choice(core_kind, CoreKindWish, "--core-kind"),
            reserve=reserve,
        )

        def number(text: str) -> int:
            if text == _PER_CORE:
                return len(place_on(machine, wish).instances)
            if not text.isdecimal():
                raise UsageError(f"--instances {text!r} is not understood; use numbers, or {_PER_CORE}")
            return int(text)

        first = Configuration(
            engine="",
            pin=choice(pin, Pin, "--pin"),
            threads=choice(threads, Threads, "--threads"),
            strategy=wish.strategy,
            core_kind=wish.core_kind,
            reserve=reserve,
            bind=bind,
        )
        pythons = read_pythons(python or [])
        engines = read_engines(engine, pythons)
        if bind is not None and instances is not None:
            raise UsageError(f"--bind {bind!r} says how many instances there are; leave --instances out")
        counts = split_list(instances or "1", "--instances", number)
        sizes: list[int | None] = [None] if cores is None else [*split_list(cores, "--cores", int)]
        ways = read_ways(
            engines,
            precisions=[choice(text, Precision, "--precision") for text in split_list(precision, "--precision", str)],
            options=option or [],
            file=file,
            calibration=calibration,
            pythons=pythons,
        )
        configurations = [*_baseline(baseline, pythons)]
        host = read_host(machine)
        knobs = read_knobs(
            {
                "allocator": allocator,
                "openmp": openmp,
                "spin": spin,
                "hugepages": hugepages,
                "isa": isa,
                "fpmath": fpmath,
                "gemm": gemm,
                "primitive_cache": primitive_cache,
                "flush_denormals": flush_denormals,
                "interop_threads": interop_threads,
            },
            {(way["engine"], way["precision"]): None for way in ways},
            host,
        )
        memories = read_values("memory_policy", memory, host)
        shapes = product(counts, sizes, smts, memories)
        shaped = [
            replace(first, instances=count, cores=size, smt=threads_used, memory_policy=policy)
            for count, size, threads_used, policy in shapes
        ]
        configurations += [
            replace(shape, **way, knobs=turned)
            for way in ways
            for turned in knobs[way["engine"], way["precision"]]
            for shape in shaped
        ]
        workloads, contents = read_workloads(
            scenario, batch=batch, seq=seq, texts=texts, order=order, token_budget=token_budget
        )
        measure(
            model,
            revision=revision,
            overrides=read_overrides(override or []),
            machine=machine,
            configurations=configurations,
            workloads=workloads,
            texts=contents or None,
            repeats=repeats,
            limits=Limits(min_s=min_time, min_forwards=min_forwards, max_s=max(max_time, min_time)),
            output=output,
            resume=resume,
            as_json=as_json,
            peak=peak,
        )


def _system_huge_pages(mode: str | None) -> AbstractContextManager[None]:
    """Return the context in which the system has that mode of huge pages; None leaves it as it is."""
    if mode is None:
        return nullcontext()
    from pinstripe.cli.console import standard_error  # noqa: PLC0415
    from pinstripe.runtime import SystemHugePages, system_huge_pages  # noqa: PLC0415

    return system_huge_pages(choice(mode, SystemHugePages, "--system-hugepages"), standard_error().print)


def _baseline(engine: str | None, pythons: dict[str | None, str]) -> "list[Configuration]":
    from pinstripe.configuration import Configuration  # noqa: PLC0415

    if engine is None:
        return []
    return [Configuration(engine=engine, pin="none", threads="framework", python=python_of(engine, pythons))]

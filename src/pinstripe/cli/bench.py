"""`pinstripe bench`: measure configurations of a model."""

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Final

import typer

from pinstripe.cli.engine_options import CalibrationOption, PythonOption
from pinstripe.cli.grid_options import (
    BaselineOption,
    CoresOption,
    EngineList,
    EngineOptions,
    FileOption,
    GroupsList,
    InstancesOption,
    MaxTimeOption,
    MemoryOption,
    MinForwardsOption,
    MinTimeOption,
    OutputOption,
    PeakOption,
    PinOption,
    PrecisionList,
    RepeatsOption,
    ResumeOption,
    SmtList,
    SystemHugepagesOption,
    ThreadsOption,
)
from pinstripe.cli.knob_options import (
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
)
from pinstripe.cli.model_options import OverrideOption, Revision, read_overrides
from pinstripe.cli.options import Bind, CoreKindOption, Json, Reserve, StrategyOption, choice
from pinstripe.cli.workload_options import (
    ArrivalsOption,
    BatchOption,
    ClientsOption,
    FindPeakOption,
    OrderOption,
    P99Option,
    PatienceOption,
    PolicyOption,
    RateOption,
    ScenarioOption,
    SeedOption,
    SeqOption,
    TextsOption,
    TextsPerRequestOption,
    TokenBudgetOption,
    TraceOption,
)

__all__ = ["bench"]

_USUAL_S: Final = {"single-stream": 2.0, "offline": 2.0}
_USUAL_S_FOR_P99: Final = 10.0
"""The 99th percentile needs some hundred values to be bounded."""


def bench(
    model: Annotated[
        str,
        typer.Argument(help="Directory, hub id, package:NAME, or random:bert-base|bert-large|minilm-l6|distilbert."),
    ],
    *,
    engine: EngineList = "torch-eager",
    precision: PrecisionList = "float32",
    batch: BatchOption = None,
    seq: SeqOption = None,
    texts: TextsOption = None,
    order: OrderOption = None,
    token_budget: TokenBudgetOption = None,
    scenario: ScenarioOption = "single-stream",
    policy: PolicyOption = None,
    patience: PatienceOption = None,
    instances: InstancesOption = None,
    cores: CoresOption = None,
    groups: GroupsList = None,
    baseline: BaselineOption = None,
    pin: PinOption = "cores",
    threads: ThreadsOption = "auto",
    strategy: StrategyOption = "close",
    smt: SmtList = "one",
    core_kind: CoreKindOption = "performance",
    reserve: Reserve = 0,
    bind: Bind = None,
    memory: MemoryOption = "auto",
    rate: RateOption = None,
    arrivals: ArrivalsOption = None,
    trace: TraceOption = None,
    clients: ClientsOption = None,
    texts_per_request: TextsPerRequestOption = None,
    seed: SeedOption = None,
    find_peak: FindPeakOption = False,
    p99_ms: P99Option = None,
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
    system_hugepages: SystemHugepagesOption = None,
    file: FileOption = None,
    option: EngineOptions = None,
    calibration: CalibrationOption = None,
    python: PythonOption = None,
    override: OverrideOption = None,
    revision: Revision = None,
    repeats: RepeatsOption = 3,
    min_time: MinTimeOption = None,
    min_forwards: MinForwardsOption = 10,
    max_time: MaxTimeOption = 300.0,
    peak: PeakOption = False,
    output: OutputOption = None,
    resume: ResumeOption = None,
    as_json: Json = False,
) -> None:
    """Measure a model: every engine with every number of instances, under every batch size and length, or on texts.

    Values separated by commas span a grid. Each configuration gets fresh processes, pinned to their cores.
    Rounds are interleaved, so that ratios mean something on a machine that is never quite still.

    Example: pinstripe bench random:bert-base --engine openvino --scenario offline --seq 16,128 --instances 1,2

    Example: pinstripe bench MODEL --texts FILE.jsonl --scenario offline --order sorted,arrival --token-budget 1024

    Example: pinstripe bench MODEL --texts FILE.jsonl --scenario server --rate 50,100 --policy smart,fifo
    """
    from pinstripe.bench import Limits  # noqa: PLC0415
    from pinstripe.cli.configurations import ConfigurationWords, read_configurations  # noqa: PLC0415
    from pinstripe.cli.measuring import measure  # noqa: PLC0415
    from pinstripe.cli.workloads import WorkloadWords, read_workloads  # noqa: PLC0415
    from pinstripe.machine import read_machine  # noqa: PLC0415

    with _system_huge_pages(system_hugepages):
        machine = read_machine()
        configurations = read_configurations(
            ConfigurationWords(
                engine=engine,
                precision=precision,
                instances=instances,
                cores=cores,
                groups=groups,
                baseline=baseline,
                pin=pin,
                threads=threads,
                strategy=strategy,
                smt=smt,
                core_kind=core_kind,
                reserve=reserve,
                bind=bind,
                memory=memory,
                knobs={
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
                file=file,
                option=option or [],
                calibration=calibration,
                python=python or [],
            ),
            machine,
        )
        asked = read_workloads(
            WorkloadWords(
                scenario=scenario,
                batch=batch,
                seq=seq,
                texts=texts,
                order=order,
                token_budget=token_budget,
                policy=policy,
                patience=patience,
                rate=rate,
                arrivals=arrivals,
                trace=trace,
                clients=clients,
                texts_per_request=texts_per_request,
                seed=seed,
                find_peak=find_peak,
                p99_ms=p99_ms,
            )
        )
        least_s = _USUAL_S.get(scenario, _USUAL_S_FOR_P99) if min_time is None else min_time
        measure(
            model,
            revision=revision,
            overrides=read_overrides(override or []),
            machine=machine,
            configurations=configurations,
            asked=asked,
            repeats=repeats,
            limits=Limits(min_s=least_s, min_forwards=min_forwards, max_s=max(max_time, least_s)),
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

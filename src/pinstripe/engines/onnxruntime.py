"""ONNX Runtime on its CPU execution provider."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.graphs.compiled import load_compiled
from pinstripe.engines.graphs.inputs import GraphInputs, output_names, stack_outputs
from pinstripe.engines.graphs.onnx_products import read_onnx_products
from pinstripe.engines.graphs.products import Products, check_products, computed_precision, describe_products
from pinstripe.engines.graphs.weights import check_float32_weights, graph_digest
from pinstripe.engines.importing import import_library, one_line
from pinstripe.engines.options import checked_options, read_options
from pinstripe.engines.protocol import (
    ArtefactFormat,
    Compiling,
    EngineReport,
    LoadRequest,
    OptionValue,
    Precision,
    Quantization,
    Threading,
)
from pinstripe.errors import EngineError
from pinstripe.machine import read_isa
from pinstripe.models import TokenBatch

__all__ = ["OnnxRuntime", "OnnxRuntimeOptions"]

T = TypeVar("T")

_PROVIDER: Final = "CPUExecutionProvider"
_SPINNING: Final = "session.intra_op.allow_spinning"
_SPIN_DURATION: Final = "session.intra_op.spin_duration_us"
_FIRST_WITH_DURATION: Final = (1, 26)
_WITHOUT_SATURATION: Final = "session.x64quantprecision"
_FLUSH: Final = "session.set_denormal_as_zero"
_ENTRIES: Final = (_SPINNING, _SPIN_DURATION, _WITHOUT_SATURATION, _FLUSH)
_LEVELS: Final = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_ERRORS_ONLY: Final = 3
_TYPES: Final = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}
_GRAPH_FILE: Final = "model.onnx"
_WIDE_SUMS: Final = frozenset({"avx512_vnni", "avx_vnni", "amx_int8"})
"""Flags of x86 CPUs that sum products of 8-bit integers in 32 bits; others saturate at 16."""


class OnnxRuntimeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engine.

    Attributes:
        spin: Milliseconds that idle compute threads spin before they sleep; None for the library's default, a million
            rounds. Other times than 0 need ONNX Runtime 1.26, which brought `session.intra_op.spin_duration_us`.
        optimization: Level of graph optimization (`SessionOptions.graph_optimization_level`).
        flush_denormals: Whether compute threads take numbers too small for full precision for zero
            (`session.set_denormal_as_zero`); `auto` leaves that to ONNX Runtime, which does not.
    """

    spin: Annotated[int, msgspec.Meta(ge=0, le=10_000)] | None = None
    optimization: Literal["disabled", "basic", "extended", "all"] = "all"
    flush_denormals: Literal["auto", "on", "off"] = "auto"


class OnnxRuntime:
    """ONNX Runtime.

    With a thread count, its threads are not bound and so inherit the process's affinity. Without one, ONNX Runtime
    makes a thread a physical core and binds each to it (documentation, "Thread management").

    A graph is optimized once, and its weights are laid out for the CPU's kernels once; both are kept in the cache, and
    instances map them into memory (see docs/decisions/013).
    """

    name: ClassVar[str] = "onnxruntime"
    format: ClassVar[ArtefactFormat] = "onnx"
    # Not bfloat16: the CPU provider of 1.32 has no MatMul of that type (NOT_IMPLEMENTED).
    precisions: ClassVar[tuple[Precision, ...]] = ("float32", "int8")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime",)
    also_needs: ClassVar[Mapping[Precision, str]] = {}
    extra: ClassVar[str] = "onnxruntime"
    options_type: ClassVar[type[msgspec.Struct]] = OnnxRuntimeOptions
    threading: ClassVar[Threading] = "own"
    compiles: ClassVar[Compiling] = "never"

    def quantization(self, precision: Precision, options: Mapping[str, OptionValue]) -> Quantization:
        """Return `dynamic` for int8; see `GraphEngine.quantization`."""
        read_options(self, options, OnnxRuntimeOptions)
        return "dynamic" if precision == "int8" else "none"

    def load(self, request: LoadRequest) -> "_OnnxModel":
        """Load an ONNX file; see `Engine.load` and `OnnxRuntimeOptions`."""
        options = checked_options(self, request, OnnxRuntimeOptions)
        library = _import_onnxruntime()
        path = Path(request.artefact.path)
        if request.precision == "float32":
            check_float32_weights(path, rounded=False)
        level = _LEVELS[options.optimization]

        def loaded(directory: Path) -> tuple[Any, int, Products]:
            optimized = directory / _GRAPH_FILE
            before = _thread_ids()
            session = _session(library, optimized, _session_options(library, options, request.threads))
            # The calling thread computes too. Onnxruntime cannot be asked, but its pool is complete at this point.
            return session, len(_thread_ids() - before) + 1, read_onnx_products(optimized)

        session, threads, products = _load_optimized(library, path, options, loaded)
        check_products(products, request.precision, str(path))
        if request.threads not in (None, threads):
            raise EngineError(f"onnxruntime computes with {threads} threads instead of {request.threads}")
        return _OnnxModel(session, request, _report(library, session, level, products, threads))


def _import_onnxruntime() -> Any:
    """Import ONNX Runtime without its telemetry, whose threads keep a database in the home directory to be uploaded.

    `disable_telemetry_events()` would come too late: they start with the import (seen in 1.32).
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return import_library("onnxruntime", extra="onnxruntime")


def _thread_ids() -> frozenset[str]:
    return frozenset(task.name for task in Path("/proc/self/task").iterdir())


def _load_optimized(library: Any, path: Path, options: OnnxRuntimeOptions, load: Callable[[Path], T]) -> T:
    """Load the graph at a level of optimization, its weights laid out for this CPU in a file beside it."""
    level = _LEVELS[options.optimization]
    made_from = {"version": library.__version__, "graph": graph_digest(path), "level": level}

    def build(directory: Path) -> None:
        session = _common_options(library, level, options.flush_denormals)
        session.intra_op_num_threads = 1
        session.optimized_model_filepath = str(directory / _GRAPH_FILE)
        weights_file = f"{_GRAPH_FILE}.data"
        session.add_session_config_entry("session.optimized_model_external_initializers_file_name", weights_file)
        session.add_session_config_entry("session.save_external_prepacked_constant_initializers", "1")
        _session(library, path, session)

    return load_compiled(OnnxRuntime.name, made_from, build, load, EngineError)


def _session(library: Any, path: Path, options: Any) -> Any:
    try:
        return library.InferenceSession(str(path), options, providers=[_PROVIDER])
    except Exception as error:  # onnxruntime's exceptions have no common base
        raise EngineError(f"onnxruntime cannot load {path}: {one_line(error)}") from error


def _common_options(library: Any, level: str, flush_denormals: str) -> Any:
    options = library.SessionOptions()
    options.execution_mode = library.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = getattr(library.GraphOptimizationLevel, level)
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # Kernels that cannot saturate, less than half as fast on a CPU that needs none.
    options.add_session_config_entry(_WITHOUT_SATURATION, "0" if _WIDE_SUMS & set(read_isa()) else "1")
    if flush_denormals != "auto":
        # For the calling thread, only the first session of a process counts (seen in 1.32), so all of them say it.
        options.add_session_config_entry(_FLUSH, "1" if flush_denormals == "on" else "0")
    return options


def _session_options(library: Any, options: OnnxRuntimeOptions, threads: int | None) -> Any:
    session = _common_options(library, "ORT_DISABLE_ALL", options.flush_denormals)  # the graph is optimized already
    session.intra_op_num_threads = threads or 0
    session.add_session_config_entry(_SPINNING, "0" if options.spin == 0 else "1")
    if options.spin:
        version = tuple(map(int, library.__version__.split(".")[:2]))
        if version < _FIRST_WITH_DURATION:  # it would ignore the entry
            raise EngineError(f"onnxruntime {library.__version__} takes no spin={options.spin}; install 1.26 or newer")
        session.add_session_config_entry(_SPIN_DURATION, str(options.spin * 1000))
    return session


def _element_type(path: str, tensor: Any) -> np.dtype[Any]:
    if tensor.type not in _TYPES:
        raise EngineError(f"{path} wants {tensor.type} as {tensor.name}; choose another file with --file")
    return np.dtype(_TYPES[tensor.type])


def _report(library: Any, session: Any, level: str, products: Products, threads: int) -> EngineReport:
    options = session.get_session_options()
    entries = {name: value for name in _ENTRIES if (value := _entry(options, name)) is not None}
    return EngineReport(
        engine=OnnxRuntime.name,
        version=str(library.__version__),
        precision=computed_precision(products),
        threads=threads,
        settings={
            "execution_mode": options.execution_mode.name,
            "graph_optimization_level": level,
            "inter_op_num_threads": str(options.inter_op_num_threads),
            "intra_op_num_threads": str(options.intra_op_num_threads),
            "products": describe_products(products),
            "providers": ",".join(session.get_providers()),
            **entries,
            "calling_thread_flushes": str(_flushes_denormals()).lower(),
            "threads": "threads made with the session, counted in /proc/self/task, and the calling one",
        },
    )


def _flushes_denormals() -> bool:
    """Return whether this thread takes denormal numbers for zero, which is a mode of each thread."""
    numbers = np.full(16, 1e-39, np.float32) * np.float32(1)
    return not numbers.view(np.uint32).any()


def _entry(options: Any, name: str) -> str | None:
    try:
        return str(options.get_session_config_entry(name))
    except RuntimeError:  # it is not set
        return None


class _OnnxModel:
    def __init__(self, session: Any, request: LoadRequest, report: EngineReport) -> None:
        path = request.artefact.path
        self._session = session
        self._report = report
        types = {tensor.name: _element_type(path, tensor) for tensor in session.get_inputs()}
        self._inputs = GraphInputs(types, request.network, path)
        outputs = {tensor.name: tensor.type for tensor in session.get_outputs()}
        self._outputs = output_names(request.network, outputs, path)
        if wrong := {outputs[name] for name in self._outputs} - {"tensor(float)"}:
            raise EngineError(f"{path} returns {', '.join(sorted(wrong))}; choose a float32 file with --file")

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        return stack_outputs(self._session.run(self._outputs, self._inputs.arrays(batch)))

    def report(self) -> EngineReport:
        return self._report

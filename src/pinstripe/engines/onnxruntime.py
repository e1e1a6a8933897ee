"""ONNX Runtime on its CPU execution provider."""

import os
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.graph import GraphInputs, output_names, stack_outputs
from pinstripe.engines.importing import import_library, one_line
from pinstripe.engines.options import checked_options
from pinstripe.engines.protocol import ArtefactFormat, EngineReport, LoadRequest, Precision
from pinstripe.engines.weights import check_float32_weights
from pinstripe.errors import EngineError
from pinstripe.models import TokenBatch

__all__ = ["OnnxRuntime", "OnnxRuntimeOptions"]

_PROVIDER: Final = "CPUExecutionProvider"
_SPINNING: Final = "session.intra_op.allow_spinning"
_LEVELS: Final = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_ERRORS_ONLY: Final = 3
_TYPES: Final = {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(float)": np.float32}


class OnnxRuntimeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engine.

    Attributes:
        spinning: Whether idle compute threads spin for a while before they sleep (`session.intra_op.allow_spinning`).
        optimization: Level of graph optimization (`SessionOptions.graph_optimization_level`).
    """

    spinning: bool = True
    optimization: Literal["disabled", "basic", "extended", "all"] = "all"


class OnnxRuntime:
    """ONNX Runtime.

    With a thread count, its threads are not bound and so inherit the process's affinity. Without one, ONNX Runtime
    makes a thread a physical core and binds each to it (documentation, "Thread management").
    """

    name: ClassVar[str] = "onnxruntime"
    format: ClassVar[ArtefactFormat] = "onnx"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32",)
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime",)

    def load(self, request: LoadRequest) -> "_OnnxModel":
        """Load an ONNX file; see `Engine.load` and `OnnxRuntimeOptions`."""
        options = checked_options(self, request, OnnxRuntimeOptions)
        library = _import_onnxruntime()
        path = request.artefact.path
        check_float32_weights(Path(path), rounded=False)
        before = _thread_ids()
        try:
            session = library.InferenceSession(
                path, _session_options(library, options, request.threads), providers=[_PROVIDER]
            )
        except Exception as error:  # onnxruntime's exceptions have no common base
            raise EngineError(f"onnxruntime cannot load {path}: {one_line(error)}") from error
        # The calling thread computes too. Onnxruntime cannot be asked, but its pool is complete at this point.
        threads = len(_thread_ids() - before) + 1
        if request.threads not in (None, threads):
            raise EngineError(f"onnxruntime computes with {threads} threads instead of {request.threads}")
        return _OnnxModel(library, session, request, threads)


def _import_onnxruntime() -> Any:
    """Import ONNX Runtime without its telemetry, whose threads keep a database in the home directory to be uploaded.

    `disable_telemetry_events()` would come too late: they start with the import (seen in 1.32).
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return import_library("onnxruntime", extra="onnxruntime")


def _thread_ids() -> frozenset[str]:
    return frozenset(task.name for task in Path("/proc/self/task").iterdir())


def _session_options(library: Any, options: OnnxRuntimeOptions, threads: int | None) -> Any:
    session = library.SessionOptions()
    session.execution_mode = library.ExecutionMode.ORT_SEQUENTIAL
    session.graph_optimization_level = getattr(library.GraphOptimizationLevel, _LEVELS[options.optimization])
    session.inter_op_num_threads = 1
    session.intra_op_num_threads = threads or 0
    session.log_severity_level = _ERRORS_ONLY
    session.add_session_config_entry(_SPINNING, "1" if options.spinning else "0")
    return session


def _element_type(path: str, tensor: Any) -> np.dtype[Any]:
    if tensor.type not in _TYPES:
        raise EngineError(f"{path} wants {tensor.type} as {tensor.name}; choose another file with --file")
    return np.dtype(_TYPES[tensor.type])


class _OnnxModel:
    def __init__(self, library: Any, session: Any, request: LoadRequest, threads: int) -> None:
        path = request.artefact.path
        self._version = str(library.__version__)
        self._session = session
        self._threads = threads
        types = {tensor.name: _element_type(path, tensor) for tensor in session.get_inputs()}
        self._inputs = GraphInputs(types, request.network, path)
        outputs = {tensor.name: tensor.type for tensor in session.get_outputs()}
        self._outputs = output_names(request.network, outputs, path)
        if wrong := {outputs[name] for name in self._outputs} - {"tensor(float)"}:
            raise EngineError(f"{path} returns {', '.join(sorted(wrong))}; choose a float32 file with --file")

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        return stack_outputs(self._session.run(self._outputs, self._inputs.arrays(batch)))

    def report(self) -> EngineReport:
        options = self._session.get_session_options()
        return EngineReport(
            engine=OnnxRuntime.name,
            version=self._version,
            precision="float32",  # of every weight and of the outputs, checked on loading
            threads=self._threads,
            settings={
                "execution_mode": options.execution_mode.name,
                "graph_optimization_level": options.graph_optimization_level.name,
                "inter_op_num_threads": str(options.inter_op_num_threads),
                "intra_op_num_threads": str(options.intra_op_num_threads),
                "providers": ",".join(self._session.get_providers()),
                _SPINNING: options.get_session_config_entry(_SPINNING),
                "threads": "threads made with the session, counted in /proc/self/task, and the calling one",
            },
        )

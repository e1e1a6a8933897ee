"""OpenVINO on its CPU plugin."""

import sys
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.graph import GraphInputs, output_names, stack_outputs
from pinstripe.engines.importing import import_library, one_line
from pinstripe.engines.options import NoOptions, checked_options
from pinstripe.engines.protocol import ArtefactFormat, EngineReport, LoadRequest, Precision
from pinstripe.engines.weights import check_float32_weights
from pinstripe.errors import EngineError
from pinstripe.models import Network, TokenBatch

__all__ = ["OpenVino", "import_openvino"]

_PRECISION: Final = "INFERENCE_PRECISION_HINT"
_THREADS: Final = "INFERENCE_NUM_THREADS"
_REPORTED: Final = (
    "DYNAMIC_QUANTIZATION_GROUP_SIZE",
    "ENABLE_CPU_PINNING",
    "ENABLE_HYPER_THREADING",
    "EXECUTION_MODE_HINT",
    "NUM_STREAMS",
    "PERFORMANCE_HINT",
)


class OpenVino:
    """OpenVINO."""

    name: ClassVar[str] = "openvino"
    format: ClassVar[ArtefactFormat] = "openvino"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32",)
    distributions: ClassVar[tuple[str, ...]] = ("openvino",)

    def load(self, request: LoadRequest) -> "_OpenVinoModel":
        """Load an IR file (`.xml` with its `.bin`); see `Engine.load`. There are no options."""
        checked_options(self, request, NoOptions)
        library = import_openvino()
        path = request.artefact.path
        weights = check_float32_weights(Path(path), rounded=True)
        try:
            compiled = library.Core().compile_model(path, "CPU", _properties(request.threads))
        except RuntimeError as error:
            raise EngineError(f"openvino cannot load {path}: {one_line(error)}") from error
        _check_effective(library, compiled, request.threads)
        return _OpenVinoModel(library, compiled, request, weights)


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry, which would report every import and conversion over the network.

    Raises:
        EngineError: It is not installed.
    """
    # Only the user's home directory has a switch for it; OpenVINO falls back to a stub where the package is absent.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type] # None blocks an import
    return import_library("openvino", extra="openvino")


def _properties(threads: int | None) -> dict[str, Any]:
    properties: dict[str, Any] = {
        _PRECISION: "f32",  # the default is bfloat16 on CPUs that have it
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "PERFORMANCE_HINT": "LATENCY",
    }
    if threads is not None:
        # Threads inherit the process's affinity. OpenVINO counts the CPUs it may use within that, siblings only if
        # hyper-threading is on.
        properties |= {
            _THREADS: threads,
            "ENABLE_CPU_PINNING": False,
            "ENABLE_HYPER_THREADING": True,
            "NUM_STREAMS": 1,
        }
    return properties


def _check_effective(library: Any, compiled: Any, threads: int | None) -> None:
    if (precision := compiled.get_property(_PRECISION)) != library.Type.f32:
        raise EngineError(f"openvino computes in {precision.get_type_name()} instead of float32 on this CPU")
    if threads is None:
        return
    if (effective := int(compiled.get_property(_THREADS))) != threads:
        message = f"openvino computes with {effective} threads instead of {threads}"
        raise EngineError(f"{message}; it uses at most the CPUs of the process's affinity")
    if (streams := int(compiled.get_property("NUM_STREAMS"))) != 1:
        raise EngineError(f"openvino splits its threads into {streams} streams instead of 1")


class _OpenVinoModel:
    def __init__(self, library: Any, compiled: Any, request: LoadRequest, weights: frozenset[str]) -> None:
        path = request.artefact.path
        self._library = library
        self._compiled = compiled
        self._weights = weights
        self._request = compiled.create_infer_request()
        self._inputs = GraphInputs(_input_types(compiled), request.network, path)
        self._outputs = _outputs(compiled, request.network, path)

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        inputs = self._inputs.arrays(batch)  # kept until the end, since the tensors only borrow the memory
        for port, array in enumerate(inputs.values()):  # by number, which is faster than by name
            self._request.set_input_tensor(port, self._library.Tensor(array, shared_memory=True))
        self._request.infer(share_outputs=True)  # else it copies them all, to return what is not used here
        # The request owns its output memory and writes there again next time.
        outputs = [self._request.get_tensor(name).data for name in self._outputs]
        return outputs[0].copy() if len(outputs) == 1 else stack_outputs(outputs)

    def report(self) -> EngineReport:
        precision = self._compiled.get_property(_PRECISION)
        settings = {name: _text(self._compiled.get_property(name)) for name in _REPORTED}
        return EngineReport(
            engine=OpenVino.name,
            version=str(self._library.__version__),
            precision=str(precision.to_dtype().name),
            threads=int(self._compiled.get_property(_THREADS)),
            settings={**settings, "weights": "+".join(sorted(self._weights))},
        )


def _input_types(compiled: Any) -> dict[str, np.dtype[Any]]:
    return {port.get_any_name(): np.dtype(port.get_element_type().to_dtype()) for port in compiled.inputs}


def _outputs(compiled: Any, network: Network, path: str) -> tuple[str, ...]:
    types = {name: port.get_element_type() for port in compiled.outputs for name in port.get_names()}
    names = output_names(network, types, path)
    if wrong := {types[name].get_type_name() for name in names} - {"f32"}:
        raise EngineError(f"{path} returns {', '.join(sorted(wrong))}; choose a float32 file with --file")
    return names


def _text(value: Any) -> str:
    """Return `LATENCY` for an enumeration's `PerformanceMode.LATENCY`, other values as they print."""
    return str(getattr(value, "name", value))

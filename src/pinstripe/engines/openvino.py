"""OpenVINO on its CPU plugin."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.graphs.compiled import load_compiled
from pinstripe.engines.graphs.inputs import GraphInputs, output_names, stack_outputs
from pinstripe.engines.graphs.openvino_library import import_openvino, openvino_core
from pinstripe.engines.graphs.openvino_products import read_openvino_products
from pinstripe.engines.graphs.products import Products, check_products, computed_precision, describe_products
from pinstripe.engines.graphs.weights import check_float32_weights, graph_digest, weight_types
from pinstripe.engines.importing import one_line
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
from pinstripe.models import Network, TokenBatch

__all__ = ["OpenVino", "OpenVinoOptions"]

_PRECISION: Final = "INFERENCE_PRECISION_HINT"
_THREADS: Final = "INFERENCE_NUM_THREADS"
_STREAMS: Final = "NUM_STREAMS"
_GROUP_SIZE: Final = "DYNAMIC_QUANTIZATION_GROUP_SIZE"
_GROUP_SIZES: Final = (32, 64, 128)
_FLUSH: Final = "CPU_DENORMALS_OPTIMIZATION"
_REPORTED: Final = (
    _FLUSH,
    _GROUP_SIZE,
    "ENABLE_CPU_PINNING",
    "ENABLE_HYPER_THREADING",
    "EXECUTION_MODE_HINT",
    _PRECISION,
    "LOADED_FROM_CACHE",
    _STREAMS,
    "PERFORMANCE_HINT",
)


class OpenVinoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engine.

    Attributes:
        quantization: For int8: `dynamic` takes the scales of activations as they come, `static` fixed ones from
            calibration texts.
        group_size: For dynamic int8: activations that share a scale (`DYNAMIC_QUANTIZATION_GROUP_SIZE`); more of them
            are faster and less exact. `auto` takes as many, at most 128, as the model's width holds.
        flush_denormals: Whether compute threads take numbers too small for full precision for zero
            (`CPU_DENORMALS_OPTIMIZATION`); `auto` leaves that to OpenVINO, which does not.
    """

    quantization: Literal["dynamic", "static"] = "dynamic"
    group_size: Literal["auto", 32, 64, 128] = "auto"
    flush_denormals: Literal["auto", "on", "off"] = "auto"


class OpenVino:
    """OpenVINO.

    A graph is compiled once and kept in the cache, from where instances load it; its weights stay in the graph's file,
    which they map into memory (see docs/decisions/014).
    """

    name: ClassVar[str] = "openvino"
    format: ClassVar[ArtefactFormat] = "openvino"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32", "bfloat16", "int8")
    distributions: ClassVar[tuple[str, ...]] = ("openvino",)
    also_needs: ClassVar[Mapping[Precision, str]] = {}
    extra: ClassVar[str] = "openvino"
    options_type: ClassVar[type[msgspec.Struct]] = OpenVinoOptions
    threading: ClassVar[Threading] = "tbb"
    compiles: ClassVar[Compiling] = "never"

    def quantization(self, precision: Precision, options: Mapping[str, OptionValue]) -> Quantization:
        """Return what the option says for int8; see `GraphEngine.quantization`."""
        kind = read_options(self, options, OpenVinoOptions).quantization
        if precision == "int8":
            return "weights" if kind == "dynamic" else "static"
        if kind == "static":
            raise EngineError(f"quantization=static is for int8, and {precision} was asked for; leave it out")
        return "none"

    def load(self, request: LoadRequest) -> "_OpenVinoModel":
        """Load an IR file (`.xml` with its `.bin`); see `Engine.load` and `OpenVinoOptions`."""
        options = checked_options(self, request, OpenVinoOptions)
        library = import_openvino()
        path = request.artefact.path
        int8 = request.precision == "int8"
        weights = weight_types(Path(path)) if int8 else check_float32_weights(Path(path), rounded=True)
        properties = _properties(request, options)
        compiled = _compile(library, path, properties)
        _check_effective(library, compiled, properties)
        products = read_openvino_products(library, compiled, properties)
        check_products(products, request.precision, path)
        return _OpenVinoModel(library, compiled, request, weights, products)


def _group_size(options: OpenVinoOptions, request: LoadRequest) -> int:
    """Return the number of activations that share a scale; 0 to quantize none as they come."""
    if request.precision == "int8" and options.quantization == "dynamic":
        if options.group_size != "auto":
            return options.group_size
        return max((size for size in _GROUP_SIZES if size <= request.network.hidden_size), default=_GROUP_SIZES[0])
    if options.group_size != "auto":
        raise EngineError(f"group_size={options.group_size} is for dynamic int8 alone; leave it out")
    return 0


def _properties(request: LoadRequest, options: OpenVinoOptions) -> dict[str, Any]:
    properties: dict[str, Any] = {
        # The default is bfloat16 on CPUs that have it. With int8, the rest is float32: in bfloat16 the weights would be
        # widened instead of the activations quantized (seen in 2026.4).
        _PRECISION: "bf16" if request.precision == "bfloat16" else "f32",
        _GROUP_SIZE: _group_size(options, request),
        "PERFORMANCE_HINT": "LATENCY",
    }
    if options.flush_denormals != "auto":
        properties[_FLUSH] = options.flush_denormals == "on"
    if request.threads is not None:
        # Threads inherit the process's affinity. OpenVINO counts the CPUs it may use within that, siblings only if
        # hyper-threading is on.
        properties |= {
            _THREADS: request.threads,
            "ENABLE_CPU_PINNING": False,
            "ENABLE_HYPER_THREADING": True,
            _STREAMS: 1,
        }
    return properties


def _compile(library: Any, path: str, properties: Mapping[str, Any]) -> Any:
    """Return the compiled graph, from the cache if it is there."""
    # OpenVINO's own key leaves out properties, and holds the file's path and time: its cache refers to that file.
    made_from = {"version": library.__version__, "path": path, "graph": graph_digest(Path(path)), **properties}

    def cached(directory: Path) -> Any:
        # Without the weights, which are mapped from the graph's file either way.
        caching = {"CACHE_DIR": str(directory), "CACHE_MODE": "OPTIMIZE_SIZE"}
        return openvino_core().compile_model(path, "CPU", {**properties, **caching})

    def build(directory: Path) -> None:
        cached(directory)

    try:
        return load_compiled(OpenVino.name, made_from, build, cached, RuntimeError)
    except RuntimeError as error:
        raise EngineError(f"openvino cannot load {path}: {one_line(error)}") from error


def _check_effective(library: Any, compiled: Any, properties: Mapping[str, Any]) -> None:
    """Check what OpenVINO may change in silence."""
    wanted = {"f32": library.Type.f32, "bf16": library.Type.bf16}[properties[_PRECISION]]
    if (precision := compiled.get_property(_PRECISION)) != wanted:
        raise EngineError(f"openvino computes in {precision.get_type_name()} instead of {properties[_PRECISION]} here")
    if (group_size := int(compiled.get_property(_GROUP_SIZE))) != properties[_GROUP_SIZE]:
        raise EngineError(f"openvino quantizes by groups of {group_size} instead of {properties[_GROUP_SIZE]}")
    if _THREADS not in properties:
        return
    if (effective := int(compiled.get_property(_THREADS))) != properties[_THREADS]:
        message = f"openvino computes with {effective} threads instead of {properties[_THREADS]}"
        raise EngineError(f"{message}; it uses at most the CPUs of the process's affinity")
    if (streams := int(compiled.get_property(_STREAMS))) != 1:
        raise EngineError(f"openvino splits its threads into {streams} streams instead of 1")


class _OpenVinoModel:
    def __init__(
        self, library: Any, compiled: Any, request: LoadRequest, weights: frozenset[str], products: Products
    ) -> None:
        path = request.artefact.path
        self._library = library
        self._compiled = compiled
        self._weights = weights
        self._products = products
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
        settings = {name: _text(self._compiled.get_property(name)) for name in _REPORTED}
        return EngineReport(
            engine=OpenVino.name,
            version=str(self._library.__version__),
            precision=computed_precision(self._products),
            threads=int(self._compiled.get_property(_THREADS)),
            settings={
                **settings,
                "products": describe_products(self._products),
                "weights": "+".join(sorted(self._weights)),
            },
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

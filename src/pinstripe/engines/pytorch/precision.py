"""A network's module in a precision: what torch runs, traces or compiles."""

import warnings
from typing import Any

from pinstripe.engines.importing import import_library
from pinstripe.engines.protocol import LoadRequest, Precision
from pinstripe.engines.pytorch.network import load_module
from pinstripe.errors import EngineError

__all__ = ["load_precise_module", "read_precision"]


def load_precise_module(torch: Any, request: LoadRequest) -> Any:
    """Return the network's module as `load_module` does, its weights in the request's precision.

    In bfloat16 all of them are. In int8 those of linear layers are quantized by output channel, and their inputs by
    token as they come, both symmetrically (torchao's `Int8DynamicActivationInt8WeightConfig`), so that no text takes
    its scale from a neighbour; the rest is float32.

    Raises:
        EngineError: As `load_module`, or torchao is missing.
    """
    quantize = _import_quantization() if request.precision == "int8" else None
    module = load_module(request.network, dtype="bfloat16" if request.precision == "bfloat16" else "float32")
    if quantize is not None:
        quantize.quantize_(module, quantize.Int8DynamicActivationInt8WeightConfig())
    if (read := read_precision(torch, module)) != request.precision:
        message = f"the weights of {request.network.name} are {read or 'of no type'}, not {request.precision}"
        raise EngineError(f"{message}; choose another precision")
    return module


def read_precision(torch: Any, module: Any) -> Precision | str:
    """Return the type of the linear layers' weights where all are int8, else the types of all weights."""
    linears = [child for child in module.modules() if isinstance(child, torch.nn.Linear)]
    if linears and all(_is_int8(torch, linear.weight) for linear in linears):
        return "int8"
    return "+".join(sorted({str(parameter.dtype).removeprefix("torch.") for parameter in module.parameters()}))


def _is_int8(torch: Any, weight: Any) -> bool:
    """Return whether weights are stored in int8, and what they are multiplied with is quantized first."""
    return getattr(weight, "act_quant_kwargs", None) is not None and weight.qdata.dtype == torch.int8


def _import_quantization() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its parts for GPUs
        import_library("torchao", extra="torchao")
        return import_library("torchao.quantization", extra="torchao")

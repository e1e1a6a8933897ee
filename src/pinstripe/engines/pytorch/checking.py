"""Whether a traced or compiled model gives what the model itself gives, for other batch sizes and lengths as well."""

from typing import Any, Final

from pinstripe.engines.importing import one_line
from pinstripe.engines.protocol import LoadRequest, Precision
from pinstripe.engines.pytorch.inputs import example_inputs
from pinstripe.errors import EngineError

__all__ = ["check_graph"]

_SHAPES: Final = ((1, 1), (1, 7), (3, 5), (2, 1), (1, 300))
"""Batch and length: one of each, which compilers like to take for a constant, and a length behind the windows of local
attention (128 in ModernBERT)."""
_TOLERANCES: Final[dict[Precision, float]] = {"float32": 1e-3, "bfloat16": 0.1, "int8": 0.1}
"""Of the largest value: the order of summation differs, and what is rounded between two steps."""


def check_graph(torch: Any, graph: Any, module: Any, request: LoadRequest, how: str) -> None:
    """Raise unless two callables agree on inputs of several shapes.

    Args:
        torch: The library.
        graph: What was made of the module.
        module: As `load_module` returns it.
        request: What is loaded.
        how: How `graph` was made, for the message.

    Raises:
        EngineError: The graph fails, or its result has another shape or other values than the module's.
    """
    network = request.network
    for size, longest in _SHAPES:
        length = min(longest, network.max_tokens)
        inputs = example_inputs(torch, network, size, length)
        with torch.inference_mode():
            expected = module(*inputs)
            try:
                wrong = _difference(graph(*inputs), expected, inputs[1], _TOLERANCES[request.precision], request)
            except RuntimeError as error:
                wrong = f"fails with {one_line(error)}"
        if wrong:
            message = f"{network.name} ({network.model_type}), {how}, {wrong} at {size} x {length}"
            raise EngineError(f"{message}; use engine torch-eager")


def _difference(result: Any, expected: Any, mask: Any, tolerance: float, request: LoadRequest) -> str | None:
    if result.shape != expected.shape:
        return f"gives shape {tuple(result.shape)} instead of {tuple(expected.shape)}"
    if not request.network.one_result_a_text:  # what stands at padding does not matter
        result, expected = result[mask.bool()], expected[mask.bool()]
    difference = float((result - expected).abs().max() / expected.abs().max())
    return None if difference <= tolerance else f"is wrong by {difference:.2g} of the largest value"

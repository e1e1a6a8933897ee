"""Dense layers behind the pooling, as sentence-transformers writes them."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from pinstripe.errors import ModelError
from pinstripe.models.files import read_json
from pinstripe.models.network import Dense
from pinstripe.models.quoting import quoted
from pinstripe.models.task import activation_named
from pinstripe.models.weights import tensor_shapes

__all__ = ["check_widths", "output_width", "read_dense"]


class _DenseConfig(msgspec.Struct):
    in_features: int
    out_features: int
    bias: bool = True
    activation_function: str = "torch.nn.modules.activation.Tanh"
    use_residual: bool = False
    module_input_name: str = "sentence_embedding"
    module_output_name: str | None = None


def read_dense(directory: Path) -> Dense:
    """Return the dense layer in a directory with `config.json` and `model.safetensors`.

    Raises:
        ModelError: It is residual, works on tokens, has an unknown activation, or its weights are absent, a pickle or
            of another shape than its configuration says.
    """
    path = directory / "config.json"
    config = read_json(path, _DenseConfig)
    features = {config.module_input_name, config.module_output_name or config.module_input_name}
    if config.use_residual or features != {"sentence_embedding"}:
        raise ModelError(f"{path} is a dense layer that pinstripe does not compute (residual, or on tokens)")
    weights = directory / "model.safetensors"
    if not weights.is_file():
        raise ModelError(f"{directory} has no model.safetensors (pickles are not loaded); save the model again")
    expected: dict[str, tuple[int, ...]] = {"linear.weight": (config.out_features, config.in_features)}
    if config.bias:
        expected["linear.bias"] = (config.out_features,)
    found = tensor_shapes(weights)
    if any(found.get(name) != shape for name, shape in expected.items()):
        raise ModelError(f"{weights} has {quoted(found)}, its config.json says {expected}; save the model again")
    activation = activation_named(config.activation_function, path)
    return Dense(weights=str(weights), activation=activation, bias=config.bias)


def check_widths(layers: Sequence[Dense], width: int) -> None:
    """Raise unless the first layer takes `width` values and each other one what the layer before it gives.

    Raises:
        ModelError: The widths don't fit.
    """
    for layer in layers:
        shape = tensor_shapes(Path(layer.weights))["linear.weight"]
        given, taken = shape[0], shape[1]
        if taken != width:
            raise ModelError(f"{layer.weights} takes {taken} values, but gets {width}; choose another pooling")
        width = given


def output_width(layers: Sequence[Dense], width: int) -> int:
    """Return how many values the last layer gives; `width` without layers."""
    return tensor_shapes(Path(layers[-1].weights))["linear.weight"][0] if layers else width

"""What a model's `config.json` asks of its encoder, as far as keras-hub's layer can compute it.

keras-hub's own converters are not used. In version 0.32, BERT's and ALBERT's have the tanh approximation of GELU built
in, RoBERTa's leaves the token types out, none reads `layer_norm_eps`, and some want names of tensors that published
models don't have.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pinstripe.engines.keras.family import FAMILIES, KerasActivation, KerasFamily
from pinstripe.errors import EngineError
from pinstripe.models import Network
from pinstripe.models.files import read_json

__all__ = ["Encoder", "read_encoder"]

# By transformers' names in its activations.py; several names of one formula are ways to write it.
_ACTIVATIONS: Final[dict[object, KerasActivation]] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_fast": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
_EPSILON: Final = 1e-12
"""Default of these families in transformers."""
_REFUSED: Final[dict[str, tuple[tuple[object, ...], str]]] = {
    "position_embedding_type": ((None, "absolute"), "only absolute positions are computed"),
    "is_decoder": ((None, False), "only encoders are computed"),
    "pruned_heads": ((None, {}), "all layers must have all heads"),
    "adapters": ((None, {}), "adapters would be left out"),
}
"""Allowed values of what a configuration may ask for, and why no others."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder that can be built.

    Attributes:
        family: The names of its tensors.
        activation: Of the feed-forward part.
        epsilon: Of all layer norms.
        layers: The name of each layer's weights, in the order in which they run; shared weights come again.
        tied: Whether the table of words is also the last layer of fill-mask.
    """

    family: KerasFamily
    activation: KerasActivation
    epsilon: float
    layers: tuple[str, ...]
    tied: bool


def read_encoder(network: Network) -> Encoder:
    """Return what is to be built for a network; reads `config.json` only.

    Raises:
        EngineError: The family, or something that the configuration asks for, cannot be computed.
        ModelError: `config.json` cannot be read.
    """
    family = FAMILIES.get(network.model_type)
    if family is None:
        known = ", ".join(FAMILIES)
        raise EngineError(
            f"TensorFlow engines cannot run the family {network.model_type}, only {known}; choose another engine"
        )
    config = read_json(Path(network.directory, "config.json"), dict[str, Any])
    for key, (allowed, why) in _REFUSED.items():
        if config.get(key) not in allowed:
            raise EngineError(f"TensorFlow engines cannot run {key}={config[key]!r} ({why}); choose another engine")
    if network.hidden_size % network.heads:
        raise EngineError(f"{network.heads} heads do not divide the width {network.hidden_size}; correct config.json")
    return Encoder(
        family=family,
        activation=_activation(family, config),
        epsilon=_epsilon(family, config),
        layers=tuple(_layers(family, config, network.layers)),
        tied=config.get("tie_word_embeddings") is not False,
    )


def _activation(family: KerasFamily, config: dict[str, Any]) -> KerasActivation:
    key, default = family.activation
    name = config.get(key, default)
    if not isinstance(name, str) or name not in _ACTIVATIONS:
        known = ", ".join(map(str, _ACTIVATIONS))
        raise EngineError(f"TensorFlow engines cannot run {key}={name!r}, only {known}; choose another engine")
    return _ACTIVATIONS[name]


def _epsilon(family: KerasFamily, config: dict[str, Any]) -> float:
    epsilon = config.get("layer_norm_eps", _EPSILON) if family.epsilon_from_config else _EPSILON
    if not isinstance(epsilon, float | int) or not 0 <= epsilon < 1:
        raise EngineError(f"layer_norm_eps {epsilon!r} is no number from 0 to 1; correct config.json")
    return float(epsilon)


def _layers(family: KerasFamily, config: dict[str, Any], layers: int) -> list[str]:
    if not family.shared_layers:
        return [family.layer.layer.format(layer=layer) for layer in range(layers)]
    groups, inner = config.get("num_hidden_groups", 1), config.get("inner_group_num", 1)
    for name, count in (("num_hidden_groups", groups), ("inner_group_num", inner)):
        if not isinstance(count, int) or not 1 <= count <= layers:
            raise EngineError(f"{name} {count!r} is no number from 1 to {layers} layers; correct config.json")
    return [
        family.layer.layer.format(group=int(layer / (layers / groups)), inner=number)
        for layer in range(layers)
        for number in range(inner)
    ]

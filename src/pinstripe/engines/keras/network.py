"""A network as a Keras model: keras-hub's encoder layers, with embeddings and head around them."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.keras.checkpoint import Checkpoint
from pinstripe.engines.keras.encoder import Encoder
from pinstripe.engines.keras.family import KerasActivation
from pinstripe.models import Network, first_position

__all__ = ["build_network"]

_WORDS: Final = "embeddings.word_embeddings.weight"
_FLOAT32: Final = "float32"
"""Named to every layer, since ~/.keras/keras.json may set another default."""


def build_network(keras: Any, keras_hub: Any, network: Network, encoder: Encoder, checkpoint: Checkpoint) -> Any:
    """Return a Keras model of a network with its weights, all float32.

    Args:
        keras: The module.
        keras_hub: The module.
        network: What to build.
        encoder: Its encoder.
        checkpoint: Its weights.

    Returns:
        A model of int32 [batch, sequence] inputs by name: `ids`, `mask`, `positions` and, for families that have them,
        `types`. Its output is as `LoadedModel.forward` says.

    Raises:
        EngineError: The checkpoint lacks a tensor, or one has another shape than the configuration says.
    """
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in ("ids", "mask", "positions", "types")}
    if not encoder.family.token_types:
        del inputs["types"]
    layers = _Layers(keras, keras_hub, network, encoder, checkpoint)
    hidden = layers.encoded(layers.embedded(inputs), inputs["mask"])
    return keras.Model(inputs, layers.head(hidden), name=network.task.replace("-", "_"))


class _Layers:
    """Layers of one network, each filled with its weights where it is made."""

    def __init__(self, keras: Any, keras_hub: Any, network: Network, encoder: Encoder, checkpoint: Checkpoint) -> None:
        self._keras = keras
        self._keras_hub = keras_hub
        self._network = network
        self._encoder = encoder
        self._checkpoint = checkpoint

    def embedded(self, inputs: dict[str, Any]) -> Any:
        """Return words + positions + token types, normalized, as wide as the encoder."""
        network, family = self._network, self._encoder.family
        width = None if family.projection else network.hidden_size
        words = self._checkpoint.tensor(_WORDS, network.vocab_size, width)
        width = int(words.shape[1])
        positions = network.positions + first_position(network.model_type, network.pad_token_id)
        hidden = self._lookup(words, inputs["ids"])
        hidden += self._table("embeddings.position_embeddings", positions, width, inputs["positions"])
        if family.token_types:
            types = network.type_vocab_size
            hidden += self._table("embeddings.token_type_embeddings", types, width, inputs["types"])
        hidden = self._norm("embeddings.LayerNorm", width, hidden)
        if family.projection and (width != network.hidden_size or f"{family.projection}.weight" in self._checkpoint):
            hidden = self._dense(family.projection, width, network.hidden_size, hidden)
        return hidden

    def encoded(self, hidden: Any, mask: Any) -> Any:
        """Return the last hidden state."""
        layers: dict[str, Any] = {}
        for name in self._encoder.layers:
            if name not in layers:
                layers[name] = self._layer(name)
            hidden = layers[name](hidden, padding_mask=mask)
        return hidden

    def head(self, hidden: Any) -> Any:
        """Return the output of the network's task."""
        width, labels = self._network.hidden_size, max(1, len(self._network.labels))
        match self._network.task:
            case "embedding":
                return hidden
            case "classification" | "reranking":
                names = self._encoder.family.text_head
                first = self._dense(names.dense, width, width, hidden[:, 0, :], names.activation)
                return self._dense(names.output, width, labels, first)
            case "token-classification":
                return self._dense("classifier", width, labels, hidden)
            case "question-answering":
                return self._dense("qa_outputs", width, 2, hidden)
            case "fill-mask":
                return self._words(hidden)

    def _words(self, hidden: Any) -> Any:
        network, names = self._network, self._encoder.family.fill_mask
        decoder = _WORDS if self._encoder.tied else f"{names.decoder}.weight"
        words = self._checkpoint.tensor(decoder, network.vocab_size, None)
        width = int(words.shape[1])
        activation = names.activation or self._encoder.activation
        hidden = self._dense(names.dense, network.hidden_size, width, hidden, activation)
        hidden = self._norm(names.norm, width, hidden)
        bias = next((name for name in names.biases if name in self._checkpoint), names.biases[0])
        return self._filled_dense((words.T, self._checkpoint.tensor(bias, network.vocab_size)), hidden)

    def _table(self, name: str, rows: int, width: int, numbers: Any) -> Any:
        return self._lookup(self._checkpoint.tensor(f"{name}.weight", rows, width), numbers)

    def _lookup(self, table: NDArray[np.float32], numbers: Any) -> Any:
        layer = self._keras.layers.Embedding(*table.shape, embeddings_initializer="zeros", dtype=_FLOAT32)
        result = layer(numbers)
        layer.set_weights([table])
        return result

    def _norm(self, name: str, width: int, hidden: Any) -> Any:
        layer = self._keras.layers.LayerNormalization(epsilon=self._encoder.epsilon, dtype=_FLOAT32)
        result = layer(hidden)
        layer.set_weights(list(self._checkpoint.norm(name, width)))
        return result

    def _dense(
        self, name: str, width_in: int, width_out: int, hidden: Any, activation: KerasActivation | None = None
    ) -> Any:
        return self._filled_dense(self._checkpoint.dense(name, width_in, width_out), hidden, activation)

    def _filled_dense(
        self,
        weights: tuple[NDArray[np.float32], NDArray[np.float32]],
        hidden: Any,
        activation: KerasActivation | None = None,
    ) -> Any:
        layer = self._keras.layers.Dense(
            len(weights[1]), activation=self._activation(activation), kernel_initializer="zeros", dtype=_FLOAT32
        )
        result = layer(hidden)
        layer.set_weights(list(weights))
        return result

    def _layer(self, name: str) -> Any:
        """Return one of keras-hub's layers, filled by the paths of its variables."""
        network = self._network
        layer = self._keras_hub.layers.TransformerEncoder(
            num_heads=network.heads,
            intermediate_dim=network.intermediate_size,
            activation=self._activation(self._encoder.activation),
            layer_norm_epsilon=self._encoder.epsilon,
            kernel_initializer="zeros",
            dtype=_FLOAT32,
        )
        layer.build((None, None, network.hidden_size))
        values = self._layer_weights(name)
        for variable in layer.weights:
            value = values.pop(variable.path.split("/", 1)[1])
            variable.assign(value.reshape(variable.shape))
        return layer

    def _layer_weights(self, name: str) -> dict[str, NDArray[np.float32]]:
        """Return a layer's weights by the paths that keras-hub's variables have within the layer."""
        hidden, intermediate = self._network.hidden_size, self._network.intermediate_size
        names, checkpoint = self._encoder.family.layer, self._checkpoint
        dense = {
            "self_attention_layer/query": (names.query, hidden, hidden),
            "self_attention_layer/key": (names.key, hidden, hidden),
            "self_attention_layer/value": (names.value, hidden, hidden),
            "self_attention_layer/attention_output": (names.attention_output, hidden, hidden),
            "feedforward_intermediate_dense": (names.intermediate, hidden, intermediate),
            "feedforward_output_dense": (names.output, intermediate, hidden),
        }
        norms = {"self_attention_layer_norm": names.attention_norm, "feedforward_layer_norm": names.norm}
        values = {}
        for path, (part, width_in, width_out) in dense.items():
            values[f"{path}/kernel"], values[f"{path}/bias"] = checkpoint.dense(f"{name}.{part}", width_in, width_out)
        for path, part in norms.items():
            values[f"{path}/gamma"], values[f"{path}/beta"] = checkpoint.norm(f"{name}.{part}", hidden)
        return values

    def _activation(self, name: KerasActivation | None) -> Any:
        """Return Keras' function; `gelu` alone would do for neither of the two, as its default has changed before."""
        activations = self._keras.activations
        match name:
            case "gelu":
                return lambda values: activations.gelu(values, approximate=False)
            case "gelu_tanh":
                return lambda values: activations.gelu(values, approximate=True)
            case _:
                return None if name is None else getattr(activations, name)

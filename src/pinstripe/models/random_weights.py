"""Models of published shapes with random weights: for measuring without a download."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from pinstripe.cache import build_once, cache_directory
from pinstripe.errors import ModelError

__all__ = ["random_model"]

_FORMAT = 1
"""Part of the cache key; raise it when the weights that are written change."""
_SEED = 20181011
_STD = 0.02
"""Of the normal distribution; `initializer_range` of BERT."""
_CHUNK_VALUES = 1 << 20
_VOCABULARY, _POSITIONS, _TOKEN_TYPES = 30522, 512, 2

_Shapes = dict[str, tuple[int, ...]]


def _bert(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * hidden,
        "type_vocab_size": _TOKEN_TYPES,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "layer_norm_eps": 1e-12,
    }


# Shapes as in the config.json that their authors published: BERT (Devlin et al. 2018, section 3), MiniLM-L6-H384 (Wang
# et al. 2020), DistilBERT (Sanh et al. 2019).
_CONFIGS: dict[str, dict[str, Any]] = {
    "bert-base": _bert(768, 12, 12),
    "bert-large": _bert(1024, 24, 16),
    "minilm-l6": _bert(384, 6, 12),
    "distilbert": {
        "architectures": ["DistilBertModel"],
        "model_type": "distilbert",
        "dim": 768,
        "n_layers": 6,
        "n_heads": 12,
        "hidden_dim": 3072,
        "activation": "gelu",
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "sinusoidal_pos_embds": False,
    },
}
_COMMON = {
    "vocab_size": _VOCABULARY,
    "max_position_embeddings": _POSITIONS,
    "pad_token_id": 0,
    "initializer_range": _STD,
    "dtype": "float32",
}


def random_model(shape: str) -> Path:
    """Return the directory of a model with random weights, made on first use and kept in the cache.

    Always the same weights: normal with standard deviation 0.02, biases 0, layer norms 1 and 0. It has no tokenizer.

    Args:
        shape: `bert-base`, `bert-large`, `minilm-l6` or `distilbert`.

    Raises:
        ModelError: The shape is unknown.
        ExecutionError: The cache cannot be written.
    """
    config = _CONFIGS.get(shape)
    if config is None:
        raise ModelError(f"random:{shape} is unknown; known are {', '.join(f'random:{name}' for name in _CONFIGS)}")

    def build(directory: Path) -> None:
        (directory / "config.json").write_bytes(msgspec.json.format(msgspec.json.encode(config | _COMMON)))
        _write_weights(directory / "model.safetensors", _tensors(config))

    return build_once(cache_directory() / "models" / f"random-{shape}-{_FORMAT}", build)


def _tensors(config: dict[str, Any]) -> _Shapes:
    """Return shapes by the names that transformers saves."""
    if config["model_type"] == "distilbert":
        return _distilbert_tensors(config["dim"], config["n_layers"], config["hidden_dim"])
    return _bert_tensors(config["hidden_size"], config["num_hidden_layers"], config["intermediate_size"])


def _bert_tensors(hidden: int, layers: int, intermediate: int) -> _Shapes:
    shapes = {
        "embeddings.word_embeddings.weight": (_VOCABULARY, hidden),
        "embeddings.position_embeddings.weight": (_POSITIONS, hidden),
        "embeddings.token_type_embeddings.weight": (_TOKEN_TYPES, hidden),
        **_norm("embeddings.LayerNorm", hidden),
    }
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= _linear(f"{name}.{part}", hidden, hidden)
        shapes |= _norm(f"{name}.attention.output.LayerNorm", hidden)
        shapes |= _linear(f"{name}.intermediate.dense", hidden, intermediate)
        shapes |= _linear(f"{name}.output.dense", intermediate, hidden)
        shapes |= _norm(f"{name}.output.LayerNorm", hidden)
    return shapes | _linear("pooler.dense", hidden, hidden)


def _distilbert_tensors(hidden: int, layers: int, intermediate: int) -> _Shapes:
    shapes = {
        "embeddings.word_embeddings.weight": (_VOCABULARY, hidden),
        "embeddings.position_embeddings.weight": (_POSITIONS, hidden),
        **_norm("embeddings.LayerNorm", hidden),
    }
    for layer in range(layers):
        name = f"transformer.layer.{layer}"
        for part in ("q_lin", "k_lin", "v_lin", "out_lin"):
            shapes |= _linear(f"{name}.attention.{part}", hidden, hidden)
        shapes |= _norm(f"{name}.sa_layer_norm", hidden)
        shapes |= _linear(f"{name}.ffn.lin1", hidden, intermediate)
        shapes |= _linear(f"{name}.ffn.lin2", intermediate, hidden)
        shapes |= _norm(f"{name}.output_layer_norm", hidden)
    return shapes


def _linear(name: str, width_in: int, width_out: int) -> _Shapes:
    return {f"{name}.weight": (width_out, width_in), f"{name}.bias": (width_out,)}


def _norm(name: str, width: int) -> _Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _write_weights(path: Path, shapes: _Shapes) -> None:
    """Write a safetensors file tensor by tensor, holding a few MiB of it at a time."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": (begin, end)}
    encoded = msgspec.json.encode(header)
    encoded += b" " * (-len(encoded) % 8)  # the format asks for data aligned to 8 bytes
    generator = np.random.default_rng(_SEED)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little"))
        file.write(encoded)
        for name, shape in shapes.items():
            _write_values(file, name, shape, generator)


def _write_values(file: BinaryIO, name: str, shape: tuple[int, ...], generator: np.random.Generator) -> None:
    constant = 0.0 if name.endswith("bias") else 1.0
    for count in _chunks(math.prod(shape)):
        if len(shape) == 1:  # a bias, or the weight of a layer norm
            file.write(np.full(count, constant, dtype="<f4").tobytes())
        else:
            file.write((generator.standard_normal(count, dtype=np.float32) * np.float32(_STD)).astype("<f4").tobytes())


def _chunks(values: int) -> Iterator[int]:
    for start in range(0, values, _CHUNK_VALUES):
        yield min(_CHUNK_VALUES, values - start)

"""Families of networks: by which names `config.json` gives the shape, and where position ids start."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinstripe.errors import ModelError
from pinstripe.models.quoting import quoted

__all__ = ["Shape", "first_position", "read_shape", "word_embeddings"]

# Far above any encoder, far below what a number in a damaged file could make us allocate.
_MOST_TOKENS = (1 << 31) - 1
"""Token ids are int32."""
_MOST_POSITIONS = 1 << 24
_MOST_WIDTH = 1 << 20
_MOST_LAYERS = 4096
_MOST_HEADS = 1 << 16


@dataclass(frozen=True, slots=True)
class _Family:
    """How one `model_type` writes its shape; each tuple holds alternative keys, the present one first."""

    hidden_size: tuple[str, ...] = ("hidden_size",)
    layers: tuple[str, ...] = ("num_hidden_layers",)
    heads: tuple[str, ...] = ("num_attention_heads",)
    intermediate_size: tuple[str, ...] = ("intermediate_size",)
    positions: tuple[str, ...] = ("max_position_embeddings",)
    pad_token_id: int = 0
    positions_after_padding: bool = False
    """Position ids start at `pad_token_id + 1`, so that many rows of the table are never used."""
    position_padding: int | None = None
    """The id that they start after, where that is a number of its own and not `pad_token_id`."""
    type_vocab_size: int | None = 2
    """Rows of the token-type table where `config.json` does not say; None if the family has no such table."""
    word_embeddings: tuple[str, ...] = ()
    """Names of the word-embedding table in a bare encoder's file and in that of one with a head; empty where it may be
    narrower than the hidden state, or where the names differ between publishers."""


_WORDS = "embeddings.word_embeddings.weight"
_BERT = _Family()


def _roberta(prefix: str) -> _Family:
    """Return the family of a RoBERTa whose classes with a head hold the encoder by this name."""
    return _Family(pad_token_id=1, positions_after_padding=True, word_embeddings=(_WORDS, f"{prefix}.{_WORDS}"))


_ROBERTA = _roberta("roberta")

# Keys, defaults and position offsets as in the configuration and modelling files of transformers 5.24; the second names
# of nomic_bert are those of the configurations published before transformers had the family.
_FAMILIES: dict[str, _Family] = {
    "albert": _BERT,
    "bert": _Family(word_embeddings=(_WORDS, f"bert.{_WORDS}")),
    "camembert": _ROBERTA,
    "convbert": _Family(pad_token_id=1),
    "data2vec-text": _roberta("data2vec_text"),
    "deberta": _Family(type_vocab_size=0),
    "deberta-v2": _Family(type_vocab_size=0),
    "distilbert": _Family(
        hidden_size=("dim",),
        layers=("n_layers",),
        heads=("n_heads",),
        intermediate_size=("hidden_dim",),
        type_vocab_size=None,
        word_embeddings=(_WORDS, f"distilbert.{_WORDS}"),
    ),
    "electra": _BERT,
    "ernie": _BERT,
    "eurobert": _Family(pad_token_id=128001, type_vocab_size=None),
    "megatron-bert": _BERT,
    "mobilebert": _BERT,
    "modernbert": _Family(
        pad_token_id=50283,
        type_vocab_size=None,
        word_embeddings=("embeddings.tok_embeddings.weight", "model.embeddings.tok_embeddings.weight"),
    ),
    "mpnet": _Family(
        pad_token_id=1,
        positions_after_padding=True,
        position_padding=1,
        type_vocab_size=None,
        word_embeddings=(_WORDS, f"mpnet.{_WORDS}"),
    ),
    "nomic_bert": _Family(
        hidden_size=("hidden_size", "n_embd"),
        layers=("num_hidden_layers", "n_layer"),
        heads=("num_attention_heads", "n_head"),
        intermediate_size=("intermediate_size", "n_inner"),
        positions=("max_position_embeddings", "n_positions"),
    ),
    "rembert": _BERT,
    "roberta": _ROBERTA,
    "roberta-prelayernorm": _roberta("roberta_prelayernorm"),
    "squeezebert": _BERT,
    "xlm-roberta": _ROBERTA,
    "xlm-roberta-xl": _ROBERTA,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers of a network; `positions` is the longest input that it can take, in tokens."""

    model_type: str
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    intermediate_size: int
    positions: int
    type_vocab_size: int
    pad_token_id: int


def read_shape(config: dict[str, Any], path: Path) -> Shape:
    """Return the shape that a `config.json` gives.

    Args:
        config: Its content.
        path: Where it lies, for messages.

    Raises:
        ModelError: The family is unknown, or a number is missing, makes no sense or is beyond any model's.
    """
    model_type = config.get("model_type")
    family = _FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None or not isinstance(model_type, str):
        raise ModelError(_unknown_family(config, path))
    pad_token_id = _pad_token_id(config, family, path)
    vocab_size = _count(config, ("vocab_size",), _MOST_TOKENS, path)
    if pad_token_id >= vocab_size:
        raise ModelError(f"{path}: pad_token_id {pad_token_id} is not below vocab_size {vocab_size}; correct the file")
    positions = _count(config, family.positions, _MOST_POSITIONS, path) - first_position(model_type, pad_token_id)
    if positions < 1:
        raise ModelError(f"{path}: {family.positions[0]} leaves {positions} positions for tokens; correct the file")
    return Shape(
        model_type=model_type,
        vocab_size=vocab_size,
        hidden_size=_count(config, family.hidden_size, _MOST_WIDTH, path),
        layers=_count(config, family.layers, _MOST_LAYERS, path),
        heads=_count(config, family.heads, _MOST_HEADS, path),
        intermediate_size=_count(config, family.intermediate_size, _MOST_WIDTH, path),
        positions=positions,
        type_vocab_size=_type_vocab_size(config, family, path),
        pad_token_id=pad_token_id,
    )


def first_position(model_type: str, pad_token_id: int) -> int:
    """Return the position id of a text's first token; the ids of a family that is not known start at 0."""
    family = _FAMILIES.get(model_type, _BERT)
    if not family.positions_after_padding:
        return 0
    return 1 + (pad_token_id if family.position_padding is None else family.position_padding)


def word_embeddings(model_type: str) -> tuple[str, ...]:
    """Return the names that the word-embedding table [vocab_size, hidden_size] may have; empty if none is sure."""
    return _FAMILIES.get(model_type, _BERT).word_embeddings


def _unknown_family(config: dict[str, Any], path: Path) -> str:
    named = config.get("model_type")
    remote = (
        " (its auto_map points to code in the model's repository, which is never run)" if "auto_map" in config else ""
    )
    return f"{path}: model_type {quoted(named)} is unknown{remote}; known are {', '.join(sorted(_FAMILIES))}"


def _pad_token_id(config: dict[str, Any], family: _Family, path: Path) -> int:
    value = config.get("pad_token_id")
    return family.pad_token_id if value is None else _whole(value, "pad_token_id", (0, _MOST_TOKENS), path)


def _type_vocab_size(config: dict[str, Any], family: _Family, path: Path) -> int:
    if family.type_vocab_size is None:
        return 0
    value = config.get("type_vocab_size", family.type_vocab_size)
    return _whole(value, "type_vocab_size", (0, _MOST_WIDTH), path)


def _count(config: dict[str, Any], keys: tuple[str, ...], most: int, path: Path) -> int:
    key = next((key for key in keys if config.get(key) is not None), keys[0])
    return _whole(config.get(key), key, (1, most), path)


def _whole(value: object, key: str, bounds: tuple[int, int], path: Path) -> int:
    least, most = bounds
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    said = "is missing" if value is None else f"is {quoted(value)}"
    raise ModelError(f"{path}: {key} {said}; a whole number from {least} to {most} is needed")

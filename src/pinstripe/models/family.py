"""Families of networks: by which names `config.json` gives the shape, and where position ids start."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinstripe.errors import ModelError

__all__ = ["Shape", "first_position", "read_shape"]


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
    type_vocab_size: int | None = 2
    """Rows of the token-type table where `config.json` does not say; None if the family has no such table."""


_BERT = _Family()
_ROBERTA = _Family(pad_token_id=1, positions_after_padding=True)

# Keys, defaults and position offsets as in the configuration and modelling files of transformers 5.24; the second names
# of nomic_bert are those of the configurations published before transformers had the family.
_FAMILIES: dict[str, _Family] = {
    "albert": _BERT,
    "bert": _BERT,
    "camembert": _ROBERTA,
    "convbert": _Family(pad_token_id=1),
    "data2vec-text": _ROBERTA,
    "deberta": _Family(type_vocab_size=0),
    "deberta-v2": _Family(type_vocab_size=0),
    "distilbert": _Family(
        hidden_size=("dim",),
        layers=("n_layers",),
        heads=("n_heads",),
        intermediate_size=("hidden_dim",),
        type_vocab_size=None,
    ),
    "electra": _BERT,
    "ernie": _BERT,
    "eurobert": _Family(pad_token_id=128001, type_vocab_size=None),
    "megatron-bert": _BERT,
    "mobilebert": _BERT,
    "modernbert": _Family(pad_token_id=50283, type_vocab_size=None),
    "mpnet": _Family(pad_token_id=1, positions_after_padding=True, type_vocab_size=None),
    "nomic_bert": _Family(
        hidden_size=("hidden_size", "n_embd"),
        layers=("num_hidden_layers", "n_layer"),
        heads=("num_attention_heads", "n_head"),
        intermediate_size=("intermediate_size", "n_inner"),
        positions=("max_position_embeddings", "n_positions"),
    ),
    "rembert": _BERT,
    "roberta": _ROBERTA,
    "roberta-prelayernorm": _ROBERTA,
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
        ModelError: The family is unknown, or a number is missing or makes no sense.
    """
    model_type = config.get("model_type")
    family = _FAMILIES.get(model_type) if isinstance(model_type, str) else None
    if family is None or not isinstance(model_type, str):
        raise ModelError(_unknown_family(config, path))
    pad_token_id = _pad_token_id(config, family, path)
    vocab_size = _count(config, ("vocab_size",), path)
    if pad_token_id >= vocab_size:
        raise ModelError(f"{path}: pad_token_id {pad_token_id} is not below vocab_size {vocab_size}; correct the file")
    positions = _count(config, family.positions, path) - first_position(model_type, pad_token_id)
    if positions < 1:
        raise ModelError(f"{path}: {family.positions[0]} leaves {positions} positions for tokens; correct the file")
    return Shape(
        model_type=model_type,
        vocab_size=vocab_size,
        hidden_size=_count(config, family.hidden_size, path),
        layers=_count(config, family.layers, path),
        heads=_count(config, family.heads, path),
        intermediate_size=_count(config, family.intermediate_size, path),
        positions=positions,
        type_vocab_size=_type_vocab_size(config, family, path),
        pad_token_id=pad_token_id,
    )


def first_position(model_type: str, pad_token_id: int) -> int:
    """Return the position id of a text's first token; the ids of a family that is not known start at 0."""
    return pad_token_id + 1 if _FAMILIES.get(model_type, _BERT).positions_after_padding else 0


def _unknown_family(config: dict[str, Any], path: Path) -> str:
    named = config.get("model_type")
    remote = (
        " (its auto_map points to code in the model's repository, which is never run)" if "auto_map" in config else ""
    )
    return f"{path}: model_type {named!r} is unknown{remote}; known are {', '.join(sorted(_FAMILIES))}"


def _pad_token_id(config: dict[str, Any], family: _Family, path: Path) -> int:
    value = config.get("pad_token_id")
    return family.pad_token_id if value is None else _whole(value, "pad_token_id", 0, path)


def _type_vocab_size(config: dict[str, Any], family: _Family, path: Path) -> int:
    if family.type_vocab_size is None:
        return 0
    return _whole(config.get("type_vocab_size", family.type_vocab_size), "type_vocab_size", 0, path)


def _count(config: dict[str, Any], keys: tuple[str, ...], path: Path) -> int:
    key = next((key for key in keys if config.get(key) is not None), keys[0])
    return _whole(config.get(key), key, 1, path)


def _whole(value: object, key: str, least: int, path: Path) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    said = "is missing" if value is None else f"is {value!r}"
    raise ModelError(f"{path}: {key} {said}; a whole number from {least} is needed")

"""What sentence-transformers writes beside a network: pooling, dense layers, normalization, prompts, length limit.

Forms as written by sentence-transformers 2.0 (`pooling_mode_*` booleans) to 6.2 (`pooling_mode`).
"""

from pathlib import Path, PurePosixPath
from typing import Annotated, Any, get_args

import msgspec

from pinstripe.errors import ModelError
from pinstripe.models.dense import read_dense
from pinstripe.models.files import read_json
from pinstripe.models.network import Dense, PoolingMode
from pinstripe.models.quoting import quoted, shortened

__all__ = ["Modules", "SentenceConfig", "read_modules", "read_sentence_config"]


class SentenceConfig(msgspec.Struct):
    """`sentence_bert_config.json`, or one of its older names such as `sentence_roberta_config.json`."""

    max_seq_length: Annotated[int, msgspec.Meta(ge=1)] | None = None
    do_lower_case: bool = False


class Modules(msgspec.Struct, frozen=True, kw_only=True):
    """The modules around the network.

    Attributes:
        network_directory: Directory with the network's `config.json`.
        pooling: Pooling modes in the order of their results; None without a pooling module.
        dense: Dense layers in order.
        normalize: Whether embeddings end at unit length.
    """

    network_directory: Path
    pooling: tuple[PoolingMode, ...] | None = None
    dense: tuple[Dense, ...] = ()
    normalize: bool = False


class _Module(msgspec.Struct):
    type: str
    path: str = ""


def read_sentence_config(directory: Path) -> SentenceConfig:
    """Return the settings of the Transformer module; the defaults without such a file."""
    found = sorted(directory.glob("sentence_*_config.json"))
    return read_json(found[0], SentenceConfig) if found else SentenceConfig()


def read_modules(directory: Path, *, dense: bool = True) -> Modules:
    """Return the modules that `modules.json` lists, or the bare network without that file.

    Args:
        directory: The model's.
        dense: Whether its dense layers are read; else they are left out.

    Raises:
        ModelError: A module or an option of it is none that pinstripe computes, or a file is damaged.
    """
    path = directory / "modules.json"
    if not path.is_file():
        return Modules(network_directory=directory)
    modules = [
        (entry.type.rpartition(".")[2], _inside(directory, entry.path)) for entry in read_json(path, list[_Module])
    ]
    kinds = [kind for kind, _ in modules if kind != "Dropout"]  # does nothing at inference
    normalize = "Normalize" in kinds
    pooled = ["Transformer", "Pooling", *["Dense"] * kinds.count("Dense"), *["Normalize"] * normalize]
    if kinds not in (["Transformer"], pooled):
        raise ModelError(
            f"{path} lists {shortened(', '.join(kinds)) or 'no modules'}; "
            "pinstripe runs Transformer, Pooling, Dense and Normalize, in this order"
        )
    return Modules(
        network_directory=next(place for kind, place in modules if kind == "Transformer"),
        pooling=next((_read_pooling(place / "config.json") for kind, place in modules if kind == "Pooling"), None),
        dense=tuple(read_dense(place) for kind, place in modules if kind == "Dense" and dense),
        normalize=normalize,
    )


_LONGEST_NAME = 255
"""Bytes of a file's name (NAME_MAX of Linux)."""


def _inside(directory: Path, relative: str) -> Path:
    path = PurePosixPath(relative)
    possible = relative.isprintable() and len(relative) <= _LONGEST_NAME
    if path.is_absolute() or ".." in path.parts or not possible:
        raise ModelError(
            f"{directory / 'modules.json'} names {quoted(relative)}, no folder in the model's directory; don't use it"
        )
    return directory / relative


# In the order in which sentence-transformers concatenates the results.
_POOLING_KEYS: dict[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def _read_pooling(path: Path) -> tuple[PoolingMode, ...]:
    config = read_json(path, dict[str, Any])
    if config.get("include_prompt") is False:
        raise ModelError(f"{path} leaves the prompt out of the pooling (include_prompt false), which is not supported")
    named = config.get("pooling_mode")
    if named is None:
        named = [mode for key, mode in _POOLING_KEYS.items() if config.get(key)] or ["mean"]
    try:
        return msgspec.convert([named] if isinstance(named, str) else named, tuple[PoolingMode, ...])
    except msgspec.ValidationError as error:
        known = ", ".join(get_args(PoolingMode))
        raise ModelError(f"{path}: pooling_mode {quoted(named)} is unknown; known are {known}") from error

"""What a model's tokenizer files say, read without building the tokenizer."""

from pathlib import Path

import msgspec

from pinstripe.models.files import read_json

__all__ = ["TokenizerConfig", "find_tokenizer_files", "read_tokenizer_config", "read_vocabulary", "token_id"]

_NO_LIMIT_TOKENS = 10**9
"""From here on a `model_max_length` means that none was set; transformers writes int(1e30)."""


_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json")


def find_tokenizer_files(directory: Path) -> list[Path]:
    """Return the files in a model's directory that decide how texts become token ids."""
    return [directory / name for name in _FILES if (directory / name).is_file()]


class _Token(msgspec.Struct):
    """A special token written out with its options."""

    content: str


class TokenizerConfig(msgspec.Struct):
    """The fields of `tokenizer_config.json` that matter here, with the defaults of transformers.

    Attributes:
        tokenizer_class: Transformers' class; `PreTrainedTokenizerFast` or `TokenizersBackend` take `tokenizer.json` as
            it stands, others set its options from this file.
        model_max_length: Length limit in tokens, or a huge number for none.
        do_lower_case: Whether a WordPiece tokenizer lower-cases.
        strip_accents: Whether it removes accents; None: if it lower-cases.
        tokenize_chinese_chars: Whether it makes each Chinese character a word.
    """

    tokenizer_class: str | None = None
    model_max_length: int | float | None = None
    do_lower_case: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True
    cls_token: str | _Token | None = None
    sep_token: str | _Token | None = None
    pad_token: str | _Token | None = None
    unk_token: str | _Token | None = None
    mask_token: str | _Token | None = None

    @property
    def max_tokens(self) -> int | None:
        """The length limit, or None if there is none."""
        length = self.model_max_length
        return int(length) if length is not None and 0 < length < _NO_LIMIT_TOKENS else None

    @property
    def verbatim(self) -> bool:
        """Whether `tokenizer.json` is taken as it stands."""
        return self.tokenizer_class in {"PreTrainedTokenizerFast", "TokenizersBackend"}

    def special(self, role: str) -> str | None:
        """Return the text of the special token of a role such as `mask`, or None if it has none."""
        token: str | _Token | None = getattr(self, f"{role}_token")
        return token.content if isinstance(token, _Token) else token


def read_tokenizer_config(directory: Path) -> TokenizerConfig:
    """Return `tokenizer_config.json`, its special tokens completed from the older `special_tokens_map.json`.

    Raises:
        ModelError: A file is damaged.
    """
    config = _read_if_there(directory / "tokenizer_config.json")
    older = _read_if_there(directory / "special_tokens_map.json")
    for field in ("cls_token", "sep_token", "pad_token", "unk_token", "mask_token"):
        if getattr(config, field) is None:
            setattr(config, field, getattr(older, field))
    return config


def _read_if_there(path: Path) -> TokenizerConfig:
    return read_json(path, TokenizerConfig) if path.is_file() else TokenizerConfig()


class _AddedToken(msgspec.Struct):
    id: int
    content: str


class _AddedTokens(msgspec.Struct):
    """The part of `tokenizer.json` that lists special tokens."""

    added_tokens: list[_AddedToken] = []


def token_id(directory: Path, token: str) -> int | None:
    """Return the id of a special token, or None if the tokenizer files don't have it.

    Raises:
        ModelError: A file is damaged.
    """
    whole = directory / "tokenizer.json"
    if whole.is_file():
        return next((added.id for added in read_json(whole, _AddedTokens).added_tokens if added.content == token), None)
    return read_vocabulary(directory).get(token)


def read_vocabulary(directory: Path) -> dict[str, int]:
    """Return the tokens of `vocab.txt`, one a line, with their line numbers; empty without that file."""
    path = directory / "vocab.txt"
    if not path.is_file():
        return {}
    # Not splitlines(): vocabularies hold characters that it takes for line ends, such as U+2028.
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return {token: number for number, token in enumerate(lines[:-1] if not lines[-1] else lines)}

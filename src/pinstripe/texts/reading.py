"""Reading a file of texts."""

import codecs
import hashlib
import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, TypeAlias, cast

import msgspec

from pinstripe.errors import TextError
from pinstripe.models import Text
from pinstripe.texts.line import BadLine, TextLine

__all__ = ["LINE_LIMIT_BYTES", "TextFile", "read_texts"]

LINE_LIMIT_BYTES: Final = 16 << 20
"""Longest line that is read; no model takes as many tokens as that."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_JSON_SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson"})


class TextFile:
    """A file with a text on each line.

    In a `.jsonl`, `.ndjson` or `.json` file each line is a JSON object with the text in a field, the second text of a
    pair in `text_pair`, and perhaps an `id` (a string or a whole number); other fields are ignored. In any other file
    each line is a text. Files are UTF-8; a byte order mark and carriage returns at line ends are dropped.
    """

    def __init__(self, path: Path, *, field: str = "text") -> None:
        """Name a file; nothing is read yet.

        Args:
            path: The file.
            field: Name of the field that holds the text, in a file of JSON objects.

        Raises:
            TextError: The name is one that no such field can have.
        """
        self.path = path
        self._parse = _json_parser(field) if path.suffix.lower() in _JSON_SUFFIXES else _parse_plain

    def open(self) -> BufferedReader:
        """Open the file for `lines`.

        Raises:
            TextError: It is missing, no regular file, or cannot be read.
        """
        try:
            if self.path.exists() and not self.path.is_file():
                raise TextError(f"{self.path} is no regular file; write its lines into one")
            return self.path.open("rb")
        except OSError as error:
            raise TextError(f"cannot read {self.path}: {error.strerror}; check its name and permissions") from error

    def lines(self, file: BufferedReader, *, number: int = 1) -> Iterator[TextLine | BadLine]:
        """Yield the lines from a file's position on.

        Args:
            file: What `open` returned, at the begin of a line.
            number: The number of that line.
        """
        end = file.tell()
        while raw := file.readline(LINE_LIMIT_BYTES):
            end += len(raw)
            if not raw.endswith(b"\n") and len(raw) == LINE_LIMIT_BYTES:
                end += _skip_line(file)
                yield BadLine(number, end, f"it is longer than {LINE_LIMIT_BYTES >> 20} MiB; split the text")
            else:
                yield self._line(raw, number, end)
            number += 1

    def _line(self, raw: bytes, number: int, end: int) -> TextLine | BadLine:
        content = raw.rstrip(b"\r\n")
        if number == 1:
            content = content.removeprefix(codecs.BOM_UTF8)
        if not content.strip():
            return BadLine(number, end, "it is empty")
        try:
            text, name = self._parse(content)
        except UnicodeDecodeError as error:
            return BadLine(number, end, f"it is not UTF-8 at byte {error.start}")
        except msgspec.ValidationError as error:
            return BadLine(number, end, " ".join(str(error).split()))
        except msgspec.DecodeError as error:
            return BadLine(number, end, _not_json(content, error))
        if not all(part.strip() for part in ([text] if isinstance(text, str) else text)):
            return BadLine(number, end, "its text is empty")
        return TextLine(number, end, text, name)


def read_texts(path: Path, *, field: str = "text") -> tuple[list[Text], str]:
    """Return all texts of a file, and the SHA-256 digest of its content in hexadecimal.

    Args:
        path: The file; see `TextFile`.
        field: Name of the field that holds the text.

    Raises:
        TextError: It cannot be read, holds no texts, or a line is bad; the message names the line.
    """
    source = TextFile(path, field=field)
    texts = []
    with source.open() as file:
        for line in source.lines(file):
            if isinstance(line, BadLine):
                raise TextError(f"line {line.number} of {path} is bad: {line.reason}")
            texts.append(line.text)
        if not texts:
            raise TextError(f"{path} holds no text; write one on each line")
        file.seek(0)
        return texts, hashlib.file_digest(file, "sha256").hexdigest()


def _not_json(content: bytes, error: msgspec.DecodeError) -> str:
    # The parser takes the first half of a surrogate pair at the end of a string for a text that was cut off.
    if _SURROGATE.search(content) and ("truncated" in str(error) or "surrogate" in str(error)):
        return "it holds half of a surrogate pair (\\ud800 to \\udfff), which is no character"
    return f"it is not valid JSON: {' '.join(str(error).split()).removeprefix('JSON is malformed: ')}"


def _skip_line(file: BufferedReader) -> int:
    """Read to the end of the line; return how many bytes that were."""
    skipped = 0
    while part := file.readline(LINE_LIMIT_BYTES):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


def _parse_plain(content: bytes) -> tuple[Text, None]:
    return content.decode(), None


_Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What all formats of results can hold."""


class _JsonLine(Protocol):
    text: str
    text_pair: str | None
    id: str | int | None


def _json_parser(field: str) -> Callable[[bytes], tuple[Text, str | int | None]]:
    if field in {"", "id", "text_pair"} or not field.isprintable() or not {'"', "\\"}.isdisjoint(field):
        raise TextError(f"the field of the text cannot be {field!r}; name another one")
    line_type = msgspec.defstruct(
        "Line",
        [("text", str), ("text_pair", str | None, None), ("id", str | _Int64 | None, None)],
        rename=cast("Any", {"text": field}),
    )
    decode = msgspec.json.Decoder(line_type).decode

    def parse(content: bytes) -> tuple[Text, str | int | None]:
        line = cast("_JsonLine", decode(content))
        return (line.text if line.text_pair is None else (line.text, line.text_pair)), line.id

    return parse

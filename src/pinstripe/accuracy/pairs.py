"""Pairs of texts that people have rated."""

import codecs
import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pinstripe.errors import TextError

__all__ = ["ScoredPair", "read_pairs"]

_FIELDS: Final = 3


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """Two texts, and how alike people find them.

    Attributes:
        score: Any finite number, the higher the more alike.
        texts: The two.
    """

    score: float
    texts: tuple[str, str]


def read_pairs(path: Path) -> tuple[list[ScoredPair], str]:
    """Return the pairs of a file, and the SHA-256 digest of its content in hexadecimal.

    Each line has a score, a text and another one, separated by tabs. There is no heading and no quoting. Files are
    UTF-8; a byte order mark and carriage returns at line ends are dropped.

    Args:
        path: The file.

    Raises:
        TextError: It cannot be read, holds no pairs, or a line is bad; the message names the line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TextError(f"cannot read {path}: {error.strerror}; check its name and permissions") from error
    lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        raise TextError(f"{path} is empty; write a score, a text and another one on each line, separated by tabs")
    pairs = []
    for number, line in enumerate(lines, 1):
        try:
            pairs.append(_pair(line.rstrip(b"\r").decode()))
        except ValueError as error:  # of which UnicodeDecodeError is one
            reason = f"it is not UTF-8 at byte {error.start}" if isinstance(error, UnicodeDecodeError) else error
            raise TextError(f"line {number} of {path} is bad: {reason}") from error
    return pairs, hashlib.sha256(content).hexdigest()


def _pair(line: str) -> ScoredPair:
    fields = line.split("\t")
    if len(fields) != _FIELDS:
        raise ValueError(f"it has {len(fields)} fields separated by tabs, not a score, a text and another text")
    try:
        score = float(fields[0])
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise ValueError(f"its score {fields[0]!r} is no finite number")
    if not (fields[1].strip() and fields[2].strip()):
        raise ValueError("one of its texts is empty")
    return ScoredPair(score, (fields[1], fields[2]))

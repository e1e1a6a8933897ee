"""Texts, as token ids, from which fixed scales of activations are taken."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from pinstripe.models import EncodedText, TokenBatch

__all__ = ["Calibration", "read_batches", "write_batches"]


class Calibration:
    """Calibration texts of one model.

    Attributes:
        rows: Token ids of each text, at least one.
        digest: Hexadecimal digest of the ids; the same texts and the same tokenizer give the same.
    """

    def __init__(self, rows: list[EncodedText]) -> None:
        """Keep the rows."""
        self.rows = rows
        content = [(row.ids.tolist(), None if row.type_ids is None else row.type_ids.tolist()) for row in rows]
        self.digest = hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:32]


def write_batches(calibration: Calibration, path: Path) -> None:
    """Write a batch of one text for each row.

    Raises:
        OSError: It cannot be written.
    """
    arrays = {}
    for number, row in enumerate(calibration.rows):
        arrays[f"ids{number}"] = row.ids[None, :]
        arrays[f"type_ids{number}"] = np.zeros_like(row.ids)[None, :] if row.type_ids is None else row.type_ids[None, :]
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type] # its stubs take the arrays for its option


def read_batches(path: Path) -> Iterator[TokenBatch]:
    """Yield what `write_batches` wrote.

    Raises:
        OSError: It cannot be read.
    """
    with np.load(path, allow_pickle=False) as arrays:
        for number in range(len(arrays.files) // 2):
            ids = arrays[f"ids{number}"]
            lengths = np.array([ids.shape[1]], np.int32)
            yield TokenBatch(ids=ids, lengths=lengths, type_ids=arrays[f"type_ids{number}"])

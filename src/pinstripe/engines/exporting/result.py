"""What an export leaves beside its graph: how good it is, what made it, and how to tell that it is whole."""

from pathlib import Path
from typing import Final

import msgspec

__all__ = ["ExportResult", "damaged_files", "write_result"]

_FILE: Final = "export.json"


class ExportResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """About a graph that was made.

    Attributes:
        relative_difference: Largest difference from the output of torch, or of the float32 graph it was quantized from,
            as a share of the largest value, on padded batches of random ids.
        versions: Versions of the distributions that took part, by name.
        file_bytes: Size of each file of the export, by name.
    """

    relative_difference: float
    versions: dict[str, str]
    file_bytes: dict[str, int]


def write_result(directory: Path, *, relative_difference: float, versions: dict[str, str]) -> None:
    """Describe the export that is complete in `directory`.

    Raises:
        OSError: The description cannot be written.
    """
    result = ExportResult(
        relative_difference=relative_difference,
        versions=versions,
        file_bytes={path.name: path.stat().st_size for path in sorted(directory.iterdir())},
    )
    (directory / _FILE).write_bytes(msgspec.json.format(msgspec.json.encode(result)))


def damaged_files(directory: Path) -> list[str]:
    """Return the files of an export that are absent or not of the size they were written with."""
    try:
        result = msgspec.json.decode((directory / _FILE).read_bytes(), type=ExportResult)
    except (OSError, msgspec.DecodeError):
        return [_FILE]
    return [name for name, size in result.file_bytes.items() if not _has_size(directory / name, size)]


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size

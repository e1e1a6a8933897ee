"""Whether the begin of a file is still what it was."""

import hashlib
from pathlib import Path
from typing import Final

__all__ = ["prefix_digest"]

_PART_BYTES: Final = 1 << 20


def prefix_digest(path: Path, size: int) -> "hashlib._Hash":
    """Return the SHA-256 digest of the first `size` bytes of a file, which may be updated with what follows.

    Raises OSError.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (part := file.read(min(size, _PART_BYTES))):
            digest.update(part)
            size -= len(part)
    return digest

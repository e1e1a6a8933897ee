"""JSON files of a model, validated as they are read."""

import stat
from pathlib import Path
from typing import TypeVar

import msgspec

from pinstripe.errors import ModelError
from pinstripe.models.quoting import shortened

__all__ = ["read_json"]

_LIMIT_BYTES = 64 << 20
"""The tokenizer.json of multilingual models has 17 to 33 MB, and nothing else in JSON comes near."""

T = TypeVar("T")


def read_json(path: Path, form: type[T]) -> T:
    """Return the content of a JSON file as `form`; fields that `form` does not name are ignored.

    Raises:
        ModelError: The file cannot be read, is no regular file or larger than 64 MiB, is not JSON, or a field has
            another type than `form` says.
    """
    try:
        return msgspec.json.decode(_content(path), type=form)
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        said = shortened(str(error))
        raise ModelError(f"{path} is not as expected: {said}; is the download complete?") from error


def _content(path: Path) -> bytes:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device may never end
        raise ModelError(f"{path} is no regular file; put the model's own file there")
    if status.st_size > _LIMIT_BYTES:
        size = f"{status.st_size} bytes, of at most {_LIMIT_BYTES}"
        raise ModelError(f"{path} is too large ({size}) for a model's JSON file; download it again")
    return path.read_bytes()

"""JSON files of a model, validated as they are read."""

from pathlib import Path
from typing import TypeVar

import msgspec

from pinstripe.errors import ModelError

__all__ = ["read_json"]

T = TypeVar("T")


def read_json(path: Path, form: type[T]) -> T:
    """Return the content of a JSON file as `form`; fields that `form` does not name are ignored.

    Raises:
        ModelError: The file cannot be read, is not JSON, or a field has another type than `form` says.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=form)
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}); check the file and its permissions") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} is not as expected: {error}; is the download complete?") from error

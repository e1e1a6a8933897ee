"""Options of an engine, and what else every engine checks of a request before it loads anything."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from pinstripe.engines.precision import check_precision
from pinstripe.engines.protocol import Engine, LoadRequest, OptionValue
from pinstripe.errors import EngineError

__all__ = ["NoOptions", "checked_options", "read_options"]

_Options = TypeVar("_Options", bound=msgspec.Struct)


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For engines without options."""


def read_options(engine: Engine, options: Mapping[str, OptionValue], kind: type[_Options]) -> _Options:
    """Return options by name as the engine's `kind`, which forbids unknown fields.

    Raises:
        EngineError: One is unknown or its value not allowed; the message lists the options there are.
    """
    try:
        return msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(kind)) or "none"
        given = ", ".join(f"{name}={value!r}" for name, value in options.items())
        raise EngineError(f"engine {engine.name} refuses {given}: {error}; its options: {known}") from error


def checked_options(engine: Engine, request: LoadRequest, kind: type[_Options]) -> _Options:
    """Return the request's options as `kind`, once everything else that is asked for is known to be possible.

    Raises:
        EngineError: As `read_options` and `check_precision`, or the file is not of the engine's format, or there are
            fewer than 1 threads.
    """
    if request.artefact.format != engine.format:
        given = f"{request.artefact.format} file {request.artefact.path}".strip()
        raise EngineError(f"engine {engine.name} loads format {engine.format}, not the {given}; prepare one for it")
    if request.threads is not None and request.threads < 1:
        raise EngineError(f"{request.threads} threads were asked for; ask for at least 1")
    check_precision(engine, request.precision)
    return read_options(engine, request.options, kind)

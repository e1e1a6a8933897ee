"""Options of an engine, and what else every engine checks of a request before it loads anything."""

from typing import TypeVar

import msgspec

from pinstripe.engines.protocol import Engine, LoadRequest
from pinstripe.errors import EngineError

__all__ = ["NoOptions", "checked_options"]

_Options = TypeVar("_Options", bound=msgspec.Struct)


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For engines without options."""


def checked_options(engine: Engine, request: LoadRequest, kind: type[_Options]) -> _Options:
    """Return the request's options as a `kind`, which forbids unknown fields.

    Raises:
        EngineError: An option is unknown or its value not allowed (the message lists the options there are), the file
            is not of the engine's format, or there are fewer than 1 threads.
    """
    if request.artefact.format != engine.format:
        given = f"{request.artefact.format} file {request.artefact.path}".strip()
        raise EngineError(f"engine {engine.name} loads format {engine.format}, not the {given}; prepare one for it")
    if request.threads is not None and request.threads < 1:
        raise EngineError(f"{request.threads} threads were asked for; ask for at least 1")
    try:
        return msgspec.convert(dict(request.options), kind)
    except msgspec.ValidationError as error:
        known = ", ".join(field.name for field in msgspec.structs.fields(kind)) or "none"
        given = ", ".join(f"{name}={value!r}" for name, value in request.options.items())
        raise EngineError(f"engine {engine.name} refuses {given}: {error}; its options: {known}") from error

"""Options of an engine, and what else every engine checks of a request before it loads anything."""

from collections.abc import Mapping
from typing import TypeVar, get_args

import msgspec

from pinstripe.engines.instruction_sets import keeps_from_bfloat16
from pinstripe.engines.precision import check_precision
from pinstripe.engines.protocol import Engine, LoadRequest, OptionValue
from pinstripe.errors import EngineError

__all__ = ["NoOptions", "checked_options", "describe_options", "read_options", "shown"]

_Options = TypeVar("_Options", bound=msgspec.Struct)


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For engines without options."""


def read_options(engine: Engine, options: Mapping[str, OptionValue], kind: type[_Options]) -> _Options:
    """Return options by name as the engine's `kind`, which forbids unknown fields.

    Raises:
        EngineError: One is unknown or its value not allowed; the message lists the options there are.
    """
    values = describe_options(kind)
    if unknown := [name for name in options if name not in values]:
        known = ", ".join(f"{name} ({said})" for name, said in values.items()) or "none"
        raise EngineError(f"engine {engine.name} has no option {', '.join(unknown)}; its options: {known}")
    try:
        return msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        # It names the first field that is wrong, as `$.name`.
        name = str(error).rpartition("$.")[2].strip("`")
        raise EngineError(
            f"engine {engine.name} does not take {name}={shown(options.get(name))}; use {values.get(name, error)}"
        ) from error


def describe_options(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return what each option may be, in words, by name, such as `dynamic or static` or `a number`."""
    described = {}
    for field in msgspec.structs.fields(kind):
        of = [one for one in get_args(field.type) if one is not type(None)]
        if of and all(isinstance(one, str | int) for one in of):
            *first, last = map(str, of)
            described[field.name] = f"{', '.join(first)} or {last}" if first else last
        else:
            described[field.name] = "true or false" if field.type is bool else "a number"
    return described


def shown(value: object) -> str:
    """Return an option's value as people write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def checked_options(engine: Engine, request: LoadRequest, kind: type[_Options]) -> _Options:
    """Return the request's options as `kind`, once everything else that is asked for is known to be possible.

    Raises:
        EngineError: As `read_options` and `check_precision`, or the environment keeps oneDNN from the precision, or the
            file is not of the engine's format, or there are fewer than 1 threads.
    """
    if request.artefact.format != engine.format:
        given = f"{request.artefact.format} file {request.artefact.path}".strip()
        raise EngineError(f"engine {engine.name} loads format {engine.format}, not the {given}; prepare one for it")
    if request.threads is not None and request.threads < 1:
        raise EngineError(f"{request.threads} threads were asked for; ask for at least 1")
    check_precision(engine, request.precision)
    if request.precision == "bfloat16" and (limit := keeps_from_bfloat16()) is not None:
        raise EngineError(
            f"{limit} leaves no instructions for bfloat16; take isa avx512-bf16 or amx, or float32 or int8"
        )
    return read_options(engine, request.options, kind)

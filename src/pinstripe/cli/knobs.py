"""`pinstripe knobs`: what can be turned here, and what cannot."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pinstripe.cli.console import can_show, print_json, standard_output
from pinstripe.cli.knob_options import option_of
from pinstripe.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

__all__ = ["knobs"]


def knobs(
    *,
    engine: Annotated[str | None, typer.Option(help="Only the knobs of this engine, and what it can have.")] = None,
    as_json: Json = False,
) -> None:
    """Say what can be set when a model's workers start, which values this machine has, and how to get the others.

    `pinstripe bench` takes each as an option with several values, and proves that each has taken effect.

    Example: pinstripe knobs --engine torch-eager
    """
    from pinstripe.engines import engine as engine_of  # noqa: PLC0415
    from pinstripe.knobs import Context, read_host  # noqa: PLC0415
    from pinstripe.machine import read_machine  # noqa: PLC0415

    context = Context(host=read_host(read_machine()), engine=None if engine is None else engine_of(engine))
    listed = _list_knobs(context)
    if as_json:
        print_json(listed)
    else:
        print_knobs(listed, standard_output())


def _list_knobs(context: Any) -> "list[dict[str, Any]]":
    """Return all knobs, or those of an engine, with what the host has of each."""
    from pinstripe.engines import engine as engine_of  # noqa: PLC0415
    from pinstripe.engines import engine_names  # noqa: PLC0415
    from pinstripe.engines.registry import FOR_TESTS  # noqa: PLC0415
    from pinstripe.knobs import knobs as all_knobs  # noqa: PLC0415

    names = [name for name in engine_names() if name != FOR_TESTS]
    listed = []
    for one in all_knobs():
        concerned = [name for name in names if one.stranger(engine_of(name)) is None]
        if context.engine is not None and context.engine.name not in {*concerned, FOR_TESTS}:
            continue
        refusals = {value: one.refusal(value, context) for value in one.values()}
        listed.append(
            {
                "name": one.name,
                "summary": one.summary,
                "option": option_of(one.name),
                "accepts": one.accepts,
                "default": one.default,
                "engines": concerned,
                "values": [
                    {"value": value, "available": why is None, "why_not": why} for value, why in refusals.items()
                ],
            }
        )
    return listed


def print_knobs(listed: "Sequence[Mapping[str, Any]]", console: "Console") -> None:
    """Print the knobs, a block each: what it is, its values, and how to get those that are not there."""
    from rich.text import Text  # noqa: PLC0415

    engine_count = max((len(one["engines"]) for one in listed), default=0)
    yes, no = ("✓", "✗") if can_show("✓✗", console.encoding) else ("yes", "no")
    for one in listed:
        console.print(Text.assemble((one["option"], "bold"), f"  {one['summary']}"), soft_wrap=True)
        here = [value["value"] for value in one["values"] if value["available"]]
        note = f"   (takes {one['accepts']})" if _takes_numbers(one) else ""
        console.print(Text.assemble(f"  {yes} {', '.join(here) or 'none'}", (note, "dim")), soft_wrap=True)
        for why, values in _reasons(one["values"]).items():
            console.print(Text(f"  {no} {', '.join(values)}: {why}", "yellow"), soft_wrap=True)
        engines = "all engines" if len(one["engines"]) == engine_count else ", ".join(one["engines"])
        console.print(Text(f"  default {one['default']}; for {engines}", "dim"), soft_wrap=True)


def _takes_numbers(one: "Mapping[str, Any]") -> bool:
    return any(value["value"].isdecimal() for value in one["values"])


def _reasons(values: "Sequence[Mapping[str, Any]]") -> dict[str, list[str]]:
    """Return the values that each thing is missing for."""
    reasons: dict[str, list[str]] = {}
    for value in values:
        if value["why_not"] is not None:
            reasons.setdefault(value["why_not"], []).append(value["value"])
    return reasons

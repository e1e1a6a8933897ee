"""Options that turn knobs, each with several values if the command measures a grid."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pinstripe.cli.options import split_list
from pinstripe.errors import KnobError

if TYPE_CHECKING:
    from pinstripe.engines import Precision
    from pinstripe.knobs import Context, Host, Knob

__all__ = [
    "KNOB_PANEL",
    "AllocatorOption",
    "FlushDenormalsOption",
    "FpmathOption",
    "GemmOption",
    "HugepagesOption",
    "InteropThreadsOption",
    "IsaOption",
    "KnobOption",
    "OpenmpOption",
    "PrimitiveCacheOption",
    "SpinOption",
    "option_of",
    "read_knobs",
    "read_values",
]

KNOB_PANEL: Final = "Knobs (lists span the grid; all is every value that this machine has; see pinstripe knobs)"
_ALL: Final = "all"

AllocatorOption = Annotated[
    str | None,
    typer.Option(
        help="What serves memory: glibc, glibc-tuned, tcmalloc, jemalloc, jemalloc-keep, mimalloc, tbbmalloc.",
        rich_help_panel=KNOB_PANEL,
    ),
]
KnobOption = Annotated[
    list[str] | None,
    typer.Option(
        "--knob", help="What else to set; may be repeated. `pinstripe knobs` lists them.", metavar="NAME=VALUE"
    ),
]
OpenmpOption = Annotated[
    str | None, typer.Option(help="OpenMP runtime of the torch engines: gnu, intel, llvm.", rich_help_panel=KNOB_PANEL)
]
SpinOption = Annotated[
    str | None,
    typer.Option(
        help="Milliseconds for which idle compute threads busy-wait, or infinite.",
        rich_help_panel=KNOB_PANEL,
        metavar="MS",
    ),
]
HugepagesOption = Annotated[
    str | None,
    typer.Option(help="Memory in transparent huge pages: never, madvise, always.", rich_help_panel=KNOB_PANEL),
]
IsaOption = Annotated[
    str | None,
    typer.Option(help="Best instruction set that the engine may use, such as avx2.", rich_help_panel=KNOB_PANEL),
]
FpmathOption = Annotated[
    str | None,
    typer.Option(help="Products of float32: strict, or rounded to bf16 where the CPU can.", rich_help_panel=KNOB_PANEL),
]
GemmOption = Annotated[
    str | None, typer.Option(help="What multiplies matrices in torch-eager: mkl, onednn.", rich_help_panel=KNOB_PANEL)
]
PrimitiveCacheOption = Annotated[
    str | None,
    typer.Option(
        help="Kernels that oneDNN keeps, one a shape; 0 for none.", rich_help_panel=KNOB_PANEL, metavar="NUMBER"
    ),
]
FlushDenormalsOption = Annotated[
    str | None,
    typer.Option(help="Whether numbers too small to be normal are taken as 0: on, off.", rich_help_panel=KNOB_PANEL),
]
InteropThreadsOption = Annotated[
    str | None,
    typer.Option(help="Threads for whole operators beside each other.", rich_help_panel=KNOB_PANEL, metavar="NUMBER"),
]


def read_knobs(
    asked: Mapping[str, str | None], wanted: "Collection[tuple[str, Precision]]", host: "Host"
) -> "dict[tuple[str, Precision], list[dict[str, str]]]":
    """Return, for each engine with its precision, every choice among the values that are asked for.

    A knob that does not concern an engine is left out for that one.

    Args:
        asked: Lists of values by the name of the knob; None for those that were not given.
        wanted: Engines and precisions.
        host: What `all` is chosen from.

    Raises:
        KnobError: A value is not known, cannot be had with any of the engines, or concerns none of them.
    """
    from pinstripe.engines import engine as engine_of  # noqa: PLC0415
    from pinstripe.knobs import knob  # noqa: PLC0415

    lists = {name: split_list(text, option_of(name), str) for name, text in asked.items() if text is not None}
    for name in lists:
        strangers = {one: knob(name).stranger(engine_of(one)) for one, _ in wanted}
        if all(strangers.values()):
            reasons = "; ".join(f"{one} {why}" for one, why in strangers.items())
            raise KnobError(f"{option_of(name)} concerns none of the engines asked for: {reasons}; leave it out")
    return {(one, precision): _choices(one, precision, lists, host) for one, precision in wanted}


def read_values(name: str, text: str, host: "Host") -> list[str]:
    """Return the values of one knob that a list stands for, whatever the engine.

    Raises:
        KnobError: A value is not known.
    """
    from pinstripe.knobs import Context, knob  # noqa: PLC0415

    return _values(knob(name), split_list(text, option_of(name), str), Context(host=host))


def option_of(name: str) -> str:
    """Return the option that turns a knob."""
    return f"--{name.replace('_', '-')}"


def _choices(
    engine: str, precision: "Precision", lists: Mapping[str, Sequence[str]], host: "Host"
) -> list[dict[str, str]]:
    """Return every combination for an engine; what `all` stands for may depend on knobs that come before."""
    from pinstripe.engines import engine as engine_of  # noqa: PLC0415
    from pinstripe.knobs import AUTO, Context, knobs_of  # noqa: PLC0415

    asked_of = engine_of(engine)
    choices: list[dict[str, str]] = [{}]
    for one in knobs_of(asked_of):
        if one.name in lists:
            context = Context(host=host, engine=asked_of, precision=precision)
            choices = [
                {**chosen, one.name: value}
                for chosen in choices
                for value in _values(one, lists[one.name], replace(context, chosen=chosen))
            ]
    return [{name: value for name, value in chosen.items() if value != AUTO} for chosen in choices]


def _values(one: "Knob", asked: Sequence[str], context: "Context") -> list[str]:
    """Return the values that a list stands for."""
    from pinstripe.knobs import AUTO  # noqa: PLC0415

    expanded: list[str] = []
    for value in asked:
        if value == _ALL and not one.is_value(_ALL):
            had = [every for every in one.values() if one.refusal(every, context) is None]
            if not had:
                why = one.refusal(one.values()[0], context)
                raise KnobError(f"{option_of(one.name)} all: this machine has none of {one.accepts}: {why}")
            expanded += had
        elif value == AUTO or one.is_value(value):
            expanded.append(value)
        else:
            raise KnobError(f"{option_of(one.name)} {value!r} is not known; use {one.accepts}; or {AUTO}, or {_ALL}")
    return list(dict.fromkeys(expanded))

"""Options that several commands share, and how their words are read."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from pinstripe.errors import UsageError

if TYPE_CHECKING:
    from pinstripe.placement import Wish

__all__ = [
    "Bind",
    "CoreKindOption",
    "Json",
    "Reserve",
    "Root",
    "SmtOption",
    "StrategyOption",
    "choice",
    "named_values",
    "read_wish",
    "split_list",
]

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Root = Annotated[
    Path, typer.Option(help="Directory that holds the machine's sys/ and proc/: a dump of another machine, or /.")
]
StrategyOption = Annotated[
    str,
    typer.Option(
        help="close: neighbouring cores. scatter: deal out over nodes. l3: within one cache. node: whole nodes."
    ),
]
SmtOption = Annotated[str, typer.Option(help="Hardware threads of each core to use: one, or all.")]
CoreKindOption = Annotated[str, typer.Option(help="On hybrid CPUs: performance, efficiency, or all.")]
Reserve = Annotated[int, typer.Option(help="Cores left free for everything else.")]
Bind = Annotated[
    str | None,
    typer.Option(
        help="Explicit CPUs in numactl's list syntax, | between instances; decides how many there are.",
        metavar="'0-11|12-23'",
    ),
]


def split_list(text: str, option: str, parse: Callable[[str], T]) -> list[T]:
    """Return the parsed parts of a comma-separated list.

    Raises:
        UsageError: A part is empty or `parse` raises ValueError for it.
    """
    values = []
    for part in text.split(","):
        try:
            values.append(parse(part.strip()))
        except ValueError as error:
            what = "list of numbers" if parse in {int, float} else "list"
            raise UsageError(
                f"{option} {text!r} is not understood at {part!r}; use a comma-separated {what}"
            ) from error
    return values


def named_values(texts: Sequence[str], option: str) -> dict[str, str]:
    """Return the pairs of NAME=VALUE texts.

    Raises:
        UsageError: A text has another form, or two have the same name.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(f"{option} {text!r} is not understood; write NAME=VALUE")
        if name in pairs:
            raise UsageError(f"{option} names {name} twice, as {pairs[name]} and as {value}; leave one out")
        pairs[name] = value
    return pairs


def choice(text: str, choices: Any, option: str) -> Any:
    """Return `text` if it is one of the values of the `Literal` type `choices`.

    Raises:
        UsageError: It is not.
    """
    if text not in get_args(choices):
        raise UsageError(f"{option} {text!r} is not known; use one of {', '.join(get_args(choices))}")
    return text


def read_wish(
    *,
    instances: int | None,
    cores: int | None,
    strategy: str,
    smt: str,
    core_kind: str,
    reserve: int,
    bind: str | None,
) -> "Wish":
    """Return the wish that the options of `place` and `launch` make up.

    Raises:
        UsageError: One has a value that is not known.
    """
    from pinstripe.placement import CoreKindWish, SmtUse, Strategy, Wish  # noqa: PLC0415

    return Wish(
        instances=instances,
        cores=cores,
        strategy=choice(strategy, Strategy, "--strategy"),
        smt=choice(smt, SmtUse, "--smt"),
        core_kind=choice(core_kind, CoreKindWish, "--core-kind"),
        reserve=reserve,
        bind=bind,
    )

"""Groups of instances, each for texts of some lengths, in one line."""

import re
from typing import TYPE_CHECKING, Annotated, Final

import typer

from pinstripe.errors import UsageError

if TYPE_CHECKING:
    from pinstripe.configuration import InstanceGroup

__all__ = ["GroupsOption", "read_alternatives", "read_groups"]

GroupsOption = Annotated[
    str | None,
    typer.Option(
        help='Instances of different sizes, each for texts of some lengths: "<=32: 2x1, <=128: 1x4, rest: 1x8" '
        "(tokens: instances x cores).",
        metavar="GROUPS",
    ),
]

_EXAMPLE: Final = '"<=32: 2x1, <=128: 1x4, rest: 1x8" (tokens: instances x cores)'
_NUMBER: Final = "([0-9]{1,7})"
_NO_END: Final = 10_000_000
"""Above any number that is read."""
_UP_TO: Final = re.compile(rf"(?:<=|≤)\s*{_NUMBER}")
_BETWEEN: Final = re.compile(rf"{_NUMBER}\s*-\s*{_NUMBER}")
_ABOVE: Final = re.compile(rf">\s*{_NUMBER}")
_REST: Final = "rest"
_SHOWN: Final = 40
_TIMES: Final = "x\N{MULTIPLICATION SIGN}"
_SHAPE: Final = re.compile(rf"{_NUMBER}\s*[{_TIMES}]\s*{_NUMBER}")


def read_alternatives(text: str) -> "list[tuple[InstanceGroup, ...]]":
    """Return the groups of each alternative; these are separated by semicolons.

    Raises:
        UsageError: See `read_groups`; or two alternatives are the same.
    """
    alternatives = [read_groups(one) for one in text.split(";")]
    if len(set(alternatives)) < len(alternatives):
        raise UsageError(f"--groups {text!r} names the same groups twice; leave one out")
    return alternatives


def read_groups(text: str) -> "tuple[InstanceGroup, ...]":
    """Return the groups that a line such as `<=32: 2x1, 33-128: 1x4, rest: 1x8` names.

    Lengths are `<=32` or `≤32` for those that no group before has, `33-128`, `>128` or `rest` for all others; sizes are
    instances x cores, with the letter or the sign for multiplication.

    Raises:
        UsageError: It is not understood, or a length belongs to no group or to several; the message names the lengths.
    """
    from pinstripe.configuration import InstanceGroup, check_groups  # noqa: PLC0415

    groups: list[InstanceGroup] = []
    taken = 0
    for part in text.split(","):
        lengths, _, size = (piece.strip() for piece in part.partition(":"))
        shape = _SHAPE.fullmatch(size)
        bounds = _bounds(lengths, taken)
        if bounds is None or shape is None:
            raise UsageError(f"--groups: {part.strip()[:_SHOWN]!r} is not understood; write such as {_EXAMPLE}")
        _check_bounds(lengths, *bounds, taken)
        taken = bounds[1]
        end = None if taken == _NO_END else taken
        groups.append(InstanceGroup(instances=int(shape[1]), cores=int(shape[2]), max_tokens=end))
    if taken < _NO_END:
        raise UsageError(f"--groups: {_named(taken + 1, _NO_END)} to no group; end with one for the rest, as rest: 1x8")
    check_groups(groups)
    return tuple(groups)


def _bounds(lengths: str, taken: int) -> tuple[int, int] | None:
    """Return the first and last length of some that are written; None if they are not understood."""
    if up_to := _UP_TO.fullmatch(lengths):
        return taken + 1, int(up_to[1])
    if between := _BETWEEN.fullmatch(lengths):
        return int(between[1]), int(between[2])
    if above := _ABOVE.fullmatch(lengths):
        return int(above[1]) + 1, _NO_END
    return (taken + 1, _NO_END) if lengths == _REST else None


def _check_bounds(lengths: str, first: int, last: int, taken: int) -> None:
    """Raise unless these lengths follow on those that groups before them have."""
    if first > max(last, taken + 1) or first == 0:
        raise UsageError(f"--groups: {lengths} is no range of lengths; they begin at 1, the smaller number is first")
    if last < first or taken == _NO_END:
        before = f"{_named(1, taken)} to groups before it" if taken else "a text has at least 1 token"
        order = "; put the groups in the order of their lengths, the rest last" if taken else ""
        raise UsageError(f"--groups: no length is left for {lengths}: {before}{order}")
    if first <= taken:
        raise UsageError(f"--groups: {_named(first, min(last, taken))} to {lengths} and to a group before it")
    if first > taken + 1:
        raise UsageError(f"--groups: {_named(taken + 1, first - 1)} to no group; name them before {lengths}")


def _named(first: int, last: int) -> str:
    """Return some lengths as the subject of a sentence."""
    if last == _NO_END:
        return f"lengths above {first - 1} belong" if first > 1 else "all lengths belong"
    return f"length {first} belongs" if first == last else f"lengths {first} to {last} belong"

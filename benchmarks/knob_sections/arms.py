"""What is compared: a dictionary of knobs an arm, the first of them empty and another one the same again."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final, Literal, TypeAlias, get_args

from pinstripe.configuration import Configuration
from pinstripe.knobs import AUTO, KnobEffect, knob

__all__ = ["SECTIONS", "Arm", "Section", "arm_label", "arms_of", "failure_lines", "in_ms"]

Section = Literal["allocators", "openmp", "hugepages", "gaps"]
SECTIONS: Final[tuple[Section, ...]] = get_args(Section)
Arm: TypeAlias = dict[str, str]
_FIRST: Final[dict[Section, str]] = {
    "allocators": "allocator",
    "openmp": "openmp",
    "hugepages": "hugepages",
    "gaps": "spin",
}
"""The knob of each section that is named, as `auto`, to have the base measured once more under another name."""


def arms_of(section: Section, spins: Sequence[str]) -> list[Arm]:
    """Return the arms of a section.

    Args:
        section: Which.
        spins: Values of the spin knob.

    Raises:
        KnobError: This pinstripe has no such knob.
    """
    others = {
        "allocators": lambda: _crossed(allocator=_values("allocator")),
        "openmp": lambda: _crossed(openmp=_values("openmp"), spin=spins),
        "hugepages": lambda: _crossed(hugepages=_values("hugepages"), allocator=_values("allocator")),
        "gaps": lambda: _crossed(openmp=_values("openmp"), spin=spins),
    }[section]()
    # In the middle, as far from the base as the others are on average: what drifts counts in the noise floor too.
    return [{}, *others[: len(others) // 2], {_FIRST[section]: AUTO}, *others[len(others) // 2 :]]


def arm_label(configuration: Configuration, effects: Iterable[KnobEffect] = ()) -> str:
    """Return an arm's name for a table; that of the base, which names no knob, with what was in effect."""
    named = {name: value for name, value in configuration.knobs.items() if value != AUTO}
    if named:
        return " ".join(f"{name}={value}" for name, value in named.items())
    if configuration.knobs:
        return "the same again (A/A)"
    found = {one.knob: one.effective for one in effects}
    effective = [f"{name} {found[name]}" for name in dict.fromkeys(_FIRST.values()) if name in found]
    return f"nothing asked ({', '.join(effective)})" if effective else "nothing asked"


def failure_lines(failures: Iterable[tuple[Configuration, str]]) -> Iterator[str]:
    """Yield a line for each arm that failed: how often, and the first reason."""
    reasons: dict[str, list[str]] = defaultdict(list)
    for configuration, reason in failures:
        reasons[arm_label(configuration)].append(reason)
    for label, of_arm in reasons.items():
        times = "once" if len(of_arm) == 1 else f"{len(of_arm)} times"
        yield f"* {label} failed {times}: {of_arm[0]}"


def in_ms(value: float) -> str:
    """Return milliseconds to three digits."""
    return f"{value:.3g} ms" if value < 100 else f"{value:,.0f} ms"  # noqa: PLR2004 - three digits


def _values(name: str) -> tuple[str, ...]:
    return knob(name).values()


def _crossed(**values: Sequence[str]) -> list[Arm]:
    """Return all combinations in which at least one knob is named."""
    points = product(*((None, *of_knob) for of_knob in values.values()))
    arms = [{name: value for name, value in zip(values, point, strict=True) if value is not None} for point in points]
    return [arm for arm in arms if arm]

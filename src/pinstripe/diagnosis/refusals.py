"""Which values of knobs cannot be had on this machine."""

from collections.abc import Sequence

from pinstripe.engines import engine
from pinstripe.knobs import Context, knobs, read_host
from pinstripe.machine import Machine

__all__ = ["Refusals", "read_refusals"]

Refusals = dict[str, dict[str, str]]
"""By knob: its values that cannot be had, and why."""


def read_refusals(machine: Machine, engines: Sequence[str]) -> Refusals:
    """Ask every knob that concerns one of some engines for each of its values.

    Args:
        machine: The machine that this runs on.
        engines: Names of engines that are installed.
    """
    context = Context(host=read_host(machine))
    used = [engine(name) for name in engines]
    return {
        one.name: {value: why for value in one.values() if (why := one.refusal(value, context)) is not None}
        for one in knobs()
        if any(one.stranger(each) is None for each in used)
    }

"""Which values of knobs cannot be had on this machine."""

from collections.abc import Sequence

from pinstripe.engines import engine
from pinstripe.knobs import Context, Host, knobs

__all__ = ["Refusals", "list_refusals"]

Refusals = dict[str, dict[str, str]]
"""By knob: its values that cannot be had, and why."""


def list_refusals(host: Host, engines: Sequence[str]) -> Refusals:
    """Ask every knob that concerns one of some engines for each of its values.

    Args:
        host: What it has for knobs to choose from.
        engines: Names of engines that are installed.
    """
    context = Context(host=host)
    used = [engine(name) for name in engines]
    return {
        one.name: {value: why for value in one.values() if (why := one.refusal(value, context)) is not None}
        for one in knobs()
        if any(one.stranger(each) is None for each in used)
    }

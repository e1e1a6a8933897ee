"""What of the knobs that were asked for is in effect."""

from collections.abc import Mapping

from pinstripe.knobs.knob import AUTO, KnobEffect, Seen
from pinstripe.knobs.registry import knobs_of

__all__ = ["knob_effects"]


def knob_effects(chosen: Mapping[str, str], seen: Seen) -> tuple[KnobEffect, ...]:
    """Return each knob that concerns a worker's engine, with what is in effect.

    Args:
        chosen: What was asked for, by name.
        seen: What was found out about the worker.
    """
    effects = []
    for one in knobs_of(seen.engine):
        found = one.effective(seen)
        requested = chosen.get(one.name, AUTO)
        effects.append(KnobEffect(knob=one.name, requested=requested, effective=found.value, why=found.why))
    return tuple(effects)

"""What of the knobs that were asked for is in effect."""

from pinstripe.knobs.knob import AUTO, KnobEffect, Seen
from pinstripe.knobs.registry import knobs_of

__all__ = ["knob_effects"]


def knob_effects(seen: Seen) -> tuple[KnobEffect, ...]:
    """Return each knob that concerns a worker's engine, with what is in effect.

    Args:
        seen: What was found out about the worker, and what was asked for.
    """
    effects = []
    for one in knobs_of(seen.engine):
        found = one.effective(seen)
        requested = seen.chosen.get(one.name, AUTO)
        effects.append(KnobEffect(knob=one.name, requested=requested, effective=found.value, why=found.why))
    return tuple(effects)

"""What can be turned when a worker starts? Each knob is offered or refused, applied to the worker alone, and proved."""

from pinstripe.knobs.effects import knob_effects
from pinstripe.knobs.host import Host, read_host
from pinstripe.knobs.knob import AUTO, Context, Effective, Knob, KnobEffect, Seen, Setting
from pinstripe.knobs.preloads import preload_variable
from pinstripe.knobs.registry import OF_PLACEMENT, knob, knob_names, knobs, knobs_of
from pinstripe.knobs.settings import check_knobs, combined_setting

__all__ = [
    "AUTO",
    "OF_PLACEMENT",
    "Context",
    "Effective",
    "Host",
    "Knob",
    "KnobEffect",
    "Seen",
    "Setting",
    "check_knobs",
    "combined_setting",
    "knob",
    "knob_effects",
    "knob_names",
    "knobs",
    "knobs_of",
    "preload_variable",
    "read_host",
]

"""From the knobs that are asked for to how a worker starts."""

from collections.abc import Mapping
from dataclasses import replace

from pinstripe.errors import KnobError
from pinstripe.knobs.knob import AUTO, Context, Setting
from pinstripe.knobs.lists import LISTS, appended
from pinstripe.knobs.registry import knob

__all__ = ["check_knobs", "combined_setting"]


def check_knobs(chosen: Mapping[str, str]) -> None:
    """See that knobs and values exist.

    Raises:
        KnobError: One does not; the message lists those that do.
    """
    for name, value in chosen.items():
        one = knob(name)
        if value != AUTO and not one.is_value(value):
            raise KnobError(f"{name} cannot be {value!r}; use {one.accepts}")


def combined_setting(context: Context) -> Setting:
    """Return what all chosen knobs change together.

    Args:
        context: With the engine, and the chosen knobs.

    Raises:
        KnobError: One does not exist, does not concern the engine or cannot be had here, or two exclude each other.
    """
    check_knobs(context.chosen)
    environment: dict[str, str | None] = {}
    together = Setting()
    for name, value in context.chosen.items():
        if value == AUTO:
            continue
        one = knob(name)
        if context.engine is not None and (why := one.stranger(context.engine)) is not None:
            raise KnobError(f"{name}={value} is not for {context.engine.name}, which {why}; leave it out")
        if (why := one.refusal(value, context)) is not None:
            raise KnobError(f"{name}={value} cannot be had here: {why}")
        setting = one.setting(value, context)
        for variable, text in setting.environment.items():
            environment[variable] = _merged(variable, environment.get(variable), text)
        together = Setting(
            preload=(*together.preload, *setting.preload),
            unload=(*together.unload, *setting.unload),
            huge_pages=setting.huge_pages if setting.huge_pages != "inherit" else together.huge_pages,
            options={**together.options, **setting.options},
        )
    return replace(together, environment=environment)


def _merged(variable: str, before: str | None, text: str | None) -> str | None:
    """Return a variable that two knobs set.

    Raises:
        KnobError: They want different values of it.
    """
    if text is None or before == text:  # what one knob only removes, another may set
        return before
    if before is None:
        return text
    if variable in LISTS:
        return appended(variable, before, text)
    raise KnobError(f"two knobs set {variable}, to {before!r} and to {text!r}; leave one of them out")

"""Knobs that an engine has an option for, of the same name."""

from pinstripe.engines import Engine

__all__ = ["takes"]


def takes(engine: Engine, option: str) -> bool:
    """Return whether an engine has an option."""
    return option in engine.options_type.__struct_fields__

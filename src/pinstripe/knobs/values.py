"""What knobs have in common: their kinds of values, and the engines that they are for."""

from typing import ClassVar

from pinstripe.engines import Engine
from pinstripe.knobs.knob import Context, Setting

__all__ = ["EngineOption", "ForEveryEngine", "NeverRefused", "OfWords", "OfWorker", "WholeNumbers", "on_torch", "takes"]


def takes(engine: Engine, option: str) -> bool:
    """Return whether an engine has an option."""
    return option in engine.options_type.__struct_fields__


def on_torch(engine: Engine) -> bool:
    """Return whether an engine computes with PyTorch."""
    return engine.distributions[:1] == ("torch",)


class OfWords:
    """A knob with a few words for values."""

    words: ClassVar[tuple[str, ...]]

    def values(self) -> tuple[str, ...]:
        """Return the words."""
        return self.words

    def is_value(self, text: str) -> bool:
        """Return whether it is one of them."""
        return text in self.words


class WholeNumbers:
    """A knob with whole numbers from `least` to `most`, of which some are `worth_a_try`."""

    least: ClassVar[int]
    most: ClassVar[int]
    worth_a_try: ClassVar[tuple[str, ...]]

    def values(self) -> tuple[str, ...]:
        """Return those worth a try."""
        return self.worth_a_try

    def is_value(self, text: str) -> bool:
        """Return whether it is a number in range, without leading zeros."""
        if not text.isdecimal() or len(text) > len(str(self.most)):  # int() refuses thousands of digits
            return False
        return text == str(int(text)) and self.least <= int(text) <= self.most


class ForEveryEngine:
    """A knob that concerns every engine."""

    def stranger(self, engine: Engine) -> str | None:
        """Return None."""
        del engine
        return None


class NeverRefused:
    """A knob whose values can always be had."""

    def refusal(self, value: str, context: Context) -> str | None:
        """Return None."""
        del value, context
        return None


class OfWorker:
    """A knob that changes nothing by itself: placement, or the request to start a worker, has a field for it."""

    def setting(self, value: str, context: Context) -> Setting:
        """Return nothing."""
        del value, context
        return Setting()


class EngineOption:
    """A knob that is an option of engines, by the same name."""

    name: ClassVar[str]

    def setting(self, value: str, context: Context) -> Setting:
        """Set the option."""
        del context
        return Setting(options={self.name: value})

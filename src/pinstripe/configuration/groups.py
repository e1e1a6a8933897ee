"""Instances of different sizes, each for texts of some lengths."""

from collections.abc import Sequence

import msgspec

from pinstripe.errors import ConfigurationError

__all__ = ["InstanceGroup", "check_groups", "group_of"]


class InstanceGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Instances of one size, whose first work is texts of some lengths.

    Attributes:
        instances: How many, at least 1.
        cores: Physical cores of each, at least 1.
        max_tokens: Most tokens of a text of its class, special tokens included; the least is one more than the most of
            the group before. None for no upper end, in the last group only.
    """

    instances: int
    cores: int
    max_tokens: int | None = None


def check_groups(groups: Sequence[InstanceGroup]) -> None:
    """Raise unless every length belongs to exactly one of the groups; none at all is fine.

    Raises:
        ConfigurationError: A number is out of range, or lengths belong to none or several.
    """
    previous = 0
    for number, group in enumerate(groups, 1):
        if group.instances < 1 or group.cores < 1:
            raise ConfigurationError(
                f"group {number} has {group.instances} instances of {group.cores} cores; use at least 1 of each"
            )
        if (group.max_tokens is None) != (number == len(groups)):
            raise ConfigurationError("the last group, and only the last, takes texts of any length; it has no max_tokens")
        if group.max_tokens is not None and group.max_tokens <= previous:
            raise ConfigurationError(
                f"group {number} ends at {group.max_tokens} tokens, the one before it at {previous}; "
                "put the groups in the order of their lengths"
            )
        previous = group.max_tokens or previous


def group_of(groups: Sequence[InstanceGroup], tokens: int) -> int:
    """Return the index of the group whose class has texts of this length."""
    return next(index for index, group in enumerate(groups) if group.max_tokens is None or tokens <= group.max_tokens)

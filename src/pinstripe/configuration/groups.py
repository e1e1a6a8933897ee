"""Instances of different sizes, each for texts of some lengths."""

from collections.abc import Sequence
from typing import Final

import msgspec

from pinstripe.errors import ConfigurationError

__all__ = ["InstanceGroup", "check_groups", "group_of", "groups_label", "instance_sizes"]

_MOST: Final = 8192
"""Cores of no machine are more: so many CPUs has the Linux kernel room for (`NR_CPUS` with `CONFIG_MAXSMP`)."""


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
        ConfigurationError: A number is out of range, or lengths belong to none or several; it names the lengths.
    """
    previous = 0
    for number, group in enumerate(groups, 1):
        if not (1 <= group.instances <= _MOST and 1 <= group.cores <= _MOST):
            raise ConfigurationError(
                f"group {number} has {group.instances}x{group.cores} (instances x cores); use 1 to {_MOST} of each"
            )
        if group.max_tokens is None:
            if number < len(groups):
                raise ConfigurationError(
                    f"lengths above {previous} belong to group {number}, which has no max_tokens, and to group "
                    f"{number + 1}; only the last group takes texts of any length"
                )
        elif group.max_tokens <= previous:
            before = f"group {number - 1} ends at {previous}" if number > 1 else "lengths begin at 1"
            raise ConfigurationError(
                f"group {number} ends at {group.max_tokens} tokens, and {before}: no length is left for it; "
                "put the groups in the order of their lengths"
            )
        elif number == len(groups):
            raise ConfigurationError(
                f"lengths above {group.max_tokens} belong to no group; the last group takes the rest and has no "
                "max_tokens"
            )
        else:
            previous = group.max_tokens
    if (total := sum(group.instances for group in groups)) > _MOST:
        raise ConfigurationError(f"the groups have {total} instances in all; use at most {_MOST}")


def group_of(groups: Sequence[InstanceGroup], tokens: int) -> int:
    """Return the index of the group whose class has texts of this length."""
    return next(index for index, group in enumerate(groups) if group.max_tokens is None or tokens <= group.max_tokens)


def instance_sizes(groups: Sequence[InstanceGroup]) -> tuple[int, ...]:
    """Return the cores of each instance, those of the first group first."""
    return tuple(group.cores for group in groups for _ in range(group.instances))


def groups_label(groups: Sequence[InstanceGroup]) -> str:
    """Return a short name for tables, such as `≤32:2x1 ≤128:1x4 rest:1x8` (instances x cores)."""
    lengths = ("rest" if group.max_tokens is None else f"≤{group.max_tokens}" for group in groups)
    return " ".join(f"{name}:{group.instances}x{group.cores}" for name, group in zip(lengths, groups, strict=True))

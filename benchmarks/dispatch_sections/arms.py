"""What is compared: shapes of instances, and policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pinstripe.configuration import DispatchRule, InstanceGroup, Policy

__all__ = ["Arm", "Family", "arms_of"]


@dataclass(frozen=True, slots=True)
class Arm:
    """A way to run the model.

    Attributes:
        family: What it stands for in a table; the best arm of each family is compared.
        shape: For people, such as `4x12`.
        groups: Its instances.
        rule: How texts are given to them.
    """

    family: str
    shape: str
    groups: tuple[InstanceGroup, ...]
    rule: DispatchRule

    @property
    def label(self) -> str:
        """A short name."""
        return f"{self.family}: {self.shape}"


Family = str
_UNIFORM: Final[Mapping[str, tuple[tuple[int, int], ...]]] = {
    "2x24": ((2, 24), (4, 12), (8, 6)),
    "2x40": ((2, 40), (4, 20), (10, 8), (20, 4)),
    "2": ((2, 1),),
}
_WHOLE: Final = {"2x24": 48, "2x40": 80, "2": 2}
_CLASSES: Final[Mapping[str, tuple[tuple[tuple[int, int], tuple[int, int]], ...]]] = {
    # Instances and cores for the short texts, then for the long ones.
    "2x24": (((1, 24), (1, 24)), ((4, 6), (2, 12)), ((2, 6), (3, 12)), ((4, 6), (1, 24)), ((6, 6), (1, 12))),
    "2x40": (((1, 40), (1, 40)), ((10, 4), (1, 40)), ((10, 4), (2, 20)), ((5, 4), (3, 20)), ((5, 8), (2, 20))),
    "2": (((1, 1), (1, 1)),),
}


def arms_of(machine: str, bounds: Sequence[int], tokens: int, patience_ms: float | None = None) -> list[Arm]:
    """Return the arms for a machine.

    Args:
        machine: `2x24`, `2x40` or `2`.
        bounds: The upper end of the short class, if the mix has two; without, there is nothing to tell apart.
        tokens: Budget of a batch for each core, the same in all arms.
        patience_ms: Of `smart`; None for what is usual.
    """

    def rule(policy: Policy) -> DispatchRule:
        return DispatchRule(policy=policy, tokens=tokens, patience_ms=patience_ms)

    whole = (InstanceGroup(instances=1, cores=_WHOLE[machine]),)
    arms = [Arm("one process", f"1x{_WHOLE[machine]}", whole, rule("fifo"))]
    policies: tuple[Policy, ...] = ("fifo", "shortest-first", "smart")
    arms += [
        Arm(f"uniform, {policy}", f"{count}x{cores}", (InstanceGroup(instances=count, cores=cores),), rule(policy))
        for policy in policies
        for count, cores in _UNIFORM[machine]
    ]
    if bounds:
        arms += [
            Arm(
                "classes, smart",
                f"≤{bounds[0]}:{short[0]}x{short[1]} rest:{rest[0]}x{rest[1]}",
                (
                    InstanceGroup(instances=short[0], cores=short[1], max_tokens=bounds[0]),
                    InstanceGroup(instances=rest[0], cores=rest[1]),
                ),
                rule("smart"),
            )
            for short, rest in _CLASSES[machine]
        ]
    return arms

"""What is wished of a placement, and the answer."""

from typing import Literal

import msgspec

__all__ = ["CoreKindWish", "InstancePlacement", "Placement", "SmtUse", "Strategy", "Wish"]

Strategy = Literal["close", "scatter", "l3", "node"]
SmtUse = Literal["one", "all"]
CoreKindWish = Literal["performance", "efficiency", "all"]


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How instances should be laid out.

    Attributes:
        instances: Number of instances, at least 1; None for as many as `cores` allows. Where `cores` is None too, one
            instance of all cores, even if it has to cross nodes; with `l3` and `node`, one for each group or node.
        cores: Physical cores of each instance, at least 1; None for an equal share of all usable cores, as large as
            can be without crossing nodes. With `node`, it must be the size of a node.
        sizes: Physical cores of each instance, at least 1, where they differ; instead of the two before. The larger
            find room first.
        strategy: `close` fills one node after the other with neighbouring cores, and keeps to level-3 groups where
            the size permits; `scatter` deals instances out over nodes in turn, and over level-3 groups in each; `l3`
            keeps every instance within one level-3 group (package or node where those are unknown); `node` gives
            every instance a node to itself, of which it leaves idle what would make it larger than others, or than its
            size of `sizes`.
        smt: `one` hardware thread of each core, or `all` of them.
        core_kind: On hybrid CPUs, which cores to use.
        reserve: Cores left free for everything else (the parent, the operating system), at least 0.
        bind: Explicit CPUs instead of all of the above: numactl list syntax, `|` between instances ("0-11|12-23").
    """

    instances: int | None = None
    cores: int | None = None
    sizes: tuple[int, ...] = ()
    strategy: Strategy = "close"
    smt: SmtUse = "one"
    core_kind: CoreKindWish = "performance"
    reserve: int = 0
    bind: str | None = None


class InstancePlacement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where one instance runs.

    Attributes:
        cpus: CPUs it is bound to, ascending; one compute thread runs on each.
        nodes: Ids of the NUMA nodes its memory should come from, ascending: one, or several to interleave over when
            the instance has to cross nodes; empty on machines without NUMA.
    """

    cpus: tuple[int, ...]
    nodes: tuple[int, ...]


class Placement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where every instance runs.

    Attributes:
        instances: One entry an instance; their CPUs are disjoint.
        idle: CPUs of the allowed cores that no instance uses and that are not reserved, ascending.
        reserved: CPUs of the cores kept free by `Wish.reserve`, ascending.
        warnings: Sentences for people, such as that an instance crosses nodes.
    """

    instances: tuple[InstancePlacement, ...]
    idle: tuple[int, ...]
    reserved: tuple[int, ...]
    warnings: tuple[str, ...]

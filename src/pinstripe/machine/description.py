"""What a host offers this process, as plain immutable data."""

from typing import Literal

import msgspec

__all__ = ["Core", "CoreKind", "Machine", "Node"]

CoreKind = Literal["performance", "efficiency"]


class Core(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A physical core: the set of online CPUs (hardware threads) that share it.

    Attributes:
        cpus: Online sibling CPU numbers, ascending, at least one. A core is this set and nothing else: the kernel's
            `core_id` is neither unique nor dense (see `docs/decisions/`).
        package: Index into `Machine.packages`, or None where the kernel does not say.
        node: Kernel id of the NUMA node the core belongs to (ids may be sparse; it may lack memory), or None.
        l3: Index into `Machine.l3`, or None where the kernel does not say.
        kind: `performance` on machines with one kind of core.
    """

    cpus: tuple[int, ...]
    package: int | None
    node: int | None
    l3: int | None
    kind: CoreKind


class Node(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A NUMA node.

    Attributes:
        id: The kernel's id; ids may be sparse.
        cpus: Online CPUs of the node, or those nearest to it where it is memory without CPUs of its own; ascending, may
            be empty. Nodes may overlap (a fast and a big memory near the same cores).
        memory_bytes: Memory of the node, 0 where it has none or the kernel does not say.
        neighbours: The other nodes' ids, nearest first by the kernel's distance table; empty where there is none.
    """

    id: int
    cpus: tuple[int, ...]
    memory_bytes: int
    neighbours: tuple[int, ...] = ()


class Machine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a host offers this process: its topology, and the limits on it. All lists are ascending.

    Attributes:
        online: Online CPUs.
        allowed: Online CPUs that this process may use: online, in its affinity mask and in its cpuset.
        isolated: Online CPUs the kernel keeps its scheduler away from (`isolcpus`).
        cores: All online cores, by first CPU.
        packages: CPUs of each package (socket), by first CPU.
        l3: CPUs of each group that shares a level-3 cache, by first CPU; empty where the kernel does not say.
        nodes: NUMA nodes by id; a kernel without NUMA has node 0 with everything. Empty where none can be read.
        allowed_nodes: Ids of the nodes whose memory this process may use.
        cpu_quota: CPUs' worth of time per second that control groups grant this process, the tightest limit on the
            path up to the root of the mount; None without one. May be fractional and below 1.
        model_name: The CPU's name, such as `Intel(R) Xeon(R) Processor`; None where unknown.
        isa: Instruction-set flags as the kernel names them, sorted (x86 `flags`, Arm `Features`).
        thp: Selected transparent-huge-page mode (`always`, `madvise`, `never`); None where unknown.
        smt: Kernel's SMT state (`on`, `off`, `forceoff`, `notsupported`, `notimplemented`); None where unknown.
    """

    online: tuple[int, ...]
    allowed: tuple[int, ...]
    isolated: tuple[int, ...] = ()
    cores: tuple[Core, ...]
    packages: tuple[tuple[int, ...], ...]
    l3: tuple[tuple[int, ...], ...]
    nodes: tuple[Node, ...]
    allowed_nodes: tuple[int, ...]
    cpu_quota: float | None = None
    model_name: str | None = None
    isa: tuple[str, ...] = ()
    thp: str | None = None
    smt: str | None = None

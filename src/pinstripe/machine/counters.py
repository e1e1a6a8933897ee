"""How much time was taken from this process: by its control groups' quotas, and by the hypervisor."""

import os
from pathlib import Path

import msgspec

from pinstripe.machine.cgroups import own_groups
from pinstripe.machine.limits import allowed_cpus, online_cpus
from pinstripe.machine.tree import Tree

__all__ = ["Counters", "read_counters", "read_idle_ns"]

# user, nice, system, irq and softirq of a line in /proc/stat; guest time is part of user time. See proc_stat(5).
_BUSY_COLUMNS = (0, 1, 2, 5, 6)
_IDLE_COLUMNS = (3, 4)  # idle, and idle while a disk works
_STEAL_COLUMN = 7


class Counters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Kernel counters that only grow; their difference over a measurement says whether it was disturbed.

    Attributes:
        nr_periods: Quota periods that passed while the process' control groups were runnable, summed over all groups on
            the path up to the root of the mount; None where no group can have a quota.
        nr_throttled: Those periods in which a group used up its quota and had to wait.
        throttled_ns: Time the groups' CPUs waited so, summed over CPUs.
        steal_ns: Time in which the hypervisor ran something else, summed over CPUs (see `read_counters`); None where
            unknown.
        busy_ns: Time in which these CPUs ran anything, of any process; None where unknown.
    """

    nr_periods: int | None
    nr_throttled: int | None
    throttled_ns: int | None
    steal_ns: int | None
    busy_ns: int | None

    def since(self, earlier: "Counters") -> "Counters":
        """Return the growth since earlier counters; None where one is unknown or a counter went backwards.

        Counters go backwards when the process was moved to another control group or its allowed CPUs changed.
        """
        return Counters(
            nr_periods=_growth(self.nr_periods, earlier.nr_periods),
            nr_throttled=_growth(self.nr_throttled, earlier.nr_throttled),
            throttled_ns=_growth(self.throttled_ns, earlier.throttled_ns),
            steal_ns=_growth(self.steal_ns, earlier.steal_ns),
            busy_ns=_growth(self.busy_ns, earlier.busy_ns),
        )


def read_counters(root: Path = Path("/"), *, cpus: tuple[int, ...] | None = None) -> Counters:
    """Return the counters now. Steal and busy times have the kernel's tick as resolution, 10 ms as a rule.

    Args:
        root: As for `read_machine`.
        cpus: CPUs whose steal and busy times are added up; None for those that the calling thread is allowed.

    Raises:
        MachineError: As for `read_machine`.
    """
    tree = Tree(root)
    throttling = _throttling(tree)
    steal_ns, busy_ns = _steal_and_busy_ns(tree, allowed_cpus(tree, online_cpus(tree)) if cpus is None else cpus)
    return Counters(
        nr_periods=_total(throttling, "nr_periods"),
        nr_throttled=_total(throttling, "nr_throttled"),
        throttled_ns=_total(throttling, "throttled_ns"),
        steal_ns=steal_ns,
        busy_ns=busy_ns,
    )


def read_idle_ns(root: Path = Path("/")) -> int | None:
    """Return the time in which the allowed CPUs had nothing to do, summed over CPUs; None where unknown.

    Args:
        root: As for `read_machine`.

    Raises:
        MachineError: As for `read_machine`.
    """
    tree = Tree(root)
    rows = _ticks(tree, allowed_cpus(tree, online_cpus(tree)))
    return None if rows is None else _nanoseconds(rows, _IDLE_COLUMNS)


def _throttling(tree: Tree) -> list[dict[str, int]]:
    """Return the counters of each group on the path; a group counts the throttling by its own quota only."""
    for chain in own_groups(tree, "cpu"):
        groups = [_cpu_stat(tree.text(f"{directory}/cpu.stat") or "") for directory in chain]
        if any("nr_throttled" in group for group in groups):
            return groups
    return []


def _cpu_stat(content: str) -> dict[str, int]:
    words = (line.split() for line in content.strip("\0").splitlines())
    stat = {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and _is_number(pair[1])}  # noqa: PLR2004 - name, value
    if "throttled_usec" in stat:
        stat["throttled_ns"] = stat["throttled_usec"] * 1000  # version 2
    elif "throttled_time" in stat:
        stat["throttled_ns"] = stat["throttled_time"]  # version 1 counts nanoseconds
    return stat


def _steal_and_busy_ns(tree: Tree, cpus: tuple[int, ...]) -> tuple[int | None, int | None]:
    rows = _ticks(tree, cpus)
    if rows is None:
        return None, None
    return _nanoseconds(rows, (_STEAL_COLUMN,)), _nanoseconds(rows, _BUSY_COLUMNS)


def _ticks(tree: Tree, cpus: tuple[int, ...]) -> list[list[int]] | None:
    """Return the columns of each CPU in /proc/stat; None where one is not there."""
    lines = [line.split() for line in (tree.text("proc/stat") or "").splitlines() if line.startswith("cpu")]
    ticks = {words[0]: [int(word) for word in words[1:]] for words in lines if all(map(_is_number, words[1:]))}
    # In containers with an emulated /proc, CPUs are renumbered and some of ours are absent.
    rows = [ticks.get(f"cpu{cpu}", []) for cpu in cpus]
    return None if any(len(row) <= _STEAL_COLUMN for row in rows) else rows


def _nanoseconds(rows: list[list[int]], columns: tuple[int, ...]) -> int:
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return sum(row[column] for row in rows for column in columns) * tick_ns


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 20  # noqa: PLR2004 - digits of 2**64


def _total(groups: list[dict[str, int]], name: str) -> int | None:
    values = [group[name] for group in groups if name in group]
    return sum(values) if values else None


def _growth(now: int | None, earlier: int | None) -> int | None:
    return None if now is None or earlier is None or now < earlier else now - earlier

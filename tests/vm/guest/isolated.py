"""Two sockets with a core (CPUs 3 and 7) that the kernel's scheduler keeps away from; control groups of version 1."""

import os
from functools import partial
from typing import Any

import msgspec

from pinstripe.errors import PlacementError
from pinstripe.machine import read_machine
from pinstripe.placement import Wish, place

from .confinement import in_child, join_group, mount_old_groups
from .processes import placed
from .wishes import FEW_SIZES, machine_and_placements, placements

__all__ = ["results"]


def results() -> dict[str, Any]:
    """Return all that is tried."""
    mount_old_groups()
    return {
        **machine_and_placements(),
        "bound_outside": _bound("3"),
        "widened": in_child(_widened),
        "only_isolated": in_child(_only_isolated),
        "confined": in_child(_confined),
        "quotas": {quota: in_child(partial(_within_quota, quota)) for quota in ("50000", "150000", "350000")},
        "nested_quota": in_child(_within_nested_quota),
    }


def _bound(bind: str) -> Any:
    try:
        return msgspec.to_builtins(place(read_machine(), Wish(bind=bind)))
    except PlacementError as error:
        return str(error)


def _widened() -> dict[str, Any]:
    """Allow all CPUs, the isolated ones too."""
    os.sched_setaffinity(0, range(8))
    return {**machine_and_placements(), "bound": _bound("3,7"), "process": placed(cpus=(3, 7))}


def _only_isolated() -> dict[str, Any]:
    os.sched_setaffinity(0, {3, 7})
    return {"placements": placements(read_machine(), [(1, None)])}


def _confined() -> dict[str, Any]:
    """Enter a group that has the memory of node 1 and the CPUs 0-2 and 5."""
    join_group("cpuset/job", {"cpuset.cpus": "0-2,5", "cpuset.mems": "1"})
    return {
        **machine_and_placements(),
        "bind_0": placed(nodes=(0,), memory_policy="bind"),
        "bind_1": placed(nodes=(1,), memory_policy="bind", cpus=(2,)),
        "outside": placed(cpus=(4,)),
    }


def _within_quota(quota: str) -> dict[str, Any]:
    join_group(f"cpu/quota-{quota}", {"cpu.cfs_quota_us": quota})
    machine = read_machine()
    return {"cpu_quota": machine.cpu_quota, "placements": placements(machine, FEW_SIZES)}


def _within_nested_quota() -> float | None:
    """Enter a group without a quota of its own, in one of 2.5 CPUs."""
    join_group("cpu/outer", {"cpu.cfs_quota_us": "250000"})
    join_group("cpu/outer/inner", {})
    return read_machine().cpu_quota

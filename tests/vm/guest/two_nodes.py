"""Two sockets, each a node of two cores with two hardware threads; control groups of version 2."""

from functools import partial
from typing import Any

import msgspec

from pinstripe.machine import read_machine

from .confinement import deny_memory_policies, in_child, join_group, leave_group, mount_groups
from .processes import placed
from .wishes import FEW_SIZES, machine_and_placements, placements
from .workers import pool_of, refusal_of, specs_of

__all__ = ["results"]


def results() -> dict[str, Any]:
    """Return all that is tried."""
    mount_groups()
    return {
        **machine_and_placements(),
        "processes": _processes(),
        "filtered": in_child(_filtered),
        "confined_memory": in_child(_confined_memory),
        "confined_machine": in_child(_confined_machine),
        "quotas": {quota: in_child(partial(_within_quota, quota)) for quota in ("50000", "150000", "350000")},
        "pool_within_quota": in_child(_pool_within_quota),
    }


def _processes() -> dict[str, Any]:
    return {
        "bind": placed(cpus=(2, 6), nodes=(1,), memory_policy="bind"),
        "bind_far": placed(cpus=(0,), nodes=(1,), memory_policy="bind"),
        "preferred_far": placed(cpus=(0, 4), nodes=(1,), memory_policy="preferred"),
        "preferred_both": placed(nodes=(0, 1), memory_policy="preferred"),
        "interleave": placed(nodes=(0, 1), memory_policy="interleave"),
        "local": placed(cpus=(3,), memory_policy="local"),
        "none": placed(cpus=(7,), memory_policy="none"),
        "auto_one": placed(cpus=(1, 5), nodes=(0,)),
        "auto_both": placed(cpus=(0, 2), nodes=(0, 1)),
        "absent": placed(nodes=(5,), memory_policy="bind"),
    }


def _filtered() -> dict[str, Any]:
    deny_memory_policies()
    return {
        "auto": placed(nodes=(1,)),
        "bind": placed(nodes=(1,), memory_policy="bind"),
        "pool_auto": pool_of(specs_of(instances=1, cores=1)),
        "pool_bind": refusal_of(instances=1, cores=1, memory_policy="bind"),
    }


def _confined_memory() -> dict[str, Any]:
    """Enter a group that has the memory of node 1 and the CPUs 2-3 and 6."""
    join_group("memory", {"cpuset.cpus": "2-3,6", "cpuset.mems": "1"})
    return {
        "bind_0": placed(nodes=(0,), memory_policy="bind"),
        "interleave_both": placed(nodes=(0, 1), memory_policy="interleave"),
        "auto_both": placed(nodes=(0, 1)),
        "bind_1": placed(nodes=(1,), memory_policy="bind", cpus=(2, 6)),
        "partly_outside": placed(cpus=(1, 2)),
        "outside": placed(cpus=(0, 1)),
        "pool": pool_of(specs_of(instances=2)),
    }


def _confined_machine() -> Any:
    """Enter a group two levels deep: 3.5 CPUs' worth of time and CPUs 1-6 outside, 1.5 and CPUs 0-3 inside."""
    join_group("outer", {"cpuset.cpus": "1-6", "cpu.max": "350000 100000"})
    leave_group("outer", "+cpuset +cpu")
    join_group("outer/inner", {"cpuset.cpus": "0-3", "cpuset.mems": "0", "cpu.max": "150000 100000"})
    return msgspec.to_builtins(read_machine())


def _within_quota(quota: str) -> dict[str, Any]:
    join_group(f"quota-{quota}", {"cpu.max": f"{quota} 100000"})
    machine = read_machine()
    return {"cpu_quota": machine.cpu_quota, "placements": placements(machine, FEW_SIZES)}


def _pool_within_quota() -> Any:
    """Start one instance of all cores in a group of 1.5 CPUs' worth of time."""
    join_group("quota", {"cpu.max": "150000 100000"})
    return pool_of(specs_of())

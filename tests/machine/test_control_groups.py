"""Control groups of both versions: nested, in containers, with and without limits."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pinstripe.machine import read_machine

Grow = Callable[[Mapping[str, str]], Path]

V2 = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "33 31 0:30 {root} /sys/fs/cgroup/{name} rw,relatime - cgroup cgroup rw,{name}\n"
CGROUP = "sys/fs/cgroup"


def v2(path: str, root: str = "/") -> dict[str, str]:
    """Return membership and mount of a version-2 hierarchy."""
    return {"proc/self/cgroup": f"0::{path}\n", "proc/self/mountinfo": V2.format(root=root)}


def v1(path: str, root: str = "/", name: str = "cpu,cpuacct") -> dict[str, str]:
    """Return membership and mount of a version-1 hierarchy."""
    membership = f"4:{name}:{path}\n1:name=systemd:/init.scope\n"
    return {"proc/self/cgroup": membership, "proc/self/mountinfo": V1.format(root=root, name=name)}


@pytest.mark.parametrize(
    ("cpu_max", "quota"),
    [
        ("200000 100000\n", 2.0),
        ("150000 100000\n", 1.5),
        ("5000 20000\n", 0.25),
        ("max 100000\n", None),
        ("200000 0\n", None),
        ("lots\n", None),
        ("\0\0", None),
        ("", None),
    ],
)
def test_quota_of_version_2(grow: Grow, four_cpus: dict[str, str], cpu_max: str, quota: float | None) -> None:
    """A quota may be fractional and below one CPU; `max`, nothing and nonsense are no limit."""
    root = grow(four_cpus | v2("/job") | {f"{CGROUP}/job/cpu.max": cpu_max})
    assert read_machine(root).cpu_quota == quota


@pytest.mark.parametrize(
    ("quota_us", "period_us", "quota"),
    [("250000\n", "100000\n", 2.5), ("-1\n", "100000\n", None), ("250000\n", "nan\n", None)],
)
def test_quota_of_version_1(
    grow: Grow, four_cpus: dict[str, str], quota_us: str, period_us: str, quota: float | None
) -> None:
    """Version 1 says quota and period in two files, and -1 without limit."""
    group = f"{CGROUP}/cpu,cpuacct/job"
    limits = {f"{group}/cpu.cfs_quota_us": quota_us, f"{group}/cpu.cfs_period_us": period_us}
    assert read_machine(grow(four_cpus | v1("/job") | limits)).cpu_quota == quota


def test_no_control_groups(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Without control groups nothing is limited."""
    machine = read_machine(grow(four_cpus))
    assert machine.cpu_quota is None
    assert machine.allowed == (0, 1, 2, 3)


@pytest.mark.parametrize("tightest", ["", "/pod", "/pod/container"])
def test_tightest_quota_on_the_path(grow: Grow, four_cpus: dict[str, str], tightest: str) -> None:
    """The limit of any ancestor counts, up to and including the root of the mount, but none beside the path."""
    quotas = dict.fromkeys(["", "/pod", "/pod/container"], "400000 100000") | {tightest: "130000 100000"}
    files = {f"{CGROUP}{group}/cpu.max": quota for group, quota in quotas.items()}
    beside = {f"{CGROUP}/other/cpu.max": "10000 100000", f"{CGROUP}/pod/container/below/cpu.max": "10000 100000"}
    assert read_machine(grow(four_cpus | v2("/pod/container") | files | beside)).cpu_quota == 1.3


def test_tightest_quota_of_version_1(grow: Grow, four_cpus: dict[str, str]) -> None:
    """A version-1 parent that is tighter than its unlimited child counts."""
    top = f"{CGROUP}/cpu,cpuacct/kube"
    limits = {f"{top}/cpu.cfs_quota_us": "300000", f"{top}/cpu.cfs_period_us": "100000"}
    limits |= {f"{top}/pod/cpu.cfs_quota_us": "-1", f"{top}/pod/cpu.cfs_period_us": "100000"}
    assert read_machine(grow(four_cpus | v1("/kube/pod") | limits)).cpu_quota == 3.0


def test_container_that_sees_host_paths(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Docker on version 1: the path is the host's, the mount starts at the container's own group."""
    mount = f"{CGROUP}/cpu,cpuacct"
    limits = {f"{mount}/cpu.cfs_quota_us": "150000", f"{mount}/cpu.cfs_period_us": "100000"}
    nested = {f"{mount}/sub/cpu.cfs_quota_us": "50000", f"{mount}/sub/cpu.cfs_period_us": "100000"}
    root = grow(four_cpus | v1("/docker/0ab1", root="/docker/0ab1") | limits | nested)
    assert read_machine(root).cpu_quota == 1.5
    (root / "proc/self/cgroup").write_text("4:cpu,cpuacct:/docker/0ab1/sub\n")
    assert read_machine(root).cpu_quota == 0.5


@pytest.mark.parametrize("path", ["/kubepods/burstable/pod7/9f", "/../..", "/"])
def test_container_whose_path_is_not_visible(grow: Grow, four_cpus: dict[str, str], path: str) -> None:
    """A path that is not below the mount, or outside of the namespace, means the root of the mount."""
    beside_the_mount = {"sys/cpu.max": "10000 100000"}
    root = grow(four_cpus | v2(path) | {f"{CGROUP}/cpu.max": "100000 100000"} | beside_the_mount)
    assert read_machine(root).cpu_quota == 1.0


def test_mount_of_other_groups_is_ignored(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Of several mounts those that show this process' group count."""
    other = "41 31 0:26 /docker/other /mnt/other rw - cgroup2 cgroup2 rw\n"
    files = v2("/docker/mine", root="/docker/mine")
    files["proc/self/mountinfo"] = other + files["proc/self/mountinfo"]
    limits = {"mnt/other/cpu.max": "10000 100000", f"{CGROUP}/cpu.max": "300000 100000"}
    assert read_machine(grow(four_cpus | files | limits)).cpu_quota == 3.0


def test_mount_point_with_a_space(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Mount points are escaped in the mount table."""
    files = {"proc/self/cgroup": "0::/\n", "proc/self/mounts": "none /my\\040groups cgroup2 rw 0 0\n"}
    assert read_machine(grow(four_cpus | files | {"my groups/cpu.max": "1000 2000"})).cpu_quota == 0.5


def test_hybrid_of_both_versions(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Where version 2 is mounted beside version 1 without controllers, the limits are in version 1."""
    files = v1("/job")
    files["proc/self/cgroup"] += "0::/user.slice\n"
    files["proc/self/mountinfo"] += "31 31 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    group = f"{CGROUP}/cpu,cpuacct/job"
    limits = {f"{group}/cpu.cfs_quota_us": "100000", f"{group}/cpu.cfs_period_us": "100000"}
    empty = {f"{CGROUP}/unified/user.slice/cgroup.procs": ""}
    assert read_machine(grow(four_cpus | files | limits | empty)).cpu_quota == 1.0


def test_hidden_path_beside_a_visible_one(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Docker on a hybrid host: the version-2 path is visible, the version-1 path is not, and still limits."""
    files = v1("/docker/0ab1", root="/kubepods/0ab1")
    files["proc/self/cgroup"] += "0::/\n"
    files["proc/self/mountinfo"] += "31 31 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    mount = f"{CGROUP}/cpu,cpuacct"
    limits = {f"{mount}/cpu.cfs_quota_us": "100000", f"{mount}/cpu.cfs_period_us": "100000"}
    empty = {f"{CGROUP}/unified/cgroup.procs": ""}
    assert read_machine(grow(four_cpus | files | limits | empty)).cpu_quota == 1.0


def test_usual_places_without_a_mount_table(grow: Grow, four_cpus: dict[str, str]) -> None:
    """A copy without a mount table is read at the usual places."""
    files = {"proc/self/cgroup": "0::/job\n", f"{CGROUP}/job/cpu.max": "100000 50000"}
    assert read_machine(grow(four_cpus | files)).cpu_quota == 2.0


NODES = {
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/node/node1/cpulist": "2-3\n",
}


@pytest.mark.parametrize(
    ("files", "allowed", "nodes"),
    [
        pytest.param(
            v2("/job") | {f"{CGROUP}/job/cpuset.cpus.effective": "1-2", f"{CGROUP}/job/cpuset.mems.effective": "1"},
            (1, 2),
            (1,),
            id="version 2",
        ),
        pytest.param(
            v2("/pod/job")
            | {f"{CGROUP}/pod/job/cgroup.procs": "", f"{CGROUP}/pod/cpuset.cpus.effective": "3\n"}
            | {f"{CGROUP}/cpuset.cpus.effective": "0-3\n"},
            (3,),
            (0, 1),
            id="version 2, set on the parent only",
        ),
        pytest.param(
            v1("/job", name="cpuset")
            | {f"{CGROUP}/cpuset/job/cpuset.cpus": "0,2-9\n\0", f"{CGROUP}/cpuset/job/cpuset.mems": "0\n\0"},
            (0, 2, 3),
            (0,),
            id="version 1, with offline CPUs and NUL bytes",
        ),
        pytest.param(
            {"proc/self/cpuset": "/job\n", "proc/mounts": "none /dev/cpuset cpuset rw 0 0\n"}
            | {"dev/cpuset/job/cpus": "0-1\n", "dev/cpuset/job/mems": "0\n"},
            (0, 1),
            (0,),
            id="cpuset file system",
        ),
        pytest.param(
            {"proc/self/cpuset": "/\n", "proc/mounts": "cpuset /dev/cpuset cgroup rw,cpuset,noprefix 0 0\n"}
            | {"dev/cpuset/cpus": "2\n"},
            (2,),
            (0, 1),
            id="noprefix",
        ),
        pytest.param(
            v2("/job") | {f"{CGROUP}/job/cpuset.cpus.effective": "all of them"},
            (0, 1, 2, 3),
            (0, 1),
            id="malformed",
        ),
        pytest.param(
            {"proc/self/status": "Name:\tcat\nCpus_allowed_list:\t1,3\nMems_allowed_list:\t0\n"},
            (1, 3),
            (0,),
            id="affinity of a copied process",
        ),
        pytest.param(
            v2("/job")
            | {f"{CGROUP}/job/cpuset.cpus.effective": "1-2", "proc/self/status": "Cpus_allowed_list:\t2-3\n"},
            (2,),
            (0, 1),
            id="both",
        ),
    ],
)
def test_allowed(
    grow: Grow, four_cpus: dict[str, str], files: dict[str, str], allowed: tuple[int, ...], nodes: tuple[int, ...]
) -> None:
    """Allowed are the online CPUs within affinity and cpuset, and the cpuset's memory nodes."""
    machine = read_machine(grow(four_cpus | NODES | files))
    assert machine.allowed == allowed
    assert machine.allowed_nodes == nodes
    assert machine.online == (0, 1, 2, 3)

"""The control groups this process is in: version 1 and 2, nested, and inside containers.

A path in `/proc/self/cgroup` counts from the root of the hierarchy, a mount shows the hierarchy from some group on
(its root in `/proc/self/mountinfo`), and in a container the two need not match. See cgroup_namespaces(7), and
`Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/` of the kernel.
"""

import re
from typing import NamedTuple

from pinstripe.machine.tree import Tree

__all__ = ["cpu_quota", "cpuset", "own_groups"]

# The names of a cpuset's limit. In version 2 the effective one counts; in version 1 the kernel keeps the configured one
# within the parents' and online. Last the name with the mount option `noprefix` and in the older `cpuset` file system.
_CPUSET_FILES = ("cpuset.{}.effective", "cpuset.{}", "{}")


class _Mount(NamedTuple):
    kind: str  # cgroup (version 1), cgroup2, or the older cpuset
    point: str
    root: str
    options: frozenset[str]


def own_groups(tree: Tree, controller: str) -> list[list[str]]:
    """Return the directories of this process' groups, from its own up to the root of the mount.

    Args:
        tree: Where to read.
        controller: `cpu` or `cpuset`.

    Returns:
        One list for each mount that may have the controller (in hybrid set-ups both versions are mounted). Groups that
        are not visible below the mount are left out; the root of the mount is always there. Mounts of other groups
        count only where no mount of that kind shows the process' own.
    """
    paths = _paths(tree, controller)
    mounts = [mount for mount in _mounts(tree) if mount.kind in paths and _may_have(mount, controller)]
    showing = {mount.kind for mount in mounts if _is_within(paths[mount.kind], mount.root)}
    chains = (
        _chain(tree, mount, paths[mount.kind])
        for mount in mounts
        if mount.kind not in showing or _is_within(paths[mount.kind], mount.root)
    )
    return [chain for chain in chains if chain]


def cpu_quota(tree: Tree) -> float | None:
    """Return the CPUs' worth of time that control groups grant, the tightest limit on the path; None without one."""
    directories = [directory for chain in own_groups(tree, "cpu") for directory in chain]
    quotas = [quota for directory in directories if (quota := _quota_of(tree, directory)) is not None]
    return min(quotas, default=None)


def cpuset(tree: Tree, what: str) -> frozenset[int] | None:
    """Return the CPUs (`what` is `cpus`) or memory nodes (`mems`) of the cpuset; None where there is no limit."""
    limit: frozenset[int] | None = None
    for chain in own_groups(tree, "cpuset"):
        # A group without a list of its own has its parent's.
        lists = (tree.cpu_list(f"{directory}/{name.format(what)}") for directory in chain for name in _CPUSET_FILES)
        numbers = next((frozenset(numbers) for numbers in lists if numbers), None)
        if numbers is not None:
            limit = numbers if limit is None else limit & numbers
    return limit


def _quota_of(tree: Tree, directory: str) -> float | None:
    both = tree.text(f"{directory}/cpu.max")
    if both is None:
        quota, period = tree.text(f"{directory}/cpu.cfs_quota_us"), tree.text(f"{directory}/cpu.cfs_period_us")
        both = f"{quota} {period}"
    # Neither `max` nor -1, the two ways to say "no limit", matches.
    match = re.fullmatch(r"\s*(\d{1,18})\s+(\d{1,18})[\s\0]*", both, re.ASCII)
    if match is None or not int(match[1]) or not int(match[2]):
        return None
    return int(match[1]) / int(match[2])


def _paths(tree: Tree, controller: str) -> dict[str, str]:
    """Return the path of the process' group in each kind of hierarchy that has the controller."""
    paths: dict[str, str] = {}
    membership = tree.text("proc/self/cgroup")
    for line in (membership or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            paths["cgroup2"] = path
        elif controller in controllers.split(","):
            paths["cgroup"] = paths["cpuset"] = path
    if not paths:
        # Kernels before control groups, and incomplete copies, have the cpuset's path only.
        path = (tree.text("proc/self/cpuset") or "").strip("\0\n") if controller == "cpuset" else ""
        paths = dict.fromkeys(("cgroup2", "cgroup", "cpuset"), path or "/")
    return paths


def _mounts(tree: Tree) -> list[_Mount]:
    table = tree.text("proc/self/mountinfo")
    read = _mount_of_mountinfo
    if table is None:
        table = tree.text("proc/self/mounts") or tree.text("proc/mounts") or ""
        read = _mount_of_mounts
    mounts = [mount for line in table.splitlines() if (mount := read(line)) is not None]
    return mounts or [
        # Where copies without a mount table, and every systemd, have them.
        _Mount("cgroup2", "/sys/fs/cgroup", "/", frozenset()),
        *(_Mount("cgroup", f"/sys/fs/cgroup/{name}", "/", frozenset({name})) for name in ("cpu", "cpuset")),
    ]


def _mount_of_mountinfo(line: str) -> _Mount | None:
    before, _, after = line.partition(" - ")
    fields, kind, options = before.split(" "), after.partition(" ")[0], after.rpartition(" ")[2]
    return _mount(kind, fields[4], fields[3], options) if len(fields) > 5 else None  # noqa: PLR2004 - proc(5)


def _mount_of_mounts(line: str) -> _Mount | None:
    fields = line.split(" ")
    return _mount(fields[2], fields[1], "/", fields[3]) if len(fields) > 3 else None  # noqa: PLR2004 - fstab(5)


def _mount(kind: str, point: str, root: str, options: str) -> _Mount | None:
    if kind not in {"cgroup", "cgroup2", "cpuset"}:
        return None
    return _Mount(kind, _unescaped(point), _unescaped(root), frozenset(options.split(",")))


def _unescaped(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _may_have(mount: _Mount, controller: str) -> bool:
    return controller in mount.options if mount.kind == "cgroup" else mount.kind in {"cgroup2", controller}


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _chain(tree: Tree, mount: _Mount, path: str) -> list[str]:
    inside = path.removeprefix(mount.root.rstrip("/")) if _is_within(path, mount.root) else ""
    parts = [part for part in inside.split("/") if part]
    if ".." in parts:  # a group outside of the namespace
        parts = []
    point = mount.point.strip("/")
    directories = ["/".join([point, *parts[:depth]]) for depth in range(len(parts), -1, -1)]
    return [directory for directory in directories if tree.is_directory(directory)]

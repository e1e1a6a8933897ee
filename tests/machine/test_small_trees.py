"""Odd, incomplete and broken machines, written by hand."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pinstripe.errors import MachineError
from pinstripe.machine import Node, read_counters, read_machine

Grow = Callable[[Mapping[str, str]], Path]

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


def test_a_bare_cpu_directory_is_a_machine(grow: Grow) -> None:
    """With nothing but CPU directories each CPU is a core, and what the kernel does not say is unknown."""
    machine = read_machine(grow({f"{CPU}/cpu{cpu}/uevent": "" for cpu in (0, 2)}))
    assert machine.online == machine.allowed == (0, 2)
    assert [(core.cpus, core.package, core.l3, core.kind) for core in machine.cores] == [
        ((0,), None, None, "performance"),
        ((2,), None, None, "performance"),
    ]
    assert (machine.packages, machine.l3, machine.isolated, machine.isa) == ((), (), (), ())
    assert machine.nodes == (Node(id=0, cpus=(0, 2), memory_bytes=0),)
    assert (machine.cpu_quota, machine.model_name, machine.thp, machine.smt) == (None, None, None, None)


def test_offline_without_a_list(grow: Grow) -> None:
    """Without the list of online CPUs, those that say so of themselves are offline."""
    files = {f"{CPU}/cpu0/uevent": "", f"{CPU}/cpu1/online": "0\n", f"{CPU}/cpu2/online": "1\n"}
    assert read_machine(grow(files)).online == (0, 2)


def test_nul_bytes_everywhere(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Files that end with NUL bytes are read like others."""
    files = four_cpus | {f"{CPU}/isolated": "2-3\n", f"{CPU}/smt/control": "on\n", f"{NODE}/node0/cpulist": "0-3\n"}
    plain = read_machine(grow(files))
    padded = read_machine(grow({path: content + "\0" for path, content in files.items()}))
    assert padded == plain
    assert [core.cpus for core in padded.cores] == [(0, 2), (1, 3)]
    assert padded.isolated == (2, 3)


def test_malformed_optional_files_are_unknown(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Nonsense in any optional file makes only what it says unknown."""
    nonsense = "\ufffd;;- nonsense\n"
    cache = {f"{CPU}/cpu{cpu}/cache/index3/level": "3" for cpu in range(4)}
    cache |= {f"{CPU}/cpu{cpu}/cache/index3/shared_cpu_list": nonsense for cpu in range(4)}
    names = ["cpu_capacity", "acpi_cppc/highest_perf", "cpufreq/base_frequency", "topology/core_siblings_list"]
    files = {f"{CPU}/cpu{cpu}/{name}": nonsense for cpu in range(4) for name in names} | cache
    files |= {f"{NODE}/node0/{name}": nonsense for name in ("cpulist", "cpumap", "distance", "meminfo")}
    proc = ("cpuinfo", "meminfo", "mounts", "stat", "self/cgroup", "self/mountinfo", "self/status", "self/cpuset")
    files |= {f"proc/{name}": nonsense for name in proc}
    files |= {f"{CPU}/{name}": nonsense for name in ("isolated", "smt/control")}
    files |= {"sys/kernel/mm/transparent_hugepage/enabled": nonsense, "sys/devices/cpu_atom/cpus": nonsense}
    machine = read_machine(grow(four_cpus | files))
    assert machine.online == machine.allowed == (0, 1, 2, 3)
    assert [core.cpus for core in machine.cores] == [(0, 2), (1, 3)]
    assert (machine.packages, machine.l3, machine.nodes, machine.allowed_nodes, machine.isa) == ((), (), (), (), ())
    assert {(core.package, core.node, core.l3, core.kind) for core in machine.cores} == {
        (None, None, None, "performance")
    }
    assert read_counters(grow({})).busy_ns is None


def test_nodes_of_every_sort(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Sparse ids, a node without memory, memory without CPUs, an overlapping node and a CPU without a node."""
    files = {
        f"{NODE}/node0/cpulist": "0,2\n",
        f"{NODE}/node0/meminfo": "Node 0 MemTotal:              0 kB\n",
        f"{NODE}/node0/distance": "10 20 17 10\n",
        f"{NODE}/node4/cpulist": "1\n",
        f"{NODE}/node4/meminfo": "Node 4 MemTotal:        2048 kB\nNode 4 MemFree:  7 kB\n",
        f"{NODE}/node4/distance": "20 10 28 20\n",
        f"{NODE}/node8/cpulist": "\n",
        f"{NODE}/node8/meminfo": "Node 8 MemTotal:        4096 kB\n",
        f"{NODE}/node8/distance": "17 28 10 17\n",
        f"{NODE}/node9/cpulist": "0,2\n",
        f"{NODE}/node9/distance": "10 20 17 10\n",
        f"{NODE}/has_memory": "4,8\n",
    }
    machine = read_machine(grow(four_cpus | files))
    assert machine.nodes == (
        Node(id=0, cpus=(0, 2), memory_bytes=0, neighbours=(8, 4)),
        Node(id=4, cpus=(1,), memory_bytes=2 << 20, neighbours=(0, 8)),
        Node(id=8, cpus=(0, 2), memory_bytes=4 << 20, neighbours=(0, 4)),
    )
    assert machine.allowed_nodes == (4, 8)
    assert [core.node for core in machine.cores] == [0, 4]


def test_memory_is_near_its_initiators(grow: Grow, four_cpus: dict[str, str]) -> None:
    """Memory without CPUs is near the CPUs of its initiators, of class 1 before class 0, whatever the distances."""
    files = {f"{NODE}/node{node}/cpulist": cpus for node, cpus in enumerate(["0,2", "1,3", "", ""])}
    files |= {f"{NODE}/node{node}/cpumap": "0" for node in (2, 3)}
    files |= {f"{NODE}/node{node}/distance": "11 12 10 20" for node in (2, 3)}
    files |= {f"{NODE}/node{node}/access0/initiators/node0/uevent": "" for node in (2, 3)}
    files |= {f"{NODE}/node2/access1/initiators/node1/uevent": ""}
    assert [node.cpus for node in read_machine(grow(four_cpus | files)).nodes] == [(0, 2), (1, 3), (1, 3), (0, 2)]


def test_memory_of_gpus_is_no_node(grow: Grow, four_cpus: dict[str, str]) -> None:
    """A node that is a GPU's memory is left out, but never one that has CPUs."""
    files = {f"{NODE}/node{node}/cpulist": cpus for node, cpus in enumerate(["0-1", "2-3", "\n"])}
    files |= {f"proc/driver/nvidia/gpus/{gpu}/numa_status": f"Node:      {gpu}\nStatus: online\n" for gpu in (1, 2)}
    assert [node.id for node in read_machine(grow(four_cpus | files)).nodes] == [0, 1]


def test_kernel_without_numa(grow: Grow, four_cpus: dict[str, str]) -> None:
    """A kernel without NUMA has one node with all CPUs and all memory."""
    machine = read_machine(grow(four_cpus | {"proc/meminfo": "MemTotal:        8192 kB\nMemFree:  1 kB\n"}))
    assert machine.nodes == (Node(id=0, cpus=(0, 1, 2, 3), memory_bytes=8 << 20),)
    assert {core.node for core in machine.cores} == {0}


@pytest.mark.parametrize(
    ("file", "values", "efficient"),
    [
        ("cpu_capacity", ["1024", "446"], True),
        ("cpu_capacity", ["1024", "981"], False),
        ("acpi_cppc/highest_perf", ["67", "39"], True),
        ("acpi_cppc/highest_perf", ["231", "226"], False),
        ("cpufreq/base_frequency", ["1900000", "1400000"], True),
        ("cpufreq/base_frequency", ["1900000", "0"], False),
    ],
)
def test_kinds_by_speed(
    grow: Grow, four_cpus: dict[str, str], file: str, values: list[str], *, efficient: bool
) -> None:
    """The cores of CPU 0 and 1 are of two kinds where their speeds differ by more than bins of equal cores do."""
    files = {f"{CPU}/cpu{cpu}/{file}": values[cpu % 2] for cpu in range(4)}
    kinds = [core.kind for core in read_machine(grow(four_cpus | files)).cores]
    assert kinds == ["performance", "efficiency" if efficient else "performance"]


def test_kinds_by_counters(grow: Grow, four_cpus: dict[str, str]) -> None:
    """The kernel's own lists of small cores count before speeds; cores that are all small are of one kind."""
    lists = {"sys/devices/cpu_core/cpus": "1,3", "sys/devices/cpu_lowpower/cpus": "0,2"}
    speeds = {f"{CPU}/cpu{cpu}/cpu_capacity": str(1024 - cpu % 2 * 600) for cpu in range(4)}
    root = grow(four_cpus | lists | speeds)
    assert [core.kind for core in read_machine(root).cores] == ["efficiency", "performance"]
    root = grow({"sys/devices/cpu_core/cpus": "", "sys/devices/cpu_atom/cpus": "0-3"})
    assert [core.kind for core in read_machine(root).cores] == ["performance", "performance"]


@pytest.mark.parametrize(
    ("control", "state"), [("forceoff\n", "forceoff"), ("notsupported\n", "notsupported"), ("4\n", "on"), ("?\n", None)]
)
def test_modes(grow: Grow, four_cpus: dict[str, str], control: str, state: str | None) -> None:
    """SMT state, huge-page mode and (online) isolated CPUs are read as the kernel words them."""
    files = {f"{CPU}/smt/control": control, f"{CPU}/isolated": "1,3,7\n"}
    files["sys/kernel/mm/transparent_hugepage/enabled"] = "always [madvise] never\n"
    machine = read_machine(grow(four_cpus | files))
    assert (machine.smt, machine.thp, machine.isolated) == (state, "madvise", (1, 3))


def test_l3_is_read_wherever_it_is(grow: Grow, four_cpus: dict[str, str]) -> None:
    """The level tells the cache, not its index; a core without one has none."""
    cache = f"{CPU}/cpu1/cache"
    files = {f"{cache}/index2/level": "3", f"{cache}/index2/shared_cpu_map": "a", f"{cache}/index3/level": "4"}
    machine = read_machine(grow(four_cpus | files))
    assert machine.l3 == ((1, 3),)
    assert [core.l3 for core in machine.cores] == [None, 0]


def error_of(root: Path) -> str:
    """Return the message of the error that reading gives, which must be one line."""
    with pytest.raises(MachineError) as raised:
        read_machine(root)
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_no_machine_there(tmp_path: Path) -> None:
    """A missing root, a file, and directories without CPUs are each said in one line."""
    file = tmp_path / "dump.tar.gz"
    file.touch()
    assert "dump.tar.gz does not exist or is not a directory" in error_of(file)
    assert "missing does not exist or is not a directory" in error_of(tmp_path / "missing")
    assert f"{CPU} does not exist" in error_of(tmp_path)
    (tmp_path / CPU / "cpufreq").mkdir(parents=True)
    assert "no CPU in it" in error_of(tmp_path)


def test_a_file_in_place_of_a_directory(grow: Grow) -> None:
    """A copy in which a directory became a file is said in one line."""
    assert "cannot be read: Not a directory" in error_of(grow({"sys": "devices"}))


def test_permission_denied(grow: Grow, four_cpus: dict[str, str]) -> None:
    """A root that this user may not read is said in one line."""
    root = grow(four_cpus)
    (root / CPU).chmod(0)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        assert "cannot be read: Permission denied" in error_of(root)
    finally:
        os.seteuid(user)
        (root / CPU).chmod(0o755)


@pytest.mark.parametrize(
    "content", ["banana", "0-99999999999", "3-0\n", "0;1", "1.5", "0-3,", "\ufffd;;- nonsense\n", "x" * 5000]
)
def test_a_malformed_list_of_online_cpus_is_refused(grow: Grow, four_cpus: dict[str, str], content: str) -> None:
    """It is not taken for all CPUs; the message names the file and a short part of what it holds."""
    said = error_of(grow(four_cpus | {f"{CPU}/online": content}))
    assert f"{CPU}/online" in said
    assert repr(content[:80]) in said
    assert len(said) < 500


@pytest.mark.parametrize("content", ["0-3", "0-3\n", "0-3\0", "0-3\n\0", "", "\n", "\0"])
def test_a_list_of_online_cpus_may_end_anyhow_or_be_blank(grow: Grow, four_cpus: dict[str, str], content: str) -> None:
    """A blank list, as in old kernels' copies, leaves it to the CPUs themselves."""
    assert read_machine(grow(four_cpus | {f"{CPU}/online": content})).online == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({f"{CPU}/online": "0-7\n"}, "lacks the online CPUs 4-7"),
        ({f"{CPU}/cpu3/topology/thread_siblings_list": "2-3\n"}, None),
        ({f"{CPU}/cpu1/topology/thread_siblings_list": "1-2\n"}, "contradict each other"),
        ({f"{CPU}/cpu0/topology/thread_siblings_list": "1\n"}, "contradict each other"),
        ({f"{CPU}/cpu0/topology/thread_siblings_list": "zero\n"}, "holds 'zero'"),
        ({"proc/self/status": "Cpus_allowed_list:\t8-9\n"}, "none is in 8-9"),
    ],
)
def test_contradictions(grow: Grow, four_cpus: dict[str, str], files: dict[str, str], message: str | None) -> None:
    """What would put work on wrong cores is an error; a list that another CPU of the core already gave is not read."""
    root = grow(four_cpus | files)
    if message is None:
        assert [core.cpus for core in read_machine(root).cores] == [(0, 2), (1, 3)]
    else:
        assert message in error_of(root)

"""Each finding about cores, limits and nodes: there when it should be, and otherwise not."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pinstripe.diagnosis import Finding
from pinstripe.machine import Counters, Machine, Node
from pinstripe.testing.machines import c5_metal, container_2cpu, epyc_7742_nps4, hybrid_1370p, uniform

Look = Callable[..., dict[str, Finding]]


def counters(**known: int) -> Counters:
    """Return counters of which only some are known."""
    return Counters(**{name: known.get(name) for name in Counters.__struct_fields__})


def test_quiet_machine_has_nothing_wrong(look: Look) -> None:
    """4 plain cores with everything allowed: nothing but good."""
    assert {finding.severity for finding in look().values()} == {"good"}


@pytest.mark.parametrize(
    ("quota", "severity"),
    [
        (None, "good"),
        (8.0, "good"),
        (9.5, "good"),
        # 8 CPUs of 4 cores: libraries that count cores are within 4, those that count CPUs are not.
        (7.0, "warning"),
        (4.0, "warning"),
        (3.9, "problem"),
        (2.0, "problem"),
        (0.5, "problem"),
    ],
)
def test_quota(look: Look, quota: float | None, severity: str) -> None:
    """A quota is a problem below the cores, a warning below the CPUs, and nothing above."""
    assert look(replace(container_2cpu(), cpu_quota=quota))["cpu-quota"].severity == severity


def test_quota_says_how_many_threads(look: Look) -> None:
    """A container with 2.5 CPUs on 8 can run 2 threads; with half a CPU it is still 1."""
    remedies = [look(replace(container_2cpu(), cpu_quota=q))["cpu-quota"].remedy or "" for q in (2.5, 0.5)]
    assert [text.partition(";")[0] for text in remedies] == ["OMP_NUM_THREADS=2", "OMP_NUM_THREADS=1"]


@pytest.mark.parametrize(
    ("quota", "severity"), [(None, None), (2.0, None), (2.5, "note"), (0.5, "problem"), (1.0, None), (8.5, None)]
)
def test_fractional_quota(look: Look, quota: float | None, severity: str | None) -> None:
    """A part of a CPU is left over, or stops even one thread; not where the quota does not bind (8 CPUs)."""
    found = look(replace(container_2cpu(), cpu_quota=quota)).get("fractional-quota")
    assert (found and found.severity) == severity


@pytest.mark.parametrize(
    ("periods", "stopped", "severity"),
    [(1000, 0, None), (1000, 5, None), (1000, 50, "warning"), (1000, 500, "problem"), (0, 0, None)],
)
def test_throttled(look: Look, periods: int, stopped: int, severity: str | None) -> None:
    """What the quota has stopped so far counts: from 1 % of the periods on a warning, from 10 % a problem."""
    found = look(counters=counters(nr_periods=periods, nr_throttled=stopped)).get("throttled")
    assert (found and found.severity) == severity


def test_affinity(look: Look) -> None:
    """A process with 2 of 4 CPUs is told; whole cores are not shared with anybody."""
    found = look(replace(uniform(), allowed=(0, 1)))
    assert found["affinity"].severity == "note"
    assert found["affinity"].title == "2 of the machine's 4 CPUs are ours"
    assert "shared-cores" not in found


def test_shared_cores(look: Look) -> None:
    """With CPUs 0-2 of cores 0,4 and 1,5 and 2,6 the siblings 4-6 belong to others."""
    found = look(replace(uniform(smt=2), allowed=(0, 1, 2)))
    assert found["shared-cores"].seen == "not ours are their siblings, CPUs 4-6"
    assert "smt" not in found


@pytest.mark.parametrize(("isolated", "severity"), [((), None), ((2, 3), "warning"), ((0, 1, 2, 3), "problem")])
def test_isolated(look: Look, isolated: tuple[int, ...], severity: str | None) -> None:
    """Isolated CPUs among ours warn; nothing but isolated ones is a problem."""
    found = look(replace(uniform(), isolated=isolated)).get("isolated")
    assert (found and found.severity) == severity


def test_isolated_elsewhere(look: Look) -> None:
    """Isolated CPUs that are not ours do not matter."""
    assert "isolated" not in look(replace(uniform(), isolated=(3,), allowed=(0, 1, 2)))


@pytest.mark.parametrize(
    ("machine", "command"),
    [
        # Adjacent numbering: the first CPUs of 4 cores are 0, 2, 4, 6, of which the quota of 2 lets two run.
        (container_2cpu(), "OMP_NUM_THREADS=2 taskset -c 0,2 COMMAND"),
        # One process fits into one node: 24 cores, the first threads of node 0.
        (c5_metal(), "OMP_NUM_THREADS=24 taskset -c 0-23 COMMAND"),
        # On a hybrid the fast cores alone: 6 with CPUs 0-11.
        (hybrid_1370p(), "OMP_NUM_THREADS=6 taskset -c 0,2,4,6,8,10 COMMAND"),
    ],
)
def test_smt(look: Look, machine: Machine, command: str) -> None:
    """Where cores have siblings, the remedy is one thread a core, on cores that go together."""
    finding = look(machine)["smt"]
    assert finding.severity == "warning"
    assert command in (finding.remedy or "")


def test_hybrid(look: Look) -> None:
    """6 performance and 8 efficiency cores are named; with one kind alone there is nothing to say."""
    assert look(hybrid_1370p())["hybrid"].seen == "performance CPUs 0-11; efficiency CPUs 12-19"
    assert "hybrid" not in look(replace(hybrid_1370p(), allowed=tuple(range(12))))


@pytest.mark.parametrize(
    ("offline", "smt", "severity"), [((), "on", None), ((4, 5), "on", "note"), ((4, 5), "off", "good")]
)
def test_offline(look: Look, offline: tuple[int, ...], smt: str, severity: str | None) -> None:
    """Switched-off CPUs are said, unless it is SMT that is switched off."""
    found = look(replace(uniform(), smt=smt), offline=offline).get("offline")
    assert (found and found.severity) == severity


@pytest.mark.parametrize(
    ("flags", "severity", "seen"),
    [
        ("", None, None),
        ("sse2", "problem", "none of note"),
        ("avx2 sse2", "note", "AVX2"),
        ("avx2 avx_vnni sse2", "good", "AVX2, VNNI"),
        ("avx2 avx512f avx512_vnni sse2", "good", "AVX2, AVX-512, VNNI"),
        ("amx_bf16 amx_int8 amx_tile avx2 avx512f avx512_bf16 avx512_vnni sse2", "good", None),
        ("asimd fp", "note", "NEON"),
        ("asimd asimddp bf16 i8mm sve", "good", "NEON, dot products, SVE, i8mm, bf16"),
        ("neon vfpv3", "problem", "NEON"),
    ],
)
def test_instruction_sets(look: Look, flags: str, severity: str | None, seen: str | None) -> None:
    """x86 without AVX2 and 32-bit Arm are problems; what int8 or bf16 needs is noted where it lacks."""
    found = look(replace(uniform(), isa=tuple(sorted(flags.split())))).get("instruction-sets")
    assert (found and found.severity) == severity
    if seen is not None:
        assert found is not None
        assert found.seen == seen


def test_virtual_machine(look: Look) -> None:
    """A guest without siblings may have half cores; one with siblings shows what it has."""
    flags = ("avx2", "avx_vnni", "hypervisor", "sse2")
    assert "half cores" in look(replace(uniform(), isa=flags))["virtual-machine"].title
    assert "half cores" not in look(replace(uniform(smt=2), isa=flags))["virtual-machine"].title
    assert "virtual-machine" not in look(replace(uniform(), isa=("sse2",)))


def test_nodes(look: Look) -> None:
    """Two sockets of 24 cores are two nodes; a process bound to one of them has one."""
    assert look(c5_metal())["nodes"].seen == "node 0: 24 cores; node 1: 24 cores"
    assert "launch --instances 2 --strategy node -- COMMAND" in (look(c5_metal())["nodes"].remedy or "")
    bound = replace(c5_metal(), allowed=tuple(range(24)))
    assert look(bound)["nodes"].severity == "good"


def with_nodes(**changes: Any) -> Machine:
    """Return a machine of 2 nodes with 2 cores each, changed."""
    return replace(uniform(nodes_per_package=2, cores_per_node=2), **changes)


def test_far_memory(look: Look) -> None:
    """Cores whose node is empty, or whose memory the cpuset refuses, are counted."""
    empty = Node(id=0, cpus=(0, 1), memory_bytes=0)
    assert look(with_nodes(nodes=(empty, with_nodes().nodes[1])))["far-memory"].seen == "no memory on node 0"
    refused = look(with_nodes(allowed_nodes=(1,)))["far-memory"]
    assert refused.title == "2 cores of ours without memory of their own"
    assert "--cpuset-mems 0-1" in (refused.remedy or "")
    assert "far-memory" not in look(with_nodes())
    assert "far-memory" not in look(with_nodes(allowed_nodes=(1,), allowed=(2, 3)))


def test_cores_without_a_known_node(look: Look) -> None:
    """They are not near to the memory that the others are near to; where nothing is known, nothing is said."""
    machine = with_nodes()
    lost = tuple(replace(core, node=None) if core.cpus < (2,) else core for core in machine.cores)
    found = look(replace(machine, cores=lost, nodes=machine.nodes[1:], allowed_nodes=(1,)))
    assert "nodes" not in found
    assert found["far-memory"].title == "2 cores of ours without memory of their own"
    assert found["far-memory"].seen == "no node is known for CPUs 0-1"
    assert look(replace(machine, cores=lost, allowed=(2, 3)))["nodes"].severity == "good"

    all_lost = tuple(replace(core, node=None) for core in machine.cores)
    assert not {"nodes", "far-memory"} & look(replace(machine, cores=all_lost, nodes=(), allowed_nodes=())).keys()


def test_several_nodes_and_an_unknown_one(look: Look) -> None:
    """All are counted."""
    machine = uniform(nodes_per_package=3, cores_per_node=2)
    lost = tuple(replace(core, node=None) if core.node == 2 else core for core in machine.cores)
    assert (
        look(replace(machine, cores=lost))["nodes"].seen == "node 0: 2 cores; node 1: 2 cores; no known node: 2 cores"
    )


def test_memory_on_nodes_without_cores_alone(look: Look) -> None:
    """Nobody is told to prefer cores that do not exist."""
    empty = tuple(replace(node, memory_bytes=0) for node in with_nodes().nodes)
    extra = Node(id=7, cpus=(0, 1), memory_bytes=1 << 34)
    found = look(with_nodes(nodes=(*empty, extra), allowed_nodes=(0, 1, 7)))["far-memory"]
    assert "no choice among our cores helps" in (found.remedy or "")
    half = look(with_nodes(nodes=(empty[0], with_nodes().nodes[1], extra), allowed_nodes=(0, 1, 7)))["far-memory"]
    assert "prefer cores on nodes with memory" in (half.remedy or "")


def test_unknown_memory_is_not_far(look: Look) -> None:
    """A copy that says nothing of memory is not a machine without any."""
    nodes = tuple(replace(node, memory_bytes=0) for node in with_nodes().nodes)
    assert "far-memory" not in look(with_nodes(nodes=nodes))


def test_memory_only_nodes(look: Look) -> None:
    """Memory without cores is noted where we may use it."""
    extra = Node(id=7, cpus=(0, 1), memory_bytes=1 << 34)
    nodes = (*with_nodes().nodes, extra)
    assert look(with_nodes(nodes=nodes, allowed_nodes=(0, 1, 7)))["memory-only-nodes"].seen == "node 7"
    assert "memory-only-nodes" not in look(with_nodes(nodes=nodes, allowed_nodes=(0, 1)))


def test_caches(look: Look) -> None:
    """An EPYC 7742 has 4 caches in each of its nodes (NPS4); a Xeon has one."""
    assert look(epyc_7742_nps4())["caches"].title == "4 level-3 caches in one NUMA node"
    assert "caches" not in look(c5_metal())


def test_order(look: Look) -> None:
    """Problems come before warnings, notes and what is good."""
    machine = replace(container_2cpu(), thp="never")
    order = [finding.severity for finding in look(machine).values()]
    assert order == sorted(order, key=["problem", "warning", "note", "good"].index)
    assert order[0] == "problem"
    assert set(order) == {"problem", "warning", "note", "good"}

"""Knobs that placement and the start answer: hardware threads and memory policy."""

import pytest

from pinstripe.engines import EngineReport, engine
from pinstripe.knobs import Context, Host, Seen, knob, knob_effects
from pinstripe.machine import Machine
from pinstripe.runtime import MemoryPolicyEffect, ProcessEvidence, ProcessObservation
from pinstripe.testing.machines import c5_metal, uniform

_PROCESS = ProcessEvidence(
    pid=1,
    threads=(),
    threading_libraries=(),
    allocators=(),
    node_memory=None,
    rss_bytes=0,
    pss_bytes=None,
    anonymous_huge_bytes=None,
    thp_enabled=None,
    voluntary_switches=None,
    involuntary_switches=None,
    unread={},
)


def _seen(machine: Machine, cpus: tuple[int, ...] | None, policy: str = "none") -> Seen:
    return Seen(
        engine=engine("fake"),
        report=EngineReport(engine="fake", version="", precision="float32", threads=1),
        process=_PROCESS,
        observation=ProcessObservation(),
        memory=MemoryPolicyEffect(requested="auto", effective=policy, nodes=(), why="one node: first touch"),
        cpus=cpus,
        cores=tuple(core.cpus for core in machine.cores),
    )


@pytest.mark.parametrize(
    ("cpus", "asked", "problem"),
    [
        ((0, 1), "one", None),
        ((0, 48), "all", None),
        ((0, 48), "one", "smt: asked one, two of its CPUs share a core"),
        ((0, 1), "all", "smt: asked all, no CPUs share a core"),
    ],
)
def test_hardware_threads(cpus: tuple[int, ...], asked: str, problem: str | None) -> None:
    """On c5.metal CPUs n and n+48 are one core (lscpu of the published runs)."""
    effects = {one.knob: one for one in knob_effects({"smt": asked}, _seen(c5_metal(), cpus))}
    assert effects["smt"].problem == problem


def test_an_unbound_instance_has_no_hardware_threads_of_its_own() -> None:
    """Where nothing is bound nothing can be said, and nothing was asked."""
    effects = {one.knob: one for one in knob_effects({}, _seen(c5_metal(), None))}
    assert (effects["smt"].requested, effects["smt"].effective, effects["smt"].problem) == ("auto", "unknown", None)


def test_memory_policy_that_did_not_take_effect() -> None:
    """Asked and effective differ: that is a problem with the kernel's reason."""
    effects = {one.knob: one for one in knob_effects({"memory_policy": "bind"}, _seen(uniform(), (0,)))}
    assert effects["memory_policy"].problem == "memory_policy: asked bind, one node: first touch"


def test_memory_policy_under_a_filter() -> None:
    """Only `none` needs no system call."""
    context = Context(host=Host(machine=uniform(), memory_policy_error="Operation not permitted"))
    refusals = {value: knob("memory_policy").refusal(value, context) for value in knob("memory_policy").values()}
    assert refusals.pop("none") is None
    assert all("Operation not permitted; allow it" in (why or "") for why in refusals.values())

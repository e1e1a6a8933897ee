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


def _seen(machine: Machine, cpus: tuple[int, ...] | None, why: str = "one node: first touch", **chosen: str) -> Seen:
    return Seen(
        engine=engine("fake"),
        report=EngineReport(engine="fake", version="", precision="float32", threads=1),
        process=_PROCESS,
        observation=ProcessObservation(),
        memory=MemoryPolicyEffect(requested="auto", effective="none", nodes=(), why=why),
        cpus=cpus,
        cores=tuple(core.cpus for core in machine.cores),
        chosen=chosen,
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
    effects = {one.knob: one for one in knob_effects(_seen(c5_metal(), cpus, smt=asked))}
    assert effects["smt"].problem == problem


def test_an_unbound_instance_has_no_hardware_threads_of_its_own() -> None:
    """Where nothing is bound nothing can be said, and nothing was asked."""
    effects = {one.knob: one for one in knob_effects(_seen(c5_metal(), None))}
    assert (effects["smt"].requested, effects["smt"].effective, effects["smt"].problem) == ("auto", "unknown", None)


def test_memory_policy_that_did_not_take_effect() -> None:
    """Asked and effective differ: that is a problem with the kernel's reason."""
    effects = {one.knob: one for one in knob_effects(_seen(uniform(), (0,), memory_policy="bind"))}
    assert effects["memory_policy"].problem == (
        "memory_policy: asked bind, get_mempolicy says none: one node: first touch"
    )
    unread = "as requested; not read back: get_mempolicy says Function not implemented"
    effects = {one.knob: one for one in knob_effects(_seen(uniform(), (0,), unread))}
    assert effects["memory_policy"].why == unread


def test_memory_policy_under_a_filter() -> None:
    """Only `none` needs no system call."""
    context = Context(host=Host(machine=uniform(), memory_policy_error="Operation not permitted"))
    refusals = {value: knob("memory_policy").refusal(value, context) for value in knob("memory_policy").values()}
    assert refusals.pop("none") is None
    assert all("Operation not permitted; allow it" in (why or "") for why in refusals.values())

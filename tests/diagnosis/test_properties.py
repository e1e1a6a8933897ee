"""What holds for the diagnosis of any machine."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pinstripe.diagnosis import Observations, diagnose
from pinstripe.machine import Counters, Machine
from pinstripe.testing.machines import hybrid_1370p, uniform


@st.composite
def limited_machines(draw: st.DrawFn) -> Machine:
    """Draw machines of which any part may be allowed, isolated, or without memory."""
    shape = st.integers(1, 3)
    machine = draw(
        st.builds(uniform, packages=shape, nodes_per_package=shape, cores_per_node=shape, smt=shape)
        | st.just(hybrid_1370p())
    )
    cpus, nodes = st.sampled_from(machine.online), st.sampled_from([node.id for node in machine.nodes])
    return replace(
        machine,
        allowed=tuple(sorted(draw(st.sets(cpus, min_size=1)))),
        isolated=tuple(sorted(draw(st.sets(cpus)))),
        allowed_nodes=tuple(sorted(draw(st.sets(nodes)))),
        nodes=tuple(replace(node, memory_bytes=draw(st.sampled_from([0, 1 << 30]))) for node in machine.nodes),
        cpu_quota=draw(st.none() | st.floats(0.01, 200)),
        isa=tuple(sorted(draw(st.sets(st.sampled_from(["avx2", "hypervisor", "sse2", "asimd"]))))),
    )


@given(
    machine=limited_machines(),
    lost=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
    stolen=st.integers(0, 10**12),
)
def test_any_machine(machine: Machine, lost: tuple[int, int], stolen: int) -> None:
    """Every machine has a diagnosis, each subject once; whatever is not good says what it costs."""
    counters = Counters(nr_periods=max(lost), nr_throttled=min(lost), throttled_ns=None, steal_ns=stolen, busy_ns=10**9)
    findings = diagnose(Observations(machine=machine, counters=counters))
    assert len({finding.subject for finding in findings}) == len(findings)
    for finding in findings:
        assert bool(finding.cost) == (finding.severity != "good")
        assert finding.seen
        assert len(finding.title) <= 72, finding.title
        assert "\n" not in finding.title + finding.seen + finding.cost + (finding.remedy or "")

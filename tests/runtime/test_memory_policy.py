"""What a memory policy request becomes, on machines and under filters this machine does not have."""

import errno
import json
import os
import subprocess
import sys

import pytest

from pinstripe.errors import StartError
from pinstripe.runtime import memory_policy_error
from pinstripe.runtime.memory_policy import MemoryPolicy, PolicyCall, PolicyOutcome, judge, resolve

# Modes by linux/mempolicy.h.
PREFERRED, BIND, INTERLEAVE, LOCAL, PREFERRED_MANY = 1, 2, 3, 4, 5


@pytest.mark.parametrize(
    ("requested", "nodes", "machine_nodes", "call"),
    [
        ("auto", (1,), (0, 1), PolicyCall(PREFERRED, (1,))),
        ("auto", (0, 12), (0, 12), PolicyCall(INTERLEAVE, (0, 12))),
        ("auto", (), (0, 1), None),
        ("auto", (0,), (0,), None),
        ("auto", (0,), (), None),
        ("none", (1,), (0, 1), None),
        ("local", (1,), (0, 1), PolicyCall(LOCAL, ())),
        ("preferred", (1,), (0, 1), PolicyCall(PREFERRED, (1,))),
        ("preferred", (0, 1), (0, 1), PolicyCall(PREFERRED_MANY, (0, 1))),
        ("bind", (1, 0), (0, 1), PolicyCall(BIND, (0, 1))),
        ("interleave", (0, 1), (0, 1), PolicyCall(INTERLEAVE, (0, 1))),
    ],
)
def test_resolve(
    requested: MemoryPolicy, nodes: tuple[int, ...], machine_nodes: tuple[int, ...], call: PolicyCall | None
) -> None:
    """Each request stands for this system call."""
    assert resolve(requested, nodes, machine_nodes)[0] == call


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS])
def test_auto_falls_to_first_touch_when_refused(number: int) -> None:
    """A filtered system call is no failure under auto; the record says which error it was."""
    call = PolicyCall(PREFERRED, (1,))
    effect = judge("auto", call, "", PolicyOutcome(set_errno=number, get_errno=None))
    assert (effect.effective, effect.nodes) == ("none", ())
    assert os.strerror(number) in effect.why


def test_auto_fails_on_a_wrong_node() -> None:
    """A node without memory is a mistake in the request, not a filter."""
    with pytest.raises(StartError, match=r"auto on nodes 3 .*Invalid argument"):
        judge("auto", PolicyCall(PREFERRED, (3,)), "", PolicyOutcome(set_errno=errno.EINVAL, get_errno=None))


def test_nodes_cut_by_the_cpuset() -> None:
    """When the kernel silently drops a node, a named policy fails, and auto records what is left."""
    call, outcome = PolicyCall(INTERLEAVE, (0, 1)), PolicyOutcome(set_errno=None, get_errno=None, mode=3, nodes=(1,))
    effect = judge("auto", call, "spans", outcome)
    assert (effect.effective, effect.nodes, effect.why) == (
        "interleave",
        (1,),
        "spans; the kernel made it interleave 1",
    )
    with pytest.raises(StartError, match="the kernel made it interleave 1"):
        judge("interleave", call, "", outcome)


def test_an_inherited_policy_is_reported() -> None:
    """A parent under `numactl --membind=1` passes that on: `none` does not mean first touch then."""
    effect = judge("none", None, "", PolicyOutcome(set_errno=None, get_errno=None, mode=BIND, nodes=(1,)))
    assert (effect.effective, effect.nodes) == ("bind", (1,))
    assert "inherited" in effect.why


def test_old_kernels_report_local_as_preferred_without_nodes() -> None:
    """Before Linux 5.14 MPOL_LOCAL reads back as MPOL_PREFERRED; flags in the mode do not matter either."""
    mode = PREFERRED | 1 << 13
    effect = judge("local", PolicyCall(LOCAL, ()), "", PolicyOutcome(set_errno=None, get_errno=None, mode=mode))
    assert effect.effective == "local"


def test_what_cannot_be_read_back_is_said() -> None:
    """A policy that was set without error counts, and the record says that it was not read back."""
    outcome = PolicyOutcome(set_errno=None, get_errno=errno.EPERM)
    effect = judge("bind", PolicyCall(BIND, (0,)), "as requested", outcome)
    assert (effect.effective, effect.nodes) == ("bind", (0,))
    assert "not read back" in effect.why


# Denies set_mempolicy (238 on x86-64) to this process and its children by a seccomp filter (linux/filter.h):
# load the number; if it is 238 return ERRNO(argv[1]), else ALLOW. Then starts processes as if there were 2 nodes.
FILTERED = """
import ctypes, json, struct, sys
from pinstripe.runtime import StartRequest, start, starting
deny, allow = 0x00050000 | int(sys.argv[1]), 0x7FFF0000
instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, 238), (0x06, 0, 0, deny), (0x06, 0, 0, allow)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in instructions))
program = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
starting.nodes_with_memory = lambda: (0, 1)
results = []
for policy in ("auto", "preferred", "local"):
    try:
        process = start(StartRequest(argv=("sleep", "60"), memory_policy=policy, nodes=(0,)))
        results.append([process.memory.effective, process.memory.why])
        process.stop(0)
    except Exception as error:
        results.append([type(error).__name__, str(error)])
print(json.dumps(results))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter is written for x86-64")
@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS])
def test_under_a_real_system_call_filter(number: int) -> None:
    """As in a container that forbids set_mempolicy: auto starts and says why, named policies fail."""
    run = subprocess.run(
        [sys.executable, "-c", FILTERED, str(number)], check=True, capture_output=True, text=True, timeout=60
    )
    auto, preferred, local = json.loads(run.stdout)
    assert auto == ["none", f"set_mempolicy is refused here ({os.strerror(number)}): first touch"]
    assert preferred[0] == local[0] == "StartError"
    assert os.strerror(number) in preferred[1]


def test_memory_policy_is_tried_without_a_trace() -> None:
    """The kernel's own file of this thread says the same before and after."""
    before = _policies()
    error = memory_policy_error()

    assert error is None or error in {os.strerror(errno.EPERM), os.strerror(errno.ENOSYS)}
    assert _policies() == before


def _policies() -> set[str]:
    """Return the policies of this process's memory; nothing where the kernel does not say."""
    try:
        with open("/proc/self/numa_maps") as lines:  # noqa: PTH123 - a file of procfs
            return {line.split()[1] for line in lines}
    except OSError:
        return set()

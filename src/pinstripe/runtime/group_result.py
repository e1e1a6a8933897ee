"""What became of several processes that ran together."""

from typing import Literal

import msgspec

from pinstripe.runtime.memory_policy import MemoryPolicyEffect

__all__ = ["GroupResult", "MemberResult", "Outcome"]

Outcome = Literal["succeeded", "failed", "stopped", "not-started", "stuck"]


class MemberResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of one process.

    Attributes:
        index: Its place in the list of requests.
        outcome: It ended by itself with 0 (`succeeded`) or otherwise (`failed`), it was ended (`stopped`), it was
            `not-started`, or it does not end (`stuck`: the kernel waits for a device or a file server).
        status: Its exit code, minus the signal's number if one killed it; None where it has none.
        duration_s: From its start to its end, in seconds; some hundredths of that are spent on starting it.
        cpus: CPUs it was bound to, verified; None if it was not bound.
        memory: The memory policy it started with; None where it was not started.
    """

    index: int
    outcome: Outcome
    status: int | None = None
    duration_s: float = 0.0
    cpus: tuple[int, ...] | None = None
    memory: MemoryPolicyEffect | None = None


class GroupResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a group.

    Attributes:
        exit_code: As a shell would give it: 0 if all succeeded; 128 + the signal that interrupted the group; else that
            of the first that failed, 128 + the signal's number if one killed it.
        members: One entry a process, in the order of the requests.
    """

    exit_code: int
    members: tuple[MemberResult, ...]

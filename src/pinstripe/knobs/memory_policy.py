"""Where an instance's memory comes from."""

from typing import ClassVar, get_args

from pinstripe.knobs.knob import AUTO, Context, Effective, Seen
from pinstripe.knobs.values import ForEveryEngine, OfWords, OfWorker
from pinstripe.runtime import MemoryPolicy

__all__ = ["MemoryPolicyKnob"]

_NEEDS_NODES = ("preferred", "bind", "interleave")


class MemoryPolicyKnob(ForEveryEngine, OfWords, OfWorker):
    """Memory policy of the process: `man 2 set_mempolicy`. `StartRequest` has it set, and read back, at the start."""

    name: ClassVar[str] = "memory_policy"
    summary: ClassVar[str] = "NUMA nodes that an instance's memory comes from"
    accepts: ClassVar[str] = "preferred, bind, interleave, local or none"
    default: ClassVar[str] = AUTO
    words: ClassVar[tuple[str, ...]] = tuple(policy for policy in get_args(MemoryPolicy) if policy != AUTO)

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse policies for nodes where there are none, and all but `none` where system calls are filtered."""
        host = context.host
        if value in _NEEDS_NODES and not any(node.memory_bytes for node in host.machine.nodes):
            return "this kernel knows no NUMA nodes; leave it at auto"
        if value != "none" and host.memory_policy_error is not None:
            return f"set_mempolicy says {host.memory_policy_error}; allow it, as `docker run --cap-add SYS_NICE` does"
        return None

    def effective(self, seen: Seen) -> Effective:
        """Return what the kernel said when the process started."""
        why = seen.memory.why
        if "get_mempolicy says" not in why:  # it does where the kernel refused to tell
            why = f"get_mempolicy says {seen.memory.effective}: {why}"
        return Effective(seen.memory.effective, why)

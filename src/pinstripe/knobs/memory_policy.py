"""Where an instance's memory comes from."""

from typing import ClassVar, get_args

from pinstripe.engines import Engine
from pinstripe.knobs.knob import AUTO, Context, Effective, Seen, Setting
from pinstripe.runtime import MemoryPolicy

__all__ = ["MemoryPolicyKnob"]

_NEEDS_NODES = ("preferred", "bind", "interleave")


class MemoryPolicyKnob:
    """Memory policy of the process: `man 2 set_mempolicy`. `StartRequest` has it set, and read back, at the start."""

    name: ClassVar[str] = "memory_policy"
    summary: ClassVar[str] = "NUMA nodes that an instance's memory comes from"
    accepts: ClassVar[str] = "preferred, bind, interleave, local or none"
    default: ClassVar[str] = AUTO

    def values(self) -> tuple[str, ...]:
        """Return the policies."""
        return tuple(policy for policy in get_args(MemoryPolicy) if policy != AUTO)

    def is_value(self, text: str) -> bool:
        """Return whether it is one of them."""
        return text in self.values()

    def stranger(self, engine: Engine) -> str | None:
        """Concern every engine."""
        del engine
        return None

    def refusal(self, value: str, context: Context) -> str | None:
        """Refuse policies for nodes where there are none, and all but `none` where system calls are filtered."""
        host = context.host
        if value in _NEEDS_NODES and not any(node.memory_bytes for node in host.machine.nodes):
            return "this kernel knows no NUMA nodes; leave it at auto"
        if value != "none" and host.memory_policy_error is not None:
            return f"set_mempolicy says {host.memory_policy_error}; allow it, as `docker run --cap-add SYS_NICE` does"
        return None

    def setting(self, value: str, context: Context) -> Setting:
        """Change nothing: the start request has a field for it."""
        del value, context
        return Setting()

    def effective(self, seen: Seen) -> Effective:
        """Return what the kernel said when the process started."""
        return Effective(seen.memory.effective, seen.memory.why)

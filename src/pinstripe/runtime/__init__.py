"""How does a process start on those cores with those knobs, and did they take?"""

from pinstripe.runtime.environment import thread_environment
from pinstripe.runtime.evidence import NodeMemory, ProcessEvidence, ThreadEvidence, read_evidence, stray_threads
from pinstripe.runtime.group import Group
from pinstripe.runtime.group_result import GroupResult, MemberResult
from pinstripe.runtime.launching import launch_requests
from pinstripe.runtime.libraries import LoadedLibrary
from pinstripe.runtime.memory_policy import MemoryPolicy, MemoryPolicyEffect, expect
from pinstripe.runtime.process import Process
from pinstripe.runtime.signals import end_requests
from pinstripe.runtime.starting import StartRequest, start

__all__ = [
    "Group",
    "GroupResult",
    "LoadedLibrary",
    "MemberResult",
    "MemoryPolicy",
    "MemoryPolicyEffect",
    "NodeMemory",
    "Process",
    "ProcessEvidence",
    "StartRequest",
    "ThreadEvidence",
    "end_requests",
    "expect",
    "launch_requests",
    "read_evidence",
    "start",
    "stray_threads",
    "thread_environment",
]

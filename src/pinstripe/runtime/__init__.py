"""How does a process start on those cores with those knobs, and did they take?"""

from pinstripe.runtime.environment import thread_environment
from pinstripe.runtime.evidence import NodeMemory, ProcessEvidence, ThreadEvidence, read_evidence, stray_threads
from pinstripe.runtime.group import Group
from pinstripe.runtime.group_result import GroupResult, MemberResult
from pinstripe.runtime.installed import InstalledLibrary, installed_libraries
from pinstripe.runtime.launching import launch_requests
from pinstripe.runtime.libraries import LoadedLibrary
from pinstripe.runtime.memory_policy import MemoryPolicy, MemoryPolicyEffect, expect, nodes_with_memory
from pinstripe.runtime.observation import ProcessObservation, observe_process
from pinstripe.runtime.process import Process
from pinstripe.runtime.signals import end_requests
from pinstripe.runtime.starting import HugePages, StartRequest, start

__all__ = [
    "Group",
    "GroupResult",
    "HugePages",
    "InstalledLibrary",
    "LoadedLibrary",
    "MemberResult",
    "MemoryPolicy",
    "MemoryPolicyEffect",
    "NodeMemory",
    "Process",
    "ProcessEvidence",
    "ProcessObservation",
    "StartRequest",
    "ThreadEvidence",
    "end_requests",
    "expect",
    "installed_libraries",
    "launch_requests",
    "nodes_with_memory",
    "observe_process",
    "read_evidence",
    "start",
    "stray_threads",
    "thread_environment",
]

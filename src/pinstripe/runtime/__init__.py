"""How does a process start on those cores with those knobs, and did they take?"""

from pinstripe.runtime.environment import thread_environment
from pinstripe.runtime.evidence import NodeMemory, ProcessEvidence, ThreadEvidence, read_evidence, stray_threads
from pinstripe.runtime.group import Group
from pinstripe.runtime.group_result import GroupResult, MemberResult
from pinstripe.runtime.huge_pages import HugePages, inherited_huge_pages
from pinstripe.runtime.huge_pages_probe import HugePagesObservation
from pinstripe.runtime.installed import InstalledLibrary, find_libraries
from pinstripe.runtime.launching import launch_requests
from pinstripe.runtime.libraries import LoadedLibrary, loaded_allocators, loaded_threading_libraries
from pinstripe.runtime.malloc_probe import MallocObservation
from pinstripe.runtime.memory_policy import MemoryPolicy, MemoryPolicyEffect, expect, nodes_with_memory
from pinstripe.runtime.memory_policy_trial import memory_policy_error
from pinstripe.runtime.observation import ProcessObservation, observe_process
from pinstripe.runtime.openmp_probe import NEVER_SLEEPS_MS, WATCHED_MS, OpenmpObservation, openmp_team
from pinstripe.runtime.process import Process
from pinstripe.runtime.signals import end_requests
from pinstripe.runtime.starting import StartRequest, start
from pinstripe.runtime.system_huge_pages import SystemHugePages, system_huge_pages
from pinstripe.runtime.thread_binding import binds_openmp_threads, rebind_threads

__all__ = [
    "NEVER_SLEEPS_MS",
    "WATCHED_MS",
    "Group",
    "GroupResult",
    "HugePages",
    "HugePagesObservation",
    "InstalledLibrary",
    "LoadedLibrary",
    "MallocObservation",
    "MemberResult",
    "MemoryPolicy",
    "MemoryPolicyEffect",
    "NodeMemory",
    "OpenmpObservation",
    "Process",
    "ProcessEvidence",
    "ProcessObservation",
    "StartRequest",
    "SystemHugePages",
    "ThreadEvidence",
    "binds_openmp_threads",
    "end_requests",
    "expect",
    "find_libraries",
    "inherited_huge_pages",
    "launch_requests",
    "loaded_allocators",
    "loaded_threading_libraries",
    "memory_policy_error",
    "nodes_with_memory",
    "observe_process",
    "openmp_team",
    "read_evidence",
    "rebind_threads",
    "start",
    "stray_threads",
    "system_huge_pages",
    "thread_environment",
]

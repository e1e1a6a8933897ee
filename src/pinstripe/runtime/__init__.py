"""How does a process start on those cores with those knobs, and did they take?"""

from pinstripe.runtime.environment import thread_environment
from pinstripe.runtime.evidence import NodeMemory, ProcessEvidence, ThreadEvidence, read_evidence, stray_threads
from pinstripe.runtime.libraries import LoadedLibrary
from pinstripe.runtime.memory_policy import MemoryPolicy, MemoryPolicyEffect
from pinstripe.runtime.process import Process
from pinstripe.runtime.starting import StartRequest, start

__all__ = [
    "LoadedLibrary",
    "MemoryPolicy",
    "MemoryPolicyEffect",
    "NodeMemory",
    "Process",
    "ProcessEvidence",
    "StartRequest",
    "ThreadEvidence",
    "read_evidence",
    "start",
    "stray_threads",
    "thread_environment",
]

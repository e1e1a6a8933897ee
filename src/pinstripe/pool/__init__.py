"""N workers as one executor: start, submit, supervise, stop."""

from pinstripe.pool.evidence import InstanceEvidence, gather_evidence
from pinstripe.pool.executor import BatchResult, BatchTiming, Executor
from pinstripe.pool.instance import Instance
from pinstripe.pool.messages import Output
from pinstripe.pool.pool import Pool
from pinstripe.pool.setup import Setup, set_up
from pinstripe.pool.spec import WorkerSpec

__all__ = [
    "BatchResult",
    "BatchTiming",
    "Executor",
    "Instance",
    "InstanceEvidence",
    "Output",
    "Pool",
    "Setup",
    "WorkerSpec",
    "gather_evidence",
    "set_up",
]

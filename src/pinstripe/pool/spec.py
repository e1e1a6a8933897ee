"""How one worker is started."""

import os
import sys

import msgspec

from pinstripe.engines import LoadRequest
from pinstripe.engines.other_python import check_python
from pinstripe.knobs import preload_variable
from pinstripe.pool.messages import Output
from pinstripe.runtime import HugePages, MemoryPolicy, Process, StartRequest, start, thread_environment

__all__ = ["WorkerSpec", "start_worker"]


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one instance's worker is started.

    Attributes:
        engine: Name of the engine.
        load: What it loads; `load.threads` None leaves thread counts to the framework.
        cpus: CPUs it is bound to; None leaves placing to the kernel.
        nodes: NUMA nodes for the memory policy.
        memory_policy: Where its memory comes from.
        knobs: The knobs that were asked for, by name; what they change is in the fields below and in `load.options`.
        environment: Variables of the worker beside those for its threads; None removes one.
        preload: Libraries that it loads before all others.
        unload: Entries of the inherited LD_PRELOAD that it must not get.
        huge_pages: See `StartRequest`.
        cores: Sets of sibling CPUs of the machine's cores.
        output: `task` for the model's small results, `raw` for hidden states or logits.
        python: Interpreter of the environment it runs in.
    """

    engine: str
    load: LoadRequest
    cpus: tuple[int, ...] | None
    nodes: tuple[int, ...] = ()
    memory_policy: MemoryPolicy = "auto"
    knobs: dict[str, str] = {}
    environment: dict[str, str | None] = {}
    preload: tuple[str, ...] = ()
    unload: tuple[str, ...] = ()
    huge_pages: HugePages = "inherit"
    cores: tuple[tuple[int, ...], ...] = ()
    output: Output = "task"
    python: str = sys.executable


def start_worker(spec: WorkerSpec, fd: int) -> Process:
    """Start a worker that serves the socket `fd`.

    Raises:
        EngineError: There is no such interpreter.
        StartError: It could not be started as asked.
    """
    check_python(spec.python)
    return start(
        StartRequest(
            # -P: a file in the working directory that is named like a module must not be imported in its place.
            argv=(spec.python, "-P", "-m", "pinstripe.pool.worker", str(fd)),
            # Not None: an unpinned worker gets what the main thread has, whichever thread starts it.
            cpus=spec.cpus or tuple(sorted(os.sched_getaffinity(os.getpid()))),
            memory_policy=spec.memory_policy,
            nodes=spec.nodes,
            huge_pages=spec.huge_pages,
            environment={
                **thread_environment(spec.load.threads, os.environ),
                **spec.environment,
                **preload_variable(spec.preload, spec.unload, {**os.environ, **spec.environment}),
            },
            pass_fds=(fd,),
            output="keep",
        )
    )

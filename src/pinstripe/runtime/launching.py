"""A program in place of a worker: one for each instance of a placement."""

from collections.abc import Mapping, Sequence

from pinstripe.machine import Machine, format_cpu_list
from pinstripe.placement import Placement
from pinstripe.runtime.environment import thread_environment
from pinstripe.runtime.memory_policy import MemoryPolicy
from pinstripe.runtime.starting import StartRequest

__all__ = ["launch_requests"]


def launch_requests(
    argv: Sequence[str],
    placement: Placement,
    machine: Machine,
    inherited: Mapping[str, str],
    *,
    memory_policy: MemoryPolicy = "auto",
) -> tuple[StartRequest, ...]:
    """Return how to start a program once for each instance, as workers are started.

    Each finds its place in its environment: `PINSTRIPE_INSTANCE` from 0 on, `PINSTRIPE_INSTANCES`, the number of
    physical cores it has, `PINSTRIPE_CORES`, and `PINSTRIPE_CPUS` in list syntax ("0-3,8"); besides the variables that
    set the number of threads (`thread_environment`).

    Args:
        argv: The program and its arguments.
        placement: Where instances run.
        machine: The machine that this is a placement on.
        inherited: The environment that they inherit.
        memory_policy: Where their memory comes from.
    """
    return tuple(
        StartRequest(
            argv=tuple(argv),
            cpus=instance.cpus,
            nodes=instance.nodes,
            memory_policy=memory_policy,
            environment={
                **thread_environment(len(instance.cpus), inherited),
                "PINSTRIPE_INSTANCE": str(index),
                "PINSTRIPE_INSTANCES": str(len(placement.instances)),
                "PINSTRIPE_CORES": str(sum(not set(core.cpus).isdisjoint(instance.cpus) for core in machine.cores)),
                "PINSTRIPE_CPUS": format_cpu_list(instance.cpus),
            },
        )
        for index, instance in enumerate(placement.instances)
    )

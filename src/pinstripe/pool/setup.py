"""From a configuration to workers that can be started."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.errors import PlacementError
from pinstripe.machine import Machine
from pinstripe.models import Network
from pinstripe.placement import Placement, place
from pinstripe.pool.spec import WorkerSpec

__all__ = ["Setup", "set_up"]


@dataclass(frozen=True, slots=True)
class Setup:
    """A configuration on a machine.

    Attributes:
        configuration: With the number of cores filled in.
        placement: Where the instances go; None if they are not pinned.
        artefact: The file that the engine loads.
        specs: How each worker is started.
    """

    configuration: Configuration
    placement: Placement | None
    artefact: Artefact
    specs: tuple[WorkerSpec, ...]


def set_up(
    configuration: Configuration,
    machine: Machine,
    network: Network,
    prepare: Callable[[Configuration], Artefact],
) -> Setup:
    """Place a configuration's instances and find the file they load.

    Args:
        configuration: What to set up.
        machine: Where.
        network: The model.
        prepare: Finds or makes the file; may take minutes the first time.

    Raises:
        PlacementError: The machine cannot hold the instances.
        EngineError: The engine does not exist or cannot run this model.
    """
    # An unknown engine and an impossible placement are said at once; making the file may take minutes.
    engine(configuration.engine)
    placement = None if configuration.threads == "framework" else place(machine, configuration.wish)
    artefact = prepare(configuration)
    if placement is None:
        spec = _spec(configuration, network, artefact, threads=None, cpus=None, nodes=())
        return Setup(configuration, None, artefact, (spec,) * configuration.instances)
    pinned = configuration.pin == "cores"
    specs = tuple(
        _spec(
            configuration,
            network,
            artefact,
            threads=len(instance.cpus),
            cpus=instance.cpus if pinned else None,
            nodes=instance.nodes if pinned else (),
        )
        for instance in placement.instances
    )
    return Setup(_filled_in(configuration, placement, machine), placement if pinned else None, artefact, specs)


def _spec(
    configuration: Configuration,
    network: Network,
    artefact: Artefact,
    *,
    threads: int | None,
    cpus: tuple[int, ...] | None,
    nodes: tuple[int, ...],
) -> WorkerSpec:
    load = LoadRequest(
        network=network,
        artefact=artefact,
        precision=configuration.precision,
        threads=threads,
        options=configuration.options,
    )
    return WorkerSpec(
        engine=configuration.engine,
        load=load,
        cpus=cpus,
        nodes=nodes,
        memory_policy=configuration.memory_policy,
        python=configuration.python or sys.executable,
    )


def _filled_in(configuration: Configuration, placement: Placement, machine: Machine) -> Configuration:
    """Put in the numbers that placement decided, so that a record says how many instances of how many cores ran."""
    cores = {
        sum(not set(core.cpus).isdisjoint(instance.cpus) for core in machine.cores) for instance in placement.instances
    }
    if len(cores) > 1 and configuration.bind is None:
        raise PlacementError(f"instances of unequal sizes {sorted(cores)} cannot be compared; name --cores")
    return msgspec.structs.replace(
        configuration,
        instances=len(placement.instances),
        cores=cores.pop() if len(cores) == 1 else None,
    )

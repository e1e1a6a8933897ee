"""From a configuration to workers that can be started."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.errors import PlacementError
from pinstripe.knobs import Context, Host, combined_setting, read_host
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
    host: Host | None = None,
) -> Setup:
    """Place a configuration's instances and find the file they load.

    Args:
        configuration: What to set up.
        machine: Where.
        network: The model.
        prepare: Finds or makes the file; may take minutes the first time.
        host: What it has for knobs; None to look.

    Raises:
        PlacementError: The machine cannot hold the instances.
        EngineError: The engine does not exist or cannot run this model.
        KnobError: A knob does not exist, or cannot be had so.
    """
    # What is unknown or cannot be had is said at once; making the file may take minutes.
    asked_of = engine(configuration.engine)
    context = Context(
        host=host or read_host(machine),
        engine=asked_of,
        precision=configuration.precision,
        chosen=configuration.all_knobs,
    )
    combined_setting(context)
    placement = None if configuration.threads == "framework" else place(machine, configuration.wish)
    artefact = prepare(configuration)
    if placement is None:
        spec = _spec(configuration, network, artefact, context)
        return Setup(configuration, None, artefact, (spec,) * configuration.instances)
    pinned = configuration.pin == "cores"
    specs = tuple(
        _spec(
            configuration,
            network,
            artefact,
            replace(context, cpus=instance.cpus if pinned else None, threads=len(instance.cpus)),
            nodes=instance.nodes if pinned else (),
        )
        for instance in placement.instances
    )
    return Setup(_filled_in(configuration, placement, machine), placement if pinned else None, artefact, specs)


def _spec(
    configuration: Configuration,
    network: Network,
    artefact: Artefact,
    context: Context,
    *,
    nodes: tuple[int, ...] = (),
) -> WorkerSpec:
    setting = combined_setting(context)
    load = LoadRequest(
        network=network,
        artefact=artefact,
        precision=configuration.precision,
        threads=context.threads,
        options={**configuration.options, **setting.options},
    )
    return WorkerSpec(
        engine=configuration.engine,
        load=load,
        cpus=context.cpus,
        nodes=nodes,
        memory_policy=configuration.memory_policy,
        knobs=dict(context.chosen),
        environment=dict(setting.environment),
        preload=setting.preload,
        unload=setting.unload,
        huge_pages=setting.huge_pages,
        cores=tuple(core.cpus for core in context.host.machine.cores),
        python=configuration.python or sys.executable,
    )


def _filled_in(configuration: Configuration, placement: Placement, machine: Machine) -> Configuration:
    """Put in the numbers that placement decided, so that a record says how many instances of how many cores ran."""
    if configuration.groups:
        return configuration  # they say it
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

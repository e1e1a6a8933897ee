"""Instances of a machine that is not there."""

from collections.abc import Sequence
from dataclasses import dataclass

from pinstripe.configuration import InstanceGroup, instance_sizes
from pinstripe.errors import ConfigurationError

__all__ = ["SimulatedInstance", "lay_out"]


@dataclass(frozen=True, slots=True)
class SimulatedInstance:
    """One instance.

    Attributes:
        cores: Its cores.
        socket: Where they are; the first ones of an instance that spans sockets.
        slowness: Factor on the time of everything it does, above 0.
    """

    cores: int
    socket: int = 0
    slowness: float = 1.0


def lay_out(
    groups: Sequence[InstanceGroup], socket_cores: int, slowness: Sequence[float] = (1.0, 1.0)
) -> tuple[SimulatedInstance, ...]:
    """Put groups of instances on the sockets of a machine, one after the other.

    Args:
        groups: Which instances there are to be.
        socket_cores: Cores of each socket.
        slowness: Of each socket; an instance that spans several is as slow as the slowest.

    Raises:
        ConfigurationError: There are not so many cores.
    """
    sizes = instance_sizes(groups)
    if sum(sizes) > socket_cores * len(slowness):
        raise ConfigurationError(
            f"{sum(sizes)} cores do not fit {len(slowness)} sockets of {socket_cores}; use fewer or smaller instances"
        )
    instances = []
    first = 0
    for cores in sizes:
        sockets = range(first // socket_cores, (first + cores - 1) // socket_cores + 1)
        instances.append(SimulatedInstance(cores, sockets[0], max(slowness[socket] for socket in sockets)))
        first += cores
    return tuple(instances)

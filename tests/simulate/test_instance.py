"""Instances on the sockets of a machine."""

import pytest

from pinstripe.configuration import InstanceGroup
from pinstripe.errors import ConfigurationError
from pinstripe.simulate import SimulatedInstance, lay_out


def test_groups_fill_one_socket_after_the_other() -> None:
    """The first group comes first; one that does not fit into the rest of a socket spans two."""
    groups = (
        InstanceGroup(instances=2, cores=8, max_tokens=32),
        InstanceGroup(instances=1, cores=10, max_tokens=128),
        InstanceGroup(instances=1, cores=20),
    )

    assert lay_out(groups, 24, slowness=(1.0, 1.2)) == (
        SimulatedInstance(8, 0, 1.0),
        SimulatedInstance(8, 0, 1.0),
        SimulatedInstance(10, 0, 1.2),
        SimulatedInstance(20, 1, 1.2),
    )


def test_what_does_not_fit_is_refused() -> None:
    """With both numbers."""
    with pytest.raises(ConfigurationError, match="50 cores do not fit 2 sockets of 24"):
        lay_out((InstanceGroup(instances=5, cores=10),), 24)

"""From a configuration to workers."""

import pytest

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact
from pinstripe.errors import EngineError, PlacementError, UsageError
from pinstripe.pool import set_up
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import container_2cpu


@pytest.mark.parametrize(
    ("configuration", "error"),
    [
        (Configuration(engine="fake", cores=4096), PlacementError),
        (Configuration(engine="no-such"), EngineError),
    ],
)
def test_what_is_impossible_is_said_before_a_file_is_made(
    configuration: Configuration, error: type[UsageError]
) -> None:
    """Nobody waits minutes for an export to learn that the machine is too small, or the engine's name wrong."""

    def prepare(_: Configuration) -> Artefact:
        pytest.fail("a file was made first")

    with pytest.raises(error):
        set_up(configuration, container_2cpu(), fake_network(), prepare)

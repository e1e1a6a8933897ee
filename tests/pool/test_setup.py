"""From a configuration to workers."""

import pytest

from pinstripe.configuration import Configuration, InstanceGroup
from pinstripe.engines import Artefact
from pinstripe.errors import EngineError, KnobError, PlacementError, UsageError
from pinstripe.knobs import Host
from pinstripe.pool import set_up
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import c5_metal, container_2cpu


@pytest.mark.parametrize(
    ("configuration", "error"),
    [
        (Configuration(engine="fake", cores=4096), PlacementError),
        (Configuration(engine="no-such"), EngineError),
        (Configuration(engine="fake", knobs={"openmp": "gnu"}), KnobError),
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


GROUPS = (
    InstanceGroup(instances=2, cores=1, max_tokens=32),
    InstanceGroup(instances=1, cores=4, max_tokens=128),
    InstanceGroup(instances=1, cores=24),
)


@pytest.mark.parametrize("pin", ["cores", "none"])
def test_groups_have_instances_of_their_sizes(pin: str) -> None:
    """Each worker has as many threads as its group says, in the order of the groups, with the same knobs as any."""
    nothing = Artefact(format="none", path="", origin="model")
    configuration = Configuration(engine="fake", groups=GROUPS, pin=pin)  # type: ignore[arg-type]
    setup = set_up(configuration, c5_metal(), fake_network(), lambda _: nothing)

    assert [spec.load.threads for spec in setup.specs] == [1, 1, 4, 24]
    assert (setup.configuration.instances, setup.configuration.cores) == (4, None)
    assert setup.configuration.groups == GROUPS
    if pin == "cores":
        cpus = [cpu for spec in setup.specs for cpu in spec.cpus or ()]
        assert len(set(cpus)) == len(cpus) == 30
        assert setup.specs[3].cpus == tuple(range(24))
        assert {spec.knobs["smt"] for spec in setup.specs} == {"one"}


def test_groups_that_need_more_than_there_is() -> None:
    """The message says what they need, and how many cores there are."""
    configuration = Configuration(engine="fake", groups=GROUPS)

    with pytest.raises(
        PlacementError, match=r"1 instance of 24 cores \(30 cores in all\): there are 4 usable .*2 threads"
    ):
        set_up(configuration, container_2cpu(), fake_network(), lambda _: pytest.fail("a file was made first"))


def test_knobs_reach_the_workers() -> None:
    """The start of a worker has what the knobs change: variables, huge pages, options of the engine."""
    host = Host(machine=container_2cpu(), huge_pages="madvise", kernel=(6, 18), glibc=(2, 36))
    nothing = Artefact(format="none", path="", origin="model")
    asked = {"allocator": "glibc-tuned", "hugepages": "never", "interop_threads": "3"}
    configuration = Configuration(engine="torch-eager", knobs=asked)
    (spec,) = set_up(configuration, container_2cpu(), fake_network(), lambda _: nothing, host).specs

    assert "glibc.malloc.mmap_max=0" in (spec.environment["GLIBC_TUNABLES"] or "")
    assert spec.huge_pages == "never"
    assert spec.load.options == {"interop_threads": 3}
    assert spec.knobs == {**asked, "smt": "one"}


@pytest.mark.parametrize("fields", [{"pin": "none"}, {"bind": "0"}])
def test_hardware_threads_are_asked_for_by_placement_only(fields: dict[str, str]) -> None:
    """Where nothing is placed, or CPUs are named one by one, nothing is asked about sharing cores."""
    nothing = Artefact(format="none", path="", origin="model")
    configuration = Configuration(engine="fake", **fields)  # type: ignore[arg-type]
    (spec,) = set_up(configuration, container_2cpu(), fake_network(), lambda _: nothing).specs

    assert spec.knobs == {}

"""How a model runs where nobody said how, on machines that are not here."""

import importlib.util

import pytest

from pinstripe.api import Wanted, default_configuration
from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact
from pinstripe.errors import EngineError
from pinstripe.machine import Machine
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import container_2cpu, hybrid_1370p, xeon_8380

NOTHING = Artefact(format="none", path="", origin="model")
BERT_LARGE = fake_network(hidden_size=1024, layers=24, intermediate_size=4096)


@pytest.fixture
def all_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every engine's library can be found."""
    monkeypatch.setattr("pinstripe.api.defaults.find_spec", lambda _: importlib.util.find_spec("json"))


@pytest.mark.parametrize(("machine", "cores"), [(container_2cpu(), 2), (xeon_8380(), 80), (hybrid_1370p(), 6)])
def test_one_instance_a_core(machine: Machine, cores: int) -> None:
    """As many instances as physical performance cores that are ours: never one a hardware thread."""
    configuration, notes = default_configuration(
        machine, fake_network(), lambda _: NOTHING, memory_bytes=None, wanted=Wanted(engine="fake")
    )

    assert (configuration.instances, notes) == (cores, ())


@pytest.mark.usefixtures("all_installed")
def test_the_fastest_engine_that_has_a_file() -> None:
    """An engine whose file cannot be made is passed over, and that is said."""

    def prepare(configuration: Configuration) -> Artefact:
        if configuration.engine == "openvino":
            raise EngineError("no exporter here")
        return NOTHING

    configuration, notes = default_configuration(container_2cpu(), fake_network(), prepare, memory_bytes=None)

    assert configuration.engine == "onnxruntime"
    assert notes == ("openvino is not used: no exporter here",)


def test_no_engine_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone who installed the core alone learns what to install."""
    monkeypatch.setattr("pinstripe.api.defaults.find_spec", lambda _: None)
    with pytest.raises(EngineError, match=r"pip install 'pinstripe\[all\]'.*torch"):
        default_configuration(container_2cpu(), fake_network(), lambda _: NOTHING, memory_bytes=None)


def test_large_models_have_fewer_instances() -> None:
    """A model of 1.3 GB of weights: half of 16 GiB holds 2 copies of 300 MiB + 2 x 1.3 GB, not one on each core."""
    configuration, notes = default_configuration(
        xeon_8380(), BERT_LARGE, lambda _: NOTHING, memory_bytes=16 << 30, wanted=Wanted(engine="fake")
    )

    assert configuration.instances == 2
    assert "half of the available memory" in notes[0]


def test_what_is_named_is_kept() -> None:
    """Cores without instances: as many as fit; instances without cores: an equal share."""
    by_cores, _ = default_configuration(
        xeon_8380(), fake_network(), lambda _: NOTHING, memory_bytes=None, wanted=Wanted(engine="fake", cores=20)
    )
    by_instances, _ = default_configuration(
        xeon_8380(), fake_network(), lambda _: NOTHING, memory_bytes=None, wanted=Wanted(engine="fake", instances=8)
    )

    assert (by_cores.instances, by_cores.cores) == (4, 20)
    assert (by_instances.instances, by_instances.cores) == (8, None)


def test_knobs_of_placement_become_fields() -> None:
    """Hardware threads and memory policy are named among knobs, and are fields of the configuration."""
    wanted = Wanted(engine="fake", knobs={"smt": "all", "memory_policy": "local", "allocator": "glibc"})
    configuration, _ = default_configuration(
        xeon_8380(), fake_network(), lambda _: NOTHING, memory_bytes=None, wanted=wanted
    )
    assert (configuration.smt, configuration.memory_policy) == ("all", "local")
    assert configuration.knobs == {"allocator": "glibc"}

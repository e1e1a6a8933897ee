"""What knobs are told of the instances that a configuration means."""

from typing import Any

import pytest

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact
from pinstripe.errors import KnobError
from pinstripe.knobs import Host
from pinstripe.pool import set_up
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import container_2cpu

_HOST = Host(machine=container_2cpu(), huge_pages="madvise", kernel=(6, 18), glibc=(2, 36))


def _never(_: Configuration) -> Artefact:
    pytest.fail("a file was made first")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"precision": "int8", "knobs": {"gemm": "onednn"}}, "gemm=onednn cannot be had here: torch multiplies int8"),
        ({"precision": "bfloat16", "knobs": {"gemm": "mkl"}}, "gemm=mkl cannot be had here: torch multiplies bfloat16"),
        ({"precision": "int8", "knobs": {"fpmath": "bf16"}}, "fpmath=bf16 cannot be had here: it rounds products of"),
    ],
)
def test_what_the_precision_excludes_is_said_before_a_file_is_made(fields: dict[str, Any], why: str) -> None:
    """The engine would refuse it only in the worker."""
    with pytest.raises(KnobError, match=f"^{why}"):
        set_up(Configuration(engine="torch-eager", **fields), _HOST.machine, fake_network(), _never, _HOST)


def test_one_thread_that_is_not_bound() -> None:
    """It never waits for others, so that how long idle threads spin could not be shown."""
    nothing = Artefact(format="none", path="", origin="model")

    def specs(cores: int) -> Any:
        configuration = Configuration(engine="torch-eager", cores=cores, pin="none", knobs={"spin": "0"})
        return set_up(configuration, _HOST.machine, fake_network(), lambda _: nothing, _HOST).specs

    with pytest.raises(KnobError, match="an instance of one thread has none that waits"):
        specs(1)
    (two,) = specs(2)
    assert two.load.threads == 2


def test_what_must_not_be_inherited_reaches_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker's own start has which preloaded libraries it does not get."""
    monkeypatch.setenv("LD_PRELOAD", "/opt/libomp.so.5 /opt/libtcmalloc.so.4 /opt/libfast.so")
    configuration = Configuration(engine="torch-eager", knobs={"openmp": "gnu", "allocator": "glibc"})
    nothing = Artefact(format="none", path="", origin="model")
    (spec,) = set_up(configuration, _HOST.machine, fake_network(), lambda _: nothing, _HOST).specs
    assert sorted(spec.unload) == ["/opt/libomp.so.5", "/opt/libtcmalloc.so.4"]

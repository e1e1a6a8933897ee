"""Denormal numbers count as zero in all compute threads, or in none, as asked, or the evidence says so."""

from collections.abc import Callable
from typing import Protocol

import msgspec
import pytest

from pinstripe.engines import engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, combined_setting
from pinstripe.pool import InstanceEvidence, WorkerSpec
from pinstripe.testing.machines import container_2cpu

Effect = Callable[..., KnobEffect]


class Try(Protocol):
    """The fixture."""

    def __call__(
        self, engine_name: str, *, spoil: Callable[[WorkerSpec], WorkerSpec] = ..., **knobs: str
    ) -> InstanceEvidence:
        """Run a worker."""
        ...


def _context(engine_name: str = "torch-eager", **chosen: str) -> Context:
    return Context(host=Host(machine=container_2cpu()), engine=engine(engine_name), chosen=chosen)


def _without_options(spec: WorkerSpec) -> WorkerSpec:
    return msgspec.structs.replace(spec, load=msgspec.structs.replace(spec.load, options={}))


def test_torch_does_as_asked(torch_effect: Effect) -> None:
    """A computation with all threads shows it, in both ways."""
    assert torch_effect("flush_denormals", "on").problem is None
    assert torch_effect("flush_denormals", "off", others=True).problem is None
    problem = torch_effect("flush_denormals", "on", others=True).problem
    assert problem == "flush_denormals: asked on, all threads keep them, as a computation shows"


def test_a_thread_that_does_not_is_noticed(reported: Effect) -> None:
    """It is a mode of each thread."""
    problem = reported("flush_denormals", "on", "torch-eager", flush_denormals="32768 of 65536 products").problem
    assert problem == "flush_denormals: asked on, 32768 of 65536 products of denormal numbers were flushed"
    settings = {"session.set_denormal_as_zero": "1", "calling_thread_flushes": "false"}
    problem = reported("flush_denormals", "on", "onnxruntime", **settings).problem
    assert problem == "flush_denormals: asked on, its pool flushes them and the calling thread does not"


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("name", "said"),
    [("onnxruntime", "none of its threads flushes them"), ("openvino", "CPU_DENORMALS_OPTIMIZATION is False")],
)
def test_graph_engines_do_as_asked(try_knobs: Try, name: str, said: str) -> None:
    """A worker reads it back; if the option gets lost on the way, the trial fails."""
    assert try_knobs(name, flush_denormals="on").problems == ()
    problem = f"flush_denormals: asked on, {said}"
    assert try_knobs(name, flush_denormals="on", spoil=_without_options).problems == (problem,)


@pytest.mark.parametrize(("name", "why"), [("tf-graph", "always flushes them"), ("fake", "has no setting for it")])
def test_engines_that_it_is_not_for(name: str, why: str) -> None:
    """TensorFlow sets the mode in its threads by itself."""
    with pytest.raises(KnobError, match=f"is not for {name}, which {why}"):
        combined_setting(_context(name, flush_denormals="on"))


def test_unknown_values() -> None:
    """The message says what there is."""
    with pytest.raises(KnobError, match="flush_denormals cannot be 'yes'; use on or off"):
        combined_setting(_context(flush_denormals="yes"))

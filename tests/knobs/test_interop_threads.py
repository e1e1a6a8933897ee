"""As many operators may run beside each other as was asked for, or the evidence says how many."""

from collections.abc import Callable

import pytest

from pinstripe.engines import engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, combined_setting, knob
from pinstripe.testing.machines import container_2cpu

Effect = Callable[..., KnobEffect]


def _context(engine_name: str = "torch-eager", **chosen: str) -> Context:
    return Context(host=Host(machine=container_2cpu()), engine=engine(engine_name), chosen=chosen)


def test_torch_has_as_many_as_asked(torch_effect: Effect) -> None:
    """The default, and another number; a number that gets lost is noticed."""
    assert torch_effect("interop_threads", "3").problem is None
    assert torch_effect("interop_threads", "1", others=True).problem is None
    problem = torch_effect("interop_threads", "3", others=True).problem
    assert problem == "interop_threads: asked 3, num_interop_threads is 1"


def test_tensorflow_is_read_back(reported: Effect) -> None:
    """It has another name for it."""
    problem = reported("interop_threads", "2", "tf-graph", inter_op_parallelism_threads="1").problem
    assert problem == "interop_threads: asked 2, inter_op_parallelism_threads is 1"
    assert reported("interop_threads", "2", "tf-graph").problem == "interop_threads: asked 2, tf-graph does not say"


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "fake"])
def test_other_engines_have_one(name: str) -> None:
    """The knob would be set in vain."""
    with pytest.raises(KnobError, match=f"is not for {name}, which runs one operator after the other"):
        combined_setting(_context(name, interop_threads="2"))


def test_the_default_is_a_value() -> None:
    """Asking for what holds anyway is no mistake."""
    one = knob("interop_threads")
    assert one.default in one.values()
    assert combined_setting(_context(interop_threads=one.default)).options == {"interop_threads": 1}


@pytest.mark.parametrize("value", ["0", "65", "02", "two"])
def test_unknown_values(value: str) -> None:
    """The message says what there is."""
    with pytest.raises(KnobError, match="use 1 to 64"):
        combined_setting(_context(interop_threads=value))

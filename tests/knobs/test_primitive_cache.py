"""OneDNN keeps as many kernels as was asked for, or the evidence says how many."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from pinstripe.engines import engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, combined_setting
from pinstripe.testing.machines import container_2cpu

Effect = Callable[..., KnobEffect]
_VARIABLE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
# Each shape is a kernel of its own. The first of 8 is used once more; then the ninth takes the place of the second.
_SHAPES = """
import torch
for width in [1, 2, 3, 4, 5, 6, 7, 8, 1, 9, 2]:
    torch.ops.mkldnn._reorder_linear_weight(torch.zeros(1, width))
"""


def _context(engine_name: str = "torch-eager", **chosen: str) -> Context:
    return Context(host=Host(machine=container_2cpu()), engine=engine(engine_name), chosen=chosen)


def test_torch_keeps_as_many_as_asked(torch_effect: Effect) -> None:
    """OneDNN itself says how many; another number is noticed."""
    assert torch_effect("primitive_cache", "64").problem is None
    problem = torch_effect("primitive_cache", "64", others=True).problem
    assert problem == "primitive_cache: asked 64, oneDNN says that it keeps 65"


def test_silence_proves_nothing(reported: Effect) -> None:
    """Not even the default, which is not asked for where the variable is lost."""
    problem = reported("primitive_cache", "1024", "torch-eager").problem
    assert problem is not None
    assert problem.startswith("primitive_cache: asked 1024, oneDNN cannot be asked: this build of torch is stripped")
    unasked = reported("primitive_cache", "auto", "torch-eager")
    assert (unasked.effective, unasked.why) == ("unknown", "nothing was asked, and so oneDNN was not asked")


def test_it_behaves_as_it_says() -> None:
    """With room for 8, the first of 8 kernels is found again, and one that a ninth has displaced is not."""
    pytest.importorskip("torch")
    assert combined_setting(_context(primitive_cache="8")).environment == {_VARIABLE: "8"}
    done = subprocess.run(
        [sys.executable, "-c", _SHAPES],
        env={**os.environ, "OMP_NUM_THREADS": "1", "ONEDNN_VERBOSE": "profile_create", _VARIABLE: "8"},
        capture_output=True,
        text=True,
        check=True,
    )
    created = [line for line in done.stdout.splitlines() if ",create:" in line]
    assert ["cache_hit" in line for line in created] == [False] * 8 + [True, False, False]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("openvino", "cache of its own"),
        ("tf-graph", "cache of its own"),
        ("onnxruntime", "does not compute with oneDNN"),
        ("fake", "does not compute with oneDNN"),
    ],
)
def test_engines_that_it_is_not_for(name: str, why: str) -> None:
    """The variable would be set in vain, or its effect could not be seen."""
    with pytest.raises(KnobError, match=f"is not for {name}, which .*{why}"):
        combined_setting(_context(name, primitive_cache="64"))


@pytest.mark.parametrize("value", ["-1", "65537", "08", "many", "1.5", ""])
def test_unknown_values(value: str) -> None:
    """OneDNN would take some of them for 0."""
    with pytest.raises(KnobError, match=r"use 0 to 65536 \(kernels\)"):
        combined_setting(_context(primitive_cache=value))

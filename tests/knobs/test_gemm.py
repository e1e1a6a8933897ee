"""The library that was asked for multiplies, as is heard from it, or the evidence names the other one."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pinstripe.engines import Precision, engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, combined_setting, knob
from pinstripe.testing.machines import container_2cpu

Effect = Callable[..., KnobEffect]


def _context(engine_name: str = "torch-eager", **chosen: str) -> Context:
    return Context(host=Host(machine=container_2cpu()), engine=engine(engine_name), chosen=chosen)


@pytest.mark.parametrize("value", ["mkl", "onednn"])
def test_the_engine_gets_the_option(value: str) -> None:
    """It is the engine that multiplies by one or the other; see tests/engines/test_torch_eager.py."""
    assert combined_setting(_context(gemm=value)).options == {"gemm": value}


def test_what_was_heard_counts(reported: Effect) -> None:
    """Not what the engine has chosen: a build of torch may multiply by another library."""
    heard = {"gemm": "mkl", "multiplied_by": "onednn", "packed_linears": "0"}
    assert reported("gemm", "onednn", "torch-eager", **heard).problem is None
    problem = reported("gemm", "mkl", "torch-eager", **heard).problem
    assert problem == "gemm: asked mkl, oneDNN multiplies, with 0 layers packed"


def test_int8_is_multiplied_by_torchao(reported: Effect) -> None:
    """Quantized weights have a library of their own, which is recorded."""
    assert reported("gemm", "auto", "torch-eager", gemm="torchao", packed_linears="0").effective == "torchao"


def test_mkl_does_not_round() -> None:
    """Two knobs that exclude each other are refused before anything is started."""
    with pytest.raises(KnobError, match=r"^gemm=mkl cannot be had here: .*fpmath=bf16; leave one of them out"):
        combined_setting(_context(gemm="mkl", fpmath="bf16"))


@pytest.mark.parametrize(
    ("value", "precision", "why"),
    [
        ("mkl", "bfloat16", "torch multiplies bfloat16 by oneDNN"),
        ("mkl", "int8", "torch multiplies int8 by torchao"),
        ("onednn", "int8", "torch multiplies int8 by torchao"),
        ("mkl", "float32", None),
        ("onednn", "bfloat16", None),
    ],
)
def test_precisions(value: str, precision: Precision, why: str | None) -> None:
    """What the engine would refuse is refused before anything is started, and nothing else."""
    found = knob("gemm").refusal(value, replace(_context(gemm=value), precision=precision))
    assert (found is None) if why is None else (why in (found or ""))


@pytest.mark.parametrize("name", ["torchscript", "torch-compile", "onnxruntime", "openvino", "tf-graph", "fake"])
def test_other_engines_have_no_choice(name: str) -> None:
    """The knob would be set in vain."""
    with pytest.raises(KnobError, match=f"is not for {name}, which has no choice of it"):
        combined_setting(_context(name, gemm="mkl"))


def test_unknown_values() -> None:
    """The message says what there is."""
    with pytest.raises(KnobError, match="gemm cannot be 'blis'; use mkl or onednn"):
        combined_setting(_context(gemm="blis"))

"""Float32 is multiplied as it is or rounded to bfloat16, as asked, or the evidence says which."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from pinstripe.engines import Precision, engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, combined_setting, knob
from pinstripe.testing.machines import container_2cpu

Effect = Callable[..., KnobEffect]


def _context(engine_name: str = "torch-eager", *, isa: tuple[str, ...] = ("amx_bf16",), **chosen: str) -> Context:
    machine = msgspec.structs.replace(container_2cpu(), isa=isa)
    return Context(host=Host(machine=machine), engine=engine(engine_name), chosen=chosen)


def test_torch_computes_as_asked(torch_effect: Effect) -> None:
    """The default can be asked for as well, and is read back."""
    assert torch_effect("fpmath", "strict").problem is None
    problem = torch_effect("fpmath", "bf16").problem
    assert problem == "fpmath: asked bf16, torch's float32_matmul_precision is highest"


def test_torch_rounds_as_asked(torch_effect: Effect, host: Host) -> None:
    """Where the CPU has it; the engine's own test shows the rounding."""
    if (why := knob("fpmath").refusal("bf16", Context(host=host))) is not None:
        pytest.skip(why)
    assert torch_effect("fpmath", "bf16", others=True).problem is None
    problem = torch_effect("fpmath", "strict", others=True).problem
    assert problem == "fpmath: asked strict, torch's float32_matmul_precision is medium"


def test_rounding_needs_amx() -> None:
    """OneDNN would compute in float32 and say nothing."""
    with pytest.raises(KnobError, match=r"^fpmath=bf16 cannot be had here: .* amx_bf16, which this one lacks"):
        combined_setting(_context(isa=("avx512_bf16",), fpmath="bf16"))
    limited = Context(host=_context().host, chosen={"fpmath": "bf16", "isa": "avx512-bf16"})
    assert "isa=avx512-bf16 keeps it from" in str(knob("fpmath").refusal("bf16", limited))


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_only_float32_can_be_rounded(precision: Precision) -> None:
    """Refused before the run: the engine would refuse it too, but only once a file was made and a worker started."""
    with pytest.raises(KnobError, match=f"^fpmath=bf16 .*: it rounds products of float32, and precision={precision} "):
        combined_setting(replace(_context(fpmath="bf16"), precision=precision))
    combined_setting(replace(_context(fpmath="strict"), precision=precision))
    combined_setting(replace(_context(fpmath="bf16"), precision="float32"))


@pytest.mark.parametrize("name", ["torch-compile", "onnxruntime", "openvino", "tf-graph", "fake"])
def test_other_engines_have_no_choice(name: str) -> None:
    """They multiply float32 as it is, so that the knob would be set in vain."""
    with pytest.raises(KnobError, match=f"is not for {name}, which multiplies float32 as it is"):
        combined_setting(_context(name, fpmath="bf16"))


def test_unknown_values() -> None:
    """The message says what there is."""
    with pytest.raises(KnobError, match="fpmath cannot be 'tf32'; use strict or bf16"):
        combined_setting(_context(fpmath="tf32"))

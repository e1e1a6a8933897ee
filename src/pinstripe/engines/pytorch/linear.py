"""Which library multiplies torch's matrices, and linear layers whose weights are packed for oneDNN."""

import platform
from typing import Any, Final, Literal, NamedTuple

from pinstripe.engines.protocol import Precision
from pinstripe.engines.pytorch.float32 import Fpmath
from pinstripe.errors import EngineError

__all__ = ["EffectiveGemm", "Gemm", "choose_gemm", "pack_linears"]

Gemm = Literal["auto", "mkl", "onednn"]
_X86: Final = frozenset({"x86_64", "AMD64"})


class EffectiveGemm(NamedTuple):
    """What multiplies matrices with weights: `mkl`, `onednn`, `torchao`, or `torch` for its own choice; and why."""

    name: Literal["mkl", "onednn", "torchao", "torch"]
    why: str


def choose_gemm(torch: Any, gemm: Gemm, precision: Precision, fpmath: Fpmath) -> EffectiveGemm:
    """Return what multiplies matrices with weights.

    `auto` takes packed weights on x86. Against torch's own path, torch 2.13, one thread, interleaved: in float32 on an
    AMD processor with AVX-512 1.5 times as fast for MiniLM and 16 tokens, 1.15 times for 128; on an Intel Sapphire
    Rapids no different for all of MiniLM, though single layers are 1.03 to 1.5 times as fast as long as their weights
    stay in the cache. In bfloat16 there 1.2 times.

    Raises:
        EngineError: This torch, or the precision, does not go together with what was asked.
    """
    if precision == "int8":
        if gemm != "auto":
            raise EngineError(f"gemm={gemm} is not for int8, whose products torchao calls; leave it at auto")
        return EffectiveGemm("torchao", "int8 weights are multiplied by torch._int_mm")
    if gemm == "mkl":
        _check_mkl(torch, precision, fpmath)
        return EffectiveGemm("mkl", "asked for")
    if gemm == "onednn":
        if not torch.backends.mkldnn.is_available():
            raise EngineError("this torch is built without oneDNN; use gemm=auto")
        return EffectiveGemm("onednn", "asked for")
    if platform.machine() in _X86 and torch.backends.mkldnn.is_available():
        return EffectiveGemm("onednn", "auto: on x86 packed weights are as fast or faster, as measured")
    return EffectiveGemm("torch", "auto: packed weights are not measured on this architecture")


def _check_mkl(torch: Any, precision: Precision, fpmath: Fpmath) -> None:
    if not torch.backends.mkl.is_available():
        raise EngineError("this torch is built without MKL; use gemm=auto or gemm=onednn")
    if precision != "float32":
        raise EngineError(f"gemm=mkl is for float32, torch multiplies {precision} by oneDNN; use gemm=auto or onednn")
    if fpmath != "strict":
        raise EngineError(f"gemm=mkl computes in float32 only, not by fpmath={fpmath}; use gemm=auto or onednn")


def pack_linears(torch: Any, module: Any) -> int:
    """Replace the linear layers inside a module by ones with weights packed for oneDNN; return how many there are.

    The weights in their first form are freed, unless something else holds them too, such as a tied embedding.
    """
    packed = _packed_linear(torch)
    count = 0
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(parent, name, packed(child))
                count += 1
    return count


def _packed_linear(torch: Any) -> type[Any]:
    # The operators that inductor calls for frozen weights. They are not public: torch has no public way in eager mode,
    # `torch.utils.mkldnn` converts the activations as well.
    operators = torch.ops.mkldnn
    pack = operators._reorder_linear_weight.default  # noqa: SLF001 - see above
    multiply = operators._linear_pointwise.default  # noqa: SLF001 - see above

    class PackedLinear(torch.nn.Module):  # type: ignore[misc] # the base is only known at run time
        def __init__(self, linear: Any) -> None:
            super().__init__()
            self.in_features = linear.in_features
            self.bias = linear.bias
            self.register_buffer("packed", pack(linear.weight.detach()), persistent=False)

        def forward(self, tensor: Any) -> Any:
            return multiply(tensor, self.packed, self.bias, "none", [], "")

    return PackedLinear

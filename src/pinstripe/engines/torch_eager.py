"""Transformers' own model, run by PyTorch operator by operator: in float32 the reference for the other engines."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from pinstripe.engines.importing import import_library
from pinstripe.engines.options import checked_options
from pinstripe.engines.protocol import ArtefactFormat, Compiling, EngineReport, LoadRequest, Precision, Threading
from pinstripe.engines.pytorch.float32 import Fpmath, set_fpmath
from pinstripe.engines.pytorch.linear import Gemm, choose_gemm, pack_linears
from pinstripe.engines.pytorch.model import TorchModel
from pinstripe.engines.pytorch.precision import load_precise_module, read_precision
from pinstripe.engines.pytorch.report import make_report
from pinstripe.engines.pytorch.threads import set_threads
from pinstripe.errors import EngineError

__all__ = ["TorchEager", "TorchEagerOptions"]


class TorchEagerOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engine.

    Attributes:
        gemm: What multiplies matrices with weights: MKL, as torch does by itself in float32 on x86; oneDNN, with
            weights packed once while loading; or the faster of the two as measured (`choose_gemm`).
        fpmath: Products of float32 matrices: `strict` computes them in float32; `bf16` lets oneDNN round them to
            bfloat16, on CPUs where it does (those with AMX). Holds for the process.
    """

    gemm: Gemm = "auto"
    fpmath: Fpmath = "strict"


class TorchEager:
    """PyTorch in eager mode.

    In bfloat16 all weights are of that type; in int8 linear layers are quantized by torchao, the rest is float32.
    """

    name: ClassVar[str] = "torch-eager"
    format: ClassVar[ArtefactFormat] = "safetensors"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32", "bfloat16", "int8")
    distributions: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    also_needs: ClassVar[Mapping[Precision, str]] = {"int8": "torchao"}
    extra: ClassVar[str] = "torch"
    options_type: ClassVar[type[msgspec.Struct]] = TorchEagerOptions
    threading: ClassVar[Threading] = "openmp"
    compiles: ClassVar[Compiling] = "never"

    def load(self, request: LoadRequest) -> TorchModel:
        """Load transformers' model for the task; see `Engine.load` and `TorchEagerOptions`."""
        options = checked_options(self, request, TorchEagerOptions)
        if options.fpmath != "strict" and request.precision != "float32":
            raise EngineError(f"fpmath={options.fpmath} is for float32, not {request.precision}; leave it at strict")
        torch = import_library("torch", extra="torch")
        gemm = choose_gemm(torch, options.gemm, request.precision, options.fpmath)
        set_fpmath(torch, options.fpmath)
        set_threads(torch, request.threads)
        module = load_precise_module(torch, request)
        precision = read_precision(torch, module)  # packed weights cannot be asked any more
        packed = pack_linears(torch, module) if gemm.name == "onednn" else 0
        settings = {
            "attn_implementation": str(module.network.config._attn_implementation),  # noqa: SLF001 - no public name
            "fpmath": options.fpmath,
            "gemm": gemm.name,
            "gemm_why": gemm.why,
            "packed_linears": str(packed),
        }

        def report() -> EngineReport:
            return make_report(torch, engine=self.name, precision=precision, settings=settings)

        return TorchModel(torch, module, request.network, report, eager=True)

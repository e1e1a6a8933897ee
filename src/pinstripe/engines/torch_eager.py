"""Transformers' own model, run by PyTorch operator by operator: in float32 the reference for the other engines."""

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

import msgspec

from pinstripe.engines.importing import import_library
from pinstripe.engines.options import checked_options
from pinstripe.engines.protocol import ArtefactFormat, Compiling, EngineReport, LoadRequest, Precision, Threading
from pinstripe.engines.pytorch.float32 import Fpmath
from pinstripe.engines.pytorch.kernels import multiplying_library
from pinstripe.engines.pytorch.linear import Gemm, choose_gemm, pack_linears
from pinstripe.engines.pytorch.model import TorchModel
from pinstripe.engines.pytorch.options import TorchOptions, start_torch
from pinstripe.engines.pytorch.precision import load_precise_module, read_precision
from pinstripe.engines.pytorch.report import make_report

__all__ = ["TorchEager", "TorchEagerOptions"]


class TorchEagerOptions(TorchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
        # Before anything is set for the process.
        gemm = choose_gemm(import_library("torch", extra="torch"), options.gemm, request.precision, options.fpmath)
        torch = start_torch(request, options, options.fpmath)
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

        @cache
        def multiplied_by() -> dict[str, str]:
            linear = None if gemm.name == "torchao" else _first_linear(module)
            return {} if linear is None else {"multiplied_by": multiplying_library(torch, linear)}

        def report() -> EngineReport:
            return make_report(torch, engine=self.name, precision=precision, settings=settings | multiplied_by())

        return TorchModel(torch, module, request.network, report, eager=True)


def _first_linear(module: Any) -> Any:
    return next((child for child in module.modules() if hasattr(child, "in_features")), None)

"""Transformers' model, compiled by inductor ahead of time; see `docs/decisions/` for why ahead."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from pinstripe.engines.options import checked_options
from pinstripe.engines.protocol import ArtefactFormat, Compiling, EngineReport, LoadRequest, Precision, Threading
from pinstripe.engines.pytorch.compiling import load_compiled
from pinstripe.engines.pytorch.model import TorchModel
from pinstripe.engines.pytorch.options import TorchOptions, start_torch
from pinstripe.engines.pytorch.report import make_report

__all__ = ["TorchCompile"]


class TorchCompile:
    """PyTorch's compiler inductor, with weights folded in and packed for oneDNN (`freezing`).

    A network is compiled once, which takes a minute or some, to one library for all batch sizes, lengths and numbers of
    threads; it stays in the cache, and all instances load it from there. Nothing is compiled while serving. Compiling
    needs a C++ compiler, loading does not.
    """

    name: ClassVar[str] = "torch-compile"
    format: ClassVar[ArtefactFormat] = "safetensors"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32", "bfloat16", "int8")
    distributions: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    also_needs: ClassVar[Mapping[Precision, str]] = {"int8": "torchao"}
    extra: ClassVar[str] = "torch"
    options_type: ClassVar[type[msgspec.Struct]] = TorchOptions
    threading: ClassVar[Threading] = "openmp"
    compiles: ClassVar[Compiling] = "loading"

    def load(self, request: LoadRequest) -> TorchModel:
        """Compile transformers' model for the task, or load it from the cache; see `Engine.load` and `TorchOptions`.

        Raises:
            ExecutionError: The cache cannot be written, or what is in it cannot be loaded.
        """
        torch = start_torch(request, checked_options(self, request, TorchOptions))
        compiled = load_compiled(torch, request)
        settings = {name: value for name, value in compiled.metadata.items() if value and name != "precision"}

        def report() -> EngineReport:
            precision = compiled.metadata["precision"]
            return make_report(torch, engine=self.name, precision=precision, settings=settings)

        return TorchModel(torch, compiled, request.network, report)

"""Transformers' model, traced and frozen by TorchScript.

PyTorch 2.13 deprecates all of TorchScript: `torch.jit.trace` and `torch.jit.freeze` warn "Please switch to
`torch.compile` or `torch.export`". It still works and is compared here for as long as it does; nothing new should rely
on it.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import msgspec

from pinstripe.engines.importing import one_line
from pinstripe.engines.options import checked_options
from pinstripe.engines.protocol import ArtefactFormat, Compiling, EngineReport, LoadRequest, Precision, Threading
from pinstripe.engines.pytorch.checking import check_graph
from pinstripe.engines.pytorch.float32 import Fpmath
from pinstripe.engines.pytorch.inputs import example_inputs
from pinstripe.engines.pytorch.model import TorchModel
from pinstripe.engines.pytorch.options import TorchOptions, start_torch
from pinstripe.engines.pytorch.precision import load_precise_module
from pinstripe.engines.pytorch.report import make_report
from pinstripe.errors import EngineError
from pinstripe.models import Network

__all__ = ["TorchScript", "TorchScriptOptions"]

_TRACED: Final = (2, 8)


class TorchScriptOptions(TorchOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engine.

    Attributes:
        fpmath: Products of float32 matrices, as for torch-eager.
    """

    fpmath: Fpmath = "strict"


class TorchScript:
    """PyTorch's graph of a traced model, with its weights as constants; float32 products go to MKL where torch has it.

    A trace follows one input, and may keep what was particular to it. So on loading its results are compared with the
    model's own for other batch sizes and lengths.
    """

    name: ClassVar[str] = "torchscript"
    format: ClassVar[ArtefactFormat] = "safetensors"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32", "bfloat16")
    distributions: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    also_needs: ClassVar[Mapping[Precision, str]] = {}
    extra: ClassVar[str] = "torch"
    options_type: ClassVar[type[msgspec.Struct]] = TorchScriptOptions
    threading: ClassVar[Threading] = "openmp"
    compiles: ClassVar[Compiling] = "loading"

    def load(self, request: LoadRequest) -> TorchModel:
        """Load transformers' model for the task and trace it; see `Engine.load` and `TorchScriptOptions`."""
        options = checked_options(self, request, TorchScriptOptions)
        torch = start_torch(request, options, options.fpmath)
        network = request.network
        module = load_precise_module(torch, request)
        graph = _trace(torch, module, network)
        check_graph(torch, graph, module, request, f"traced by torchscript at {_TRACED[0]} x {_TRACED[1]} tokens")

        def report() -> EngineReport:
            return make_report(torch, engine=self.name, precision=_precision(graph), settings={})

        return TorchModel(torch, graph, network, report)


def _trace(torch: Any, module: Any, network: Network) -> Any:
    try:
        with torch.inference_mode(), _known_warnings(torch):
            traced = torch.jit.trace(module, example_inputs(torch, network, *_TRACED), check_trace=False)
            return torch.jit.freeze(traced)
    except RuntimeError as error:
        message = f"torchscript cannot trace {network.name} ({network.model_type}): {one_line(error)}"
        raise EngineError(f"{message}; use engine torch-eager") from error


@contextmanager
def _known_warnings(torch: Any) -> Iterator[None]:
    """Silence three warnings.

    TorchScript's own of its future; of Python values that a trace keeps, since what it keeps is verified afterwards;
    and transformers' of an attribute that the tracer reads like all others.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
        warnings.filterwarnings("ignore", "To copy construct from a tensor", UserWarning)
        yield


def _precision(graph: Any) -> str:
    """Return the types of the weights that linear layers multiply, from the graph that runs."""
    weights = [list(node.inputs())[1].toIValue() for node in graph.graph.findAllNodes("aten::linear")]
    return "+".join(sorted({str(weight.dtype).removeprefix("torch.") for weight in weights if weight is not None}))

"""One call a library, in float32 and one thread, of the very file or weights that pinstripe's engine loads."""

import warnings
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pinstripe.engines import LoadRequest
from pinstripe.engines.graphs.openvino_library import import_openvino
from pinstripe.engines.importing import import_library
from pinstripe.engines.pytorch.compiling import load_compiled

__all__ = ["DIRECT_CALLS", "Call"]

Call: TypeAlias = Callable[[], object]
"""Runs the network once on what it was made with; returns its hidden states, as numpy can read them."""
_Ids: TypeAlias = NDArray[np.int64]


def _onnxruntime(request: LoadRequest, ids: _Ids) -> Call:
    library = import_library("onnxruntime", extra="onnxruntime")
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = library.InferenceSession(request.artefact.path, options, providers=["CPUExecutionProvider"])
    feed = {entry.name: _inputs(ids)[entry.name] for entry in session.get_inputs()}
    return lambda: session.run(["last_hidden_state"], feed)[0]


def _openvino(request: LoadRequest, ids: _Ids) -> Call:
    library = import_openvino()
    properties = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = library.Core().compile_model(request.artefact.path, "CPU", properties)
    infer = compiled.create_infer_request()
    for port in compiled.inputs:
        infer.set_tensor(port, library.Tensor(_inputs(ids)[port.get_any_name()]))

    def call() -> object:
        infer.infer(share_outputs=True)
        return infer.get_output_tensor().data

    return call


def _torch_eager(request: LoadRequest, ids: _Ids) -> Call:
    torch = import_library("torch", extra="torch")
    model, tensor = _transformers_model(torch, request), torch.from_numpy(ids)

    def call() -> object:
        with torch.inference_mode():
            return model(input_ids=tensor).last_hidden_state

    return call


def _torchscript(request: LoadRequest, ids: _Ids) -> Call:
    torch = import_library("torch", extra="torch")
    model = _transformers_model(torch, request)
    tensors = [torch.from_numpy(array.copy()) for array in _inputs(ids).values()]
    model.config.return_dict = False
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated, and says so several times
        traced = torch.jit.freeze(torch.jit.trace(model, tensors, check_trace=False))

    def call() -> object:
        with torch.inference_mode():
            return traced(*tensors)[0]

    return call


def _torch_compile(request: LoadRequest, ids: _Ids) -> Call:
    """Load the library that the engine compiled, since another compilation would be another library."""
    torch = import_library("torch", extra="torch")
    library = load_compiled(torch, request)
    tensors = [torch.from_numpy(array.copy()) for array in _inputs(ids).values()]

    def call() -> object:
        with torch.inference_mode():
            return library(*tensors)

    return call


DIRECT_CALLS: Final[dict[str, Callable[[LoadRequest, _Ids], Call]]] = {
    "torch-eager": _torch_eager,
    "torchscript": _torchscript,
    "torch-compile": _torch_compile,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}
"""By name of the engine: makes the call out of what the engine loads, and token ids."""


def _inputs(ids: _Ids) -> dict[str, _Ids]:
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


def _transformers_model(torch: Any, request: LoadRequest) -> Any:
    library = import_library("transformers", extra="torch")
    library.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    return library.AutoModel.from_pretrained(request.network.directory, dtype=torch.float32).eval()

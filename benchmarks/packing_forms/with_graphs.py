"""OpenVINO and ONNX Runtime: a graph with a mask of [rows, 1, width, width] and positions, beside the usual one."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel

from packing_forms.forms import Form, Forward
from packing_forms.rows import Batch
from pinstripe.engines.graphs.openvino_library import import_openvino
from pinstripe.engines.importing import import_library

__all__ = ["onnxruntime_form", "openvino_form"]

_NAMES = ("input_ids", "attention_mask", "position_ids")
_NEVER = float(np.finfo(np.float32).min)
_ROW_TOKENS = 256


class _Graph(torch.nn.Module):  # type: ignore[misc] # the base is only known at run time
    """An encoder with positional inputs; positions are left to it where none are given."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(directory, attn_implementation="sdpa", dtype=torch.float32).eval()

    def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any = None) -> Any:
        output = self.encoder(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            token_type_ids=torch.zeros_like(input_ids),
        )
        return output.last_hidden_state


def openvino_form(directory: str, *, int8: bool) -> Form:
    """Return OpenVINO's graphs, with weights compressed to int8 if that is asked for."""
    library = import_openvino()
    core, graph = library.Core(), _Graph(directory)
    properties = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}

    def forward(example: dict[str, Any], *, packed: bool) -> Forward:
        with torch.inference_mode():
            model = library.convert_model(graph, example_input=example)
        if int8:
            nncf = import_library("nncf", extra="openvino")
            model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_SYM)
        request = core.compile_model(model, "CPU", properties).create_infer_request()

        def run(batch: Batch) -> NDArray[np.float32]:
            arrays = _arrays(batch, packed=packed)  # kept until the end, since the tensors only borrow the memory
            for port, array in enumerate(arrays):
                request.set_input_tensor(port, library.Tensor(array, shared_memory=True))
            request.infer(share_outputs=True)
            states: NDArray[np.float32] = request.get_output_tensor().data
            return states

        return run

    return Form(forward(_example(packed=False), packed=False), forward(_example(packed=True), packed=True), _ROW_TOKENS)


def onnxruntime_form(directory: str) -> Form:
    """Return ONNX Runtime's sessions, float32."""
    library = import_library("onnxruntime", extra="onnxruntime")
    graph = _Graph(directory)
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1

    def forward(example: dict[str, Any], *, packed: bool) -> Forward:
        with tempfile.TemporaryDirectory() as scratch:
            file = str(Path(scratch, "model.onnx"))
            axes = {name: {0: "rows", tensor.dim() - 1: "width"} for name, tensor in example.items()}
            if packed:
                axes["attention_mask"] = {0: "rows", 2: "width", 3: "width"}
            with torch.inference_mode():
                torch.onnx.export(
                    graph,
                    tuple(example.values()),
                    file,
                    input_names=list(example),
                    output_names=["states"],
                    dynamic_axes={**axes, "states": {0: "rows", 1: "width"}},
                    opset_version=17,
                    dynamo=False,
                )
            session = library.InferenceSession(file, options, providers=["CPUExecutionProvider"])

        def run(batch: Batch) -> NDArray[np.float32]:
            [states] = session.run(None, dict(zip(example, _arrays(batch, packed=packed), strict=True)))
            result: NDArray[np.float32] = states
            return result

        return run

    return Form(forward(_example(packed=False), packed=False), forward(_example(packed=True), packed=True), _ROW_TOKENS)


def _arrays(batch: Batch, *, packed: bool) -> list[NDArray[Any]]:
    if not packed:
        return [batch.ids, (batch.segments >= 0).astype(np.int64)]
    segments = batch.segments
    together = segments[:, None, :, None] == segments[:, None, None, :]  # padding attends to padding, and is not read
    return [batch.ids, np.where(together, np.float32(0), np.float32(_NEVER)), batch.positions]


def _example(*, packed: bool) -> dict[str, Any]:
    """Return a tensor object of its own for every input: tracers take one object given twice for one input."""
    rows, width = 2, 8
    segments = np.repeat([[0, 1], [0, -1]], width // 2, axis=1)
    positions = np.tile(np.arange(width), (rows, 1))
    batch = Batch([], [], np.ones((rows, width), np.int64), positions, segments)
    arrays = _arrays(batch, packed=packed)
    return {name: torch.tensor(array) for name, array in zip(_NAMES, arrays, strict=False)}

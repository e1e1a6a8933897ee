"""Encode with sentence-transformers: -m offline_rivals.with_sentence_transformers BACKEND MODEL CORPUS.

BACKEND is torch, onnx, openvino (in float32), openvino-default (in what OpenVINO takes by itself), or pool: its torch
backend in two processes.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from offline_rivals.turns import Encode, take_turns

_ARGUMENTS: dict[str, dict[str, Any]] = {
    "onnx": {"backend": "onnx", "model_kwargs": {"provider": "CPUExecutionProvider"}},
    # OpenVINO takes bfloat16 by itself where the processor has it.
    "openvino": {"backend": "openvino", "model_kwargs": {"ov_config": {"INFERENCE_PRECISION_HINT": "f32"}}},
    "openvino-default": {"backend": "openvino"},
}
_OPENVINO = ["optimum-intel", "openvino"]
_DISTRIBUTIONS = {"onnx": ["optimum-onnx", "onnxruntime"], "openvino": _OPENVINO, "openvino-default": _OPENVINO}


def main(backend: str, model_directory: str, corpus: str) -> None:
    """Take turns, with the default settings of `encode`."""

    def load() -> tuple[Encode, dict[str, Any]]:
        # By name, since type checkers run in another environment.
        library = import_module("sentence_transformers")
        model = library.SentenceTransformer(model_directory, device="cpu", **_ARGUMENTS.get(backend, {}))
        if backend == "pool":
            pool = model.start_multi_process_pool(target_devices=["cpu", "cpu"])
            return lambda texts: model.encode(texts, pool=pool), {
                "precision": _precision(model, backend),
                "processes": 2,
            }
        return model.encode, {"precision": _precision(model, backend)}

    distributions = ["sentence-transformers", "transformers", "torch", *_DISTRIBUTIONS.get(backend, [])]
    take_turns(load, Path(corpus), distributions)


def _precision(model: Any, backend: str) -> str:
    """Return the precision that is computed in, asked of the engine where it has a choice of its own."""
    if backend.startswith("openvino"):
        compiled = model[0].model
        compiled.compile()
        return str(compiled.request.get_property("INFERENCE_PRECISION_HINT").to_string())
    if backend == "onnx":
        [element] = {value.type for value in model[0].model.model.get_outputs()}
        return str(element)
    [element] = {str(weight.dtype) for weight in model.parameters()}
    return str(element)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Write a model's float32 graph where sentence-transformers finds it: export.py onnx|openvino MODEL DIRECTORY."""

import sys
from importlib import import_module


def main(backend: str, model_directory: str, export_directory: str) -> None:
    """Export with the library's own exporter, and save."""
    # By name, since type checkers run in another environment.
    library = import_module("sentence_transformers")
    settings = {"export": True, **({"provider": "CPUExecutionProvider"} if backend == "onnx" else {})}
    model = library.SentenceTransformer(model_directory, device="cpu", backend=backend, model_kwargs=settings)
    model.save_pretrained(export_directory)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""ONNX and OpenVINO files that came with a model."""

from pathlib import Path
from typing import Final

__all__ = ["USUAL_GRAPHS", "artefact_candidates"]

USUAL_GRAPHS: Final = {
    ".onnx": ("onnx/model.onnx", "model.onnx"),
    ".xml": ("openvino/openvino_model.xml", "openvino_model.xml"),
}
"""What the float32 export of a model is called, by suffix, most usual first: the names that optimum gives."""


def artefact_candidates(directory: Path, suffix: str) -> tuple[str, ...]:
    """Return the model files of one format, as sorted paths relative to the directory.

    Args:
        directory: A model's directory.
        suffix: `.onnx`, looked for in `onnx/` and at the top, or `.xml`, looked for in `openvino/` and at the top.
    """
    folder = {".onnx": "onnx", ".xml": "openvino"}[suffix]
    found = [*directory.glob(f"{folder}/*{suffix}"), *directory.glob(f"*{suffix}")]
    return tuple(sorted(path.relative_to(directory).as_posix() for path in found if path.is_file()))

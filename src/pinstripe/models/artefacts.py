"""ONNX and OpenVINO files that came with a model."""

from pathlib import Path

__all__ = ["artefact_candidates"]


def artefact_candidates(directory: Path, suffix: str) -> tuple[str, ...]:
    """Return the model files of one format, as sorted paths relative to the directory.

    Args:
        directory: A model's directory.
        suffix: `.onnx`, looked for in `onnx/` and at the top, or `.xml`, looked for in `openvino/` and at the top.
    """
    folder = {".onnx": "onnx", ".xml": "openvino"}[suffix]
    found = [*directory.glob(f"{folder}/*{suffix}"), *directory.glob(f"*{suffix}")]
    return tuple(sorted(path.relative_to(directory).as_posix() for path in found if path.is_file()))

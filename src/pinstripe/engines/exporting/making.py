"""Graphs, made and checked."""

from importlib import metadata
from pathlib import Path
from typing import Final

from pinstripe.engines.exporting.onnx_graph import write_onnx
from pinstripe.engines.exporting.onnx_int8 import write_int8_onnx
from pinstripe.engines.exporting.openvino_graph import write_openvino
from pinstripe.engines.exporting.openvino_int8 import write_int8_openvino
from pinstripe.engines.exporting.request import (
    CALIBRATION_FILE,
    GRAPH_FILES,
    ExportRequest,
    QuantizeRequest,
)
from pinstripe.engines.exporting.result import write_result
from pinstripe.engines.exporting.verifying import load_graph, load_torch, relative_difference
from pinstripe.engines.protocol import Artefact
from pinstripe.errors import EngineError

__all__ = ["export", "quantize"]

_TOLERANCE: Final = 1e-3
_DISTRIBUTIONS: Final = ("pinstripe", "torch", "transformers", "onnx", "onnxruntime", "openvino", "nncf")


def export(request: ExportRequest, directory: Path) -> Path:
    """Write the float32 graph for the network's task, with dynamic batch and sequence, and check it against torch.

    Args:
        request: What to export.
        directory: An existing directory. Beside the graph, `export.json` there tells how close to torch it is, and
            the versions that made it.

    Returns:
        The graph's file.

    Raises:
        EngineError: A library is missing, the network cannot be exported, or the graph's results differ from torch's.
        OSError: The graph or `export.json` cannot be written.
    """
    network, path = request.network, directory / GRAPH_FILES[request.format]
    if request.format == "onnx":
        write_onnx(network, path)
    else:
        write_openvino(network, path)
    artefact = Artefact(format=request.format, path=str(path), origin="export")
    graph = load_graph(network, artefact, request.format, "float32")
    difference = relative_difference(network, graph.forward, load_torch(network).forward)
    if difference > _TOLERANCE:
        message = f"{network.name} as {request.format} differs from torch by {difference:.2g} of the largest value"
        raise EngineError(f"{message}, more than {_TOLERANCE}; use engine torch-eager for it")
    write_result(directory, relative_difference=difference, versions=_versions())
    return path


def quantize(request: QuantizeRequest, directory: Path) -> Path:
    """Write an int8 graph, and note how far from the float32 one it is on random ids.

    That is a harsh input and no measure of quality, which only real texts give; but it must be a number.

    Args:
        request: What to quantize.
        directory: As for `export`; for `static`, with the calibration's file in it, which is removed.

    Returns:
        The graph's file.

    Raises:
        EngineError: A library is missing, or the graph cannot be quantized or gives no numbers.
        OSError: The graph or `export.json` cannot be written.
    """
    network, source, path = request.network, Path(request.source), directory / GRAPH_FILES[request.format]
    if request.format == "onnx":
        write_int8_onnx(source, path)
    else:
        calibration = directory / CALIBRATION_FILE if request.quantization == "static" else None
        write_int8_openvino(network, source, path, calibration)
        if calibration is not None:
            calibration.unlink()
    artefact = Artefact(format=request.format, path=str(path), origin="export", quantization=request.quantization)
    graph = load_graph(network, artefact, request.format, "int8")
    original = Artefact(format=request.format, path=request.source, origin="export")
    reference = load_graph(network, original, request.format, "float32")
    difference = relative_difference(network, graph.forward, reference.forward)
    if difference == float("inf"):
        raise EngineError(f"{network.name} gives no numbers after quantization; use float32 or bfloat16 for it")
    write_result(directory, relative_difference=difference, versions=_versions())
    return path


def _versions() -> dict[str, str]:
    found = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found

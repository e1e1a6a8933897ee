"""A model as an OpenVINO graph."""

import errno
from pathlib import Path
from typing import Any

from pinstripe.engines.exporting.position_buckets import bucket_tables
from pinstripe.engines.exporting.traceable import import_torch, make_traceable
from pinstripe.engines.graphs.openvino_library import import_openvino
from pinstripe.engines.importing import one_line
from pinstripe.models import Network

__all__ = ["save_openvino", "write_openvino"]


def write_openvino(network: Network, path: Path) -> None:
    """Write the float32 graph for the network's task, with dynamic batch and sequence: an `.xml` and its `.bin`.

    Raises:
        EngineError: A library is missing, or the network cannot be loaded.
        OSError: The file cannot be written.
    """
    torch, openvino = import_torch(), import_openvino()
    traceable = make_traceable(network)
    with torch.inference_mode(), bucket_tables(network, traceable):
        graph = openvino.convert_model(traceable.module, example_input=traceable.example)
    for output, name in zip(graph.outputs, traceable.outputs, strict=True):
        output.get_tensor().set_names({name})
    save_openvino(openvino, graph, path)


def save_openvino(openvino: Any, graph: Any, path: Path) -> None:
    """Write a graph, its weights as they are.

    Raises:
        OSError: The file cannot be written.
    """
    try:
        openvino.save_model(graph, str(path), compress_to_fp16=False)
    except RuntimeError as error:
        # It does not say why; a full disk is `iostream error`.
        raise OSError(errno.EIO, f"openvino cannot write {path.name} ({one_line(error)})") from error

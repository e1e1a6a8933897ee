"""Writes a model as an ONNX or OpenVINO graph; `python -m pinstripe.engines.export` is started by `prepare`.

Its argument is a directory with an `ExportRequest` in it. Its standard input is a pipe from the parent: when that
closes, the parent is gone, and so is this process.
"""

import os
import sys
import threading
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from pinstripe.cache import cache_directory
from pinstripe.engines.export_request import GRAPH_FILES, REQUEST_FILE, USAGE_EXIT, ExportFormat, ExportRequest
from pinstripe.engines.export_result import write_result
from pinstripe.engines.importing import import_library, one_line
from pinstripe.engines.openvino import import_openvino
from pinstripe.engines.protocol import Artefact, LoadRequest
from pinstripe.engines.registry import engine
from pinstripe.engines.torch_eager import load_network
from pinstripe.errors import EngineError, ExecutionError, PinstripeError, UsageError
from pinstripe.models import Network, TokenBatch

__all__ = ["export", "main"]

_ENGINES: Final[dict[ExportFormat, str]] = {"onnx": "onnxruntime", "openvino": "openvino"}
_OPSET: Final = 17
"""The first with a LayerNormalization operator."""
_TOLERANCE: Final = 1e-3


def export(request: ExportRequest, directory: Path) -> Path:
    """Write the graph for the network's task, with dynamic batch and sequence, and check it against torch.

    Args:
        request: What to export.
        directory: An existing directory. Beside the graph, `export.json` there tells how close to torch it is, and
            the versions that made it.

    Returns:
        The graph's file.

    Raises:
        EngineError: A library is missing, the network cannot be exported, or the graph's results differ from torch's.
        ExecutionError: The OpenVINO graph cannot be written.
        OSError: The ONNX graph or `export.json` cannot be written.
    """
    network, path = request.network, directory / GRAPH_FILES[request.format]
    torch = _import_torch()
    if request.format == "onnx":
        _write_onnx(torch, network, path)
    else:
        _write_openvino(torch, network, path)
    difference = _verify(network, request.format, path)
    versions = _versions("pinstripe", "torch", "transformers", "onnx", "onnxruntime", "openvino")
    write_result(directory, max_abs_difference=difference, versions=versions)
    return path


def _import_torch() -> Any:
    try:
        return import_library("torch", extra="export")
    except EngineError as error:
        elsewhere = f"or export once where torch is installed, with PINSTRIPE_CACHE={cache_directory()}"
        raise EngineError(f"{error}, {elsewhere}") from error


def _write_onnx(torch: Any, network: Network, path: Path) -> None:
    import_library("onnx", extra="export")
    model, example, outputs = _traceable(torch, network)
    axes = {name: {0: "batch", 1: "sequence"} for name in (*example, *outputs)}
    if network.one_result_a_text:
        axes["logits"] = {0: "batch"}
    with torch.inference_mode():
        # The tracing exporter: its graphs ran 10 to 15 % faster in onnxruntime 1.32 than those of the newer one
        # (MiniLM, one thread, 1x128 and 8x32 tokens), since more of their nodes are fused. Above 2 GB it writes the
        # weights to files of their own.
        torch.onnx.export(
            model,
            tuple(example.values()),
            str(path),
            input_names=list(example),
            output_names=list(outputs),
            dynamic_axes=axes,
            opset_version=_OPSET,
            dynamo=False,
        )


def _write_openvino(torch: Any, network: Network, path: Path) -> None:
    openvino = import_openvino()
    model, example, outputs = _traceable(torch, network)
    with torch.inference_mode():
        graph = openvino.convert_model(model, example_input=example)
    for output, name in zip(graph.outputs, outputs, strict=True):
        output.get_tensor().set_names({name})
    try:
        openvino.save_model(graph, str(path), compress_to_fp16=False)
    except RuntimeError as error:
        raise ExecutionError(f"openvino cannot write {path}: {one_line(error)}; is there space left?") from error


def _traceable(torch: Any, network: Network) -> tuple[Any, dict[str, Any], tuple[str, ...]]:
    """Return a module with positional inputs, example inputs by name, and the names of its outputs."""
    batch = _padded_batch(network, lengths=(8, 5))
    arrays = {"input_ids": batch.ids, "attention_mask": batch.attention_mask()}
    if network.type_vocab_size > 1 and batch.type_ids is not None:
        arrays["token_type_ids"] = batch.type_ids
    # A tensor object of its own for every input: tracers take one object given twice for one input.
    example = {name: torch.tensor(array, dtype=torch.int64) for name, array in arrays.items()}
    outputs: tuple[str, ...] = ("logits",)
    if network.task == "embedding":
        outputs = ("last_hidden_state",)
    elif network.task == "question-answering":
        outputs = ("start_logits", "end_logits")
    return _module(torch, load_network(network), tuple(example), outputs), example, outputs


def _module(torch: Any, model: Any, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
    """Wrap the model: tracers want positional inputs with names, and plain tensors as outputs."""

    class Graph(torch.nn.Module):  # type: ignore[misc] # the base is only known at run time
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            given = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
            result = self.model(**{name: given[name] for name in inputs}, return_dict=True)
            values = tuple(getattr(result, name) for name in outputs)
            return values if len(values) > 1 else values[0]

    return Graph().eval()


def _padded_batch(network: Network, lengths: Sequence[int]) -> TokenBatch:
    """Return pseudo-random ids, none of them the padding id, of the given lengths (cut to `max_tokens`)."""
    random = np.random.default_rng(0)
    lengths = [min(length, network.max_tokens) for length in lengths]
    ids = random.integers(1, network.vocab_size, (len(lengths), max(lengths)))
    ids = (network.pad_token_id + ids) % network.vocab_size
    type_ids = random.integers(0, max(1, network.type_vocab_size), ids.shape)
    for row, length in enumerate(lengths):
        ids[row, length:], type_ids[row, length:] = network.pad_token_id, 0
    return TokenBatch(ids=ids.astype(np.int32), lengths=np.array(lengths, np.int32), type_ids=type_ids.astype(np.int32))


def _verify(network: Network, graph_format: ExportFormat, path: Path) -> float:
    """Return the largest difference to torch over padded and unpadded batches, of one token and of many."""
    directory = Artefact(format="safetensors", path=network.directory, origin="model")
    reference = engine("torch-eager").load(LoadRequest(network=network, artefact=directory, threads=1))
    artefact = Artefact(format=graph_format, path=str(path), origin="export")
    exported = engine(_ENGINES[graph_format]).load(LoadRequest(network=network, artefact=artefact, threads=1))
    worst = 0.0
    for lengths in ((1,), (31,), (40, 3, 17), (12, 12)):
        batch = _padded_batch(network, lengths)
        difference = np.abs(exported.forward(batch) - reference.forward(batch))
        if not network.one_result_a_text:
            difference = difference[batch.attention_mask() == 1]
        worst = max(worst, float(np.nan_to_num(difference, nan=np.inf).max()))
    if worst > _TOLERANCE:
        message = f"{network.name} as {graph_format} differs from torch by {worst:.2g}, more than {_TOLERANCE}"
        raise EngineError(f"{message}; use engine torch-eager for it")
    return worst


def _versions(*distributions: str) -> dict[str, str]:
    found = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _exit_with_parent() -> None:
    # Not through sys.stdin: a thread that waits in it makes Python abort at exit.
    while os.read(0, 1):
        pass
    os._exit(1)


def main(arguments: Sequence[str]) -> int:
    """Export into the directory that is named; return 0, 2 for what the user can change, 1 for any other failure."""
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    directory = Path(arguments[0])
    try:
        request = msgspec.json.decode((directory / REQUEST_FILE).read_bytes(), type=ExportRequest)
        export(request, directory)
    except (PinstripeError, OSError) as error:
        sys.stderr.write(f"{one_line(error)}\n")
        return USAGE_EXIT if isinstance(error, UsageError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

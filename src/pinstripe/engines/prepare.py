"""The file that an engine loads: the model's own, or one exported once and kept in the cache."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Final

import msgspec

from pinstripe.cache import build_once, cache_directory
from pinstripe.engines.export_request import GRAPH_FILES, REQUEST_FILE, USAGE_EXIT, ExportFormat, ExportRequest
from pinstripe.engines.export_result import damaged_files
from pinstripe.engines.protocol import Artefact, Engine
from pinstripe.engines.weights import check_float32_weights, weight_types
from pinstripe.errors import EngineError, ExecutionError
from pinstripe.models import USUAL_GRAPHS, Network, artefact_candidates

__all__ = ["prepare"]

_SUFFIXES: Final[dict[ExportFormat, str]] = {"onnx": ".onnx", "openvino": ".xml"}
_EXPORT_VERSION: Final = 1
"""Part of the cache's key: raised when the exporter writes something else. Library versions are not part of it, so that
an export is found in an environment without torch; they are recorded in its `export.json`."""
_EXPORT_LIMIT_S: Final = 30 * 60
_TAIL_BYTES: Final = 2000


def prepare(engine: Engine, network: Network, *, file: str | None = None, python: str = sys.executable) -> Artefact:
    """Return the file to load, exporting the model if there is none.

    Called in the parent before workers start; torch runs in a process of its own, at most once for a model, task and
    format, however many callers there are.

    Args:
        engine: The engine that will load it.
        network: The model.
        file: A graph chosen by the user, absolute or relative to the model's directory.
        python: Interpreter for the export; it needs the extra `export` and the engine's library.

    Raises:
        EngineError: The chosen file is absent, of the wrong kind or not float32; several files could be meant; or
            `python` cannot export such a model.
        ExecutionError: The export crashed or took more than 30 minutes, or the cache cannot be written.
    """
    match engine.format:
        case "none" | "safetensors" as kind:
            if file is not None:
                raise EngineError(f"engine {engine.name} reads no graph, but --file {file} was given; leave it out")
            return Artefact(format=kind, path=network.directory if kind == "safetensors" else "", origin="model")
        case kind:
            if file is not None:
                return Artefact(format=kind, path=str(_chosen(engine, kind, network, file)), origin="model")
            if found := _beside_the_weights(kind, Path(network.directory)):
                return Artefact(format=kind, path=str(found), origin="model")
            return Artefact(format=kind, path=str(_exported(kind, network, python)), origin="export")


def _chosen(engine: Engine, graph_format: ExportFormat, network: Network, file: str) -> Path:
    path = Path(network.directory, file).absolute()
    if path.suffix != _SUFFIXES[graph_format]:
        raise EngineError(f"engine {engine.name} reads {_SUFFIXES[graph_format]} files, not {file}")
    if not path.is_file():
        raise EngineError(f"{path} does not exist; --file is relative to {network.directory}, or absolute")
    check_float32_weights(path, rounded=graph_format == "openvino")
    return path


def _beside_the_weights(graph_format: ExportFormat, directory: Path) -> Path | None:
    """Return the usual file if it is float32, else the only float32 one; files in other precisions are passed over."""
    candidates = artefact_candidates(directory, _SUFFIXES[graph_format])
    for usual in USUAL_GRAPHS[_SUFFIXES[graph_format]]:
        if usual in candidates and _is_float32(directory / usual):
            return directory / usual
    usable = [name for name in candidates if _is_float32(directory / name)]
    if len(usable) > 1:
        message = f"{directory} has several {graph_format} files: {', '.join(usable)}"
        raise EngineError(f"{message}; choose one with --file")
    return directory / usable[0] if usable else None


def _is_float32(path: Path) -> bool:
    return weight_types(path) == {"float32"}


def _exported(graph_format: ExportFormat, network: Network, python: str) -> Path:
    key = f"{network.fingerprint}-{network.task}-{graph_format}-{_EXPORT_VERSION}"
    directory = cache_directory() / "exports" / key
    build_once(directory, lambda unfinished: _run_export(graph_format, network, python, unfinished))
    if damaged := damaged_files(directory):
        message = f"the cached export {directory} is damaged ({', '.join(damaged)})"
        raise ExecutionError(f"{message}; delete that directory, and the model will be exported again")
    return directory / GRAPH_FILES[graph_format]


def _run_export(graph_format: ExportFormat, network: Network, python: str, directory: Path) -> None:
    request = ExportRequest(network=network, format=graph_format)
    (directory / REQUEST_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(request)))
    # Warnings of the exporters concern their authors, and PYTHONWARNINGS=error would make them fatal.
    command = [python, "-P", "-W", "ignore", "-m", "pinstripe.engines.export", str(directory)]
    what = f"cannot export {network.name} to {graph_format} with {python}"
    with tempfile.TemporaryFile() as errors:
        try:
            # Transformers reads its own docstrings, which PYTHONOPTIMIZE=2 takes away.
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONOPTIMIZE"}
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, env=environment
            )
        except OSError as error:
            raise EngineError(f"{what}: {error}") from error
        # Standard input stays open: its end tells the process that its parent is gone.
        with process:
            try:
                code = process.wait(_EXPORT_LIMIT_S)
            except subprocess.TimeoutExpired:
                message = f"{what}: not done after {_EXPORT_LIMIT_S // 60} minutes"
                raise ExecutionError(f"{message}; use engine torch-eager for it") from None
            finally:
                process.kill()
        if code == USAGE_EXIT:
            raise EngineError(f"{what}: {_last_lines(errors, 1)}")
        if code:
            raise ExecutionError(f"{what}: {_last_lines(errors, 4)}")


def _last_lines(errors: IO[bytes], count: int) -> str:
    """Return the end of what was written, on one line."""
    size = errors.seek(0, 2)
    errors.seek(max(0, size - _TAIL_BYTES))
    lines = [line.strip() for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    return " | ".join(lines[-count:]) or "it was killed"

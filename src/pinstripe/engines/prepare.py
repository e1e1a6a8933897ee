"""The file that an engine loads: the model's own, or one exported or quantized once and kept in the cache."""

import os
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import msgspec

from pinstripe.cache import build_once, cache_directory
from pinstripe.engines.exporting.calibration import Calibration, write_batches
from pinstripe.engines.exporting.request import (
    CALIBRATION_FILE,
    GRAPH_FILES,
    MESSAGE,
    REQUEST_FILE,
    USAGE_EXIT,
    WRITE_EXIT,
    ExportRequest,
    GraphFormat,
    QuantizeRequest,
    Request,
)
from pinstripe.engines.exporting.result import damaged_files
from pinstripe.engines.graphs.weights import check_float32_weights, graph_digest, weight_types
from pinstripe.engines.last_words import last_words
from pinstripe.engines.options import read_options
from pinstripe.engines.other_python import explain_end
from pinstripe.engines.precision import check_precision
from pinstripe.engines.protocol import Artefact, Engine, GraphEngine, OptionValue, Precision, Quantization
from pinstripe.engines.python_process import Finished, run_module
from pinstripe.errors import EngineError, ExecutionError
from pinstripe.models import USUAL_GRAPHS, Network, artefact_candidates

__all__ = ["prepare"]

_SUFFIXES: Final[dict[GraphFormat, str]] = {"onnx": ".onnx", "openvino": ".xml"}
_EXPORT_VERSION: Final = 3
"""Part of the cache's key: raised when the exporter writes something else. Library versions are not part of it, so that
an export is found in an environment without torch; they are recorded in its `export.json`."""
_QUANTIZE_VERSION: Final = 1
"""Likewise for quantized graphs."""
_LIMIT_S: Final = 30 * 60
_INT8: Final = frozenset({"int8", "uint8"})


def prepare(
    engine: Engine,
    network: Network,
    *,
    precision: Precision = "float32",
    options: Mapping[str, OptionValue] | None = None,
    file: str | None = None,
    calibration: Calibration | None = None,
    python: str = sys.executable,
    stop: threading.Event | None = None,
) -> Artefact:
    """Return the file to load, exporting and quantizing the model if there is none.

    Called in the parent before workers start; torch runs in a process of its own, at most once for a model, task,
    format and quantization, however many callers there are.

    Args:
        engine: The engine that will load it.
        network: The model.
        precision: Precision of the computation.
        options: Options of the engine, by name.
        file: A graph chosen by the user, absolute or relative to the model's directory: float32, or already int8 where
            that is the precision.
        calibration: Texts for a `static` quantization, which needs them; None for any other.
        python: Interpreter for the export; it needs the extra `export` and the engine's library.
        stop: Ends an export, or the wait for another process's, when another thread sets it; None if none will.

    Raises:
        EngineError: The engine or the CPU lacks the precision, an option is not understood, the chosen file is absent,
            of the wrong kind or in another precision, several files could be meant, calibration texts are missing or
            not used, or `python` cannot export such a model.
        ExecutionError: The export crashed, took more than 30 minutes or was stopped, or the cache cannot be written.
    """
    given = options or {}
    check_precision(engine, precision)
    read_options(engine, given, engine.options_type)
    if engine.format in {"none", "safetensors"}:
        if file is not None:
            raise EngineError(f"engine {engine.name} reads no graph, but --file {file} was given; leave it out")
        _check_calibration(engine, "none", calibration)
        path = network.directory if engine.format == "safetensors" else ""
        return Artefact(format=engine.format, path=path, origin="model")
    quantization = cast("GraphEngine", engine).quantization(precision, given)
    _check_calibration(engine, quantization, calibration)
    return _Preparation(engine, cast("GraphFormat", engine.format), network, python, stop).artefact(
        file, quantization, calibration
    )


def _check_calibration(engine: Engine, quantization: Quantization, calibration: Calibration | None) -> None:
    if quantization == "static" and calibration is None:
        raise EngineError("static quantization takes its scales from texts like yours; name a file with --calibration")
    if quantization != "static" and calibration is not None:
        raise EngineError(
            f"--calibration was given, but {engine.name} uses no calibration texts as asked; leave it out, or ask "
            "openvino for it with --precision int8 --option openvino.quantization=static"
        )


@dataclass(frozen=True, slots=True)
class _Preparation:
    """Finding or making a graph."""

    engine: Engine
    format: GraphFormat
    network: Network
    python: str
    stop: threading.Event | None

    def artefact(self, file: str | None, quantization: Quantization, calibration: Calibration | None) -> Artefact:
        path = self._chosen(file, quantization) if file is not None else self._beside_the_weights()
        if path is not None and (quantization == "none" or weight_types(path) & _INT8):
            return Artefact(format=self.format, path=str(path), origin="model")
        if path is not None:
            source, key = path, f"{self.network.fingerprint}-{graph_digest(path)}"
        else:
            source = self._exported()
            key = source.parent.name
        if quantization == "none":
            return Artefact(format=self.format, path=str(source), origin="export")
        return Artefact(
            format=self.format,
            path=str(self._quantized(source, key, quantization, calibration)),
            origin="export",
            quantization=quantization,
            calibration=calibration.digest if calibration else None,
        )

    def _chosen(self, file: str, quantization: Quantization) -> Path:
        path, suffix = Path(self.network.directory, file).absolute(), _SUFFIXES[self.format]
        if path.suffix != suffix:
            raise EngineError(f"engine {self.engine.name} reads {suffix} files, not {file}")
        if not path.is_file():
            raise EngineError(f"{path} does not exist; --file is relative to {self.network.directory}, or absolute")
        if quantization == "none" or not weight_types(path) & _INT8:
            check_float32_weights(path, rounded=self.format == "openvino")
        return path

    def _beside_the_weights(self) -> Path | None:
        """Return the usual file if it is float32, else the only float32 one; others are passed over."""
        directory, suffix = Path(self.network.directory), _SUFFIXES[self.format]
        candidates = artefact_candidates(directory, suffix)
        for usual in USUAL_GRAPHS[suffix]:
            if usual in candidates and _is_float32(directory / usual):
                return directory / usual
        usable = [name for name in candidates if _is_float32(directory / name)]
        if len(usable) > 1:
            message = f"{directory} has several {self.format} files: {', '.join(usable)}"
            raise EngineError(f"{message}; choose one with --file")
        return directory / usable[0] if usable else None

    def _exported(self) -> Path:
        key = f"{self.network.fingerprint}-{self.network.task}-{self.format}-{_EXPORT_VERSION}"
        request = ExportRequest(network=self.network, format=self.format)
        return self._built(cache_directory() / "exports" / key, request, None)

    def _quantized(self, source: Path, key: str, quantization: Quantization, calibration: Calibration | None) -> Path:
        digest = f"-{calibration.digest}" if calibration else ""
        request = QuantizeRequest(
            network=self.network, format=self.format, source=str(source), quantization=quantization
        )
        directory = cache_directory() / "quantized" / f"{key}-{quantization}{digest}-{_QUANTIZE_VERSION}"
        return self._built(directory, request, calibration)

    def _built(self, directory: Path, request: Request, calibration: Calibration | None) -> Path:
        build_once(directory, lambda unfinished: self._run(request, calibration, unfinished), stop=self.stop)
        if damaged := damaged_files(directory):
            message = f"the cached export {directory} is damaged ({', '.join(damaged)})"
            raise ExecutionError(f"{message}; delete that directory, and the model will be exported again")
        return directory / GRAPH_FILES[self.format]

    def _run(self, request: Request, calibration: Calibration | None, directory: Path) -> None:
        (directory / REQUEST_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(request)))
        if calibration is not None:
            write_batches(calibration, directory / CALIBRATION_FILE)
        verb = "export" if isinstance(request, ExportRequest) else "quantize"
        what = f"cannot {verb} {self.network.name} to {self.format} with {self.python}"
        finished = self._run_exporting(directory, what)
        if finished.code == 0 and not damaged_files(directory):
            return
        raise _failure(self.python, what, finished)

    def _run_exporting(self, directory: Path, what: str) -> Finished:
        # Its end tells the process, and what it started, that this one is gone.
        held_there, held_here = os.pipe()
        try:
            return run_module(
                self.python,
                "pinstripe.engines.exporting",
                str(held_there),
                str(directory),
                limit_s=_LIMIT_S,
                stop=self.stop,
                pass_fds=(held_there,),
            )
        except ExecutionError as error:
            raise ExecutionError(f"{what}: {error}; use engine torch-eager") from error
        finally:
            os.close(held_there)
            os.close(held_here)


def _is_float32(path: Path) -> bool:
    return weight_types(path) == {"float32"}


def _failure(python: str, what: str, finished: Finished) -> Exception:
    """Return what an export that has ended without a result means."""
    messages = [line.removeprefix(MESSAGE) for line in finished.errors.splitlines() if line.startswith(MESSAGE)]
    if messages and finished.code == WRITE_EXIT:
        return OSError(messages[-1])  # `build_once` says where
    if messages:
        kind = EngineError if finished.code == USAGE_EXIT else ExecutionError
        return kind(f"{what}: {messages[-1]}")
    if why := explain_end(python, finished.errors, finished.code):
        return EngineError(f"{what}: {why}")
    return ExecutionError(f"{what}: {last_words(finished.errors, 4) or f'it ended with {finished.code}, silently'}")

"""TensorFlow and Keras in this process: imported once, with what has to be set before."""

import importlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pinstripe.engines.importing import import_library
from pinstripe.engines.instruction_sets import onednn_isa
from pinstripe.errors import EngineError
from pinstripe.machine import read_isa

__all__ = ["DISTRIBUTIONS", "EXTRA", "KerasRuntime", "start_keras"]

EXTRA: Final = "tensorflow"
DISTRIBUTIONS: Final = ("tensorflow", "keras-hub")
_ONEDNN: Final = "TF_ENABLE_ONEDNN_OPTS"
# What makes oneDNN compute float32 in less: its own variables, and TensorFlow's (mkl_util.h).
_MATH_MODE_VARIABLES: Final = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE", "TF_SET_ONEDNN_FPMATH_MODE")
# absl's form of information and warnings, and what looking for a GPU ends in although none is visible.
_CHATTER: Final = re.compile(rb"[IW]\d{4} |WARNING: All log messages before absl|E\d{4} .*cuInit")


@dataclass(frozen=True, slots=True)
class KerasRuntime:
    """The modules."""

    tensorflow: Any
    keras: Any
    keras_hub: Any
    onednn_isa: Mapping[str, str] = field(default_factory=dict)
    """Instructions that oneDNN's kernels are limited to, as a setting of a report; empty where it was not asked."""

    @property
    def onednn(self) -> bool | None:
        """Whether TensorFlow uses oneDNN's kernels; None where this version does not say."""
        with suppress(ImportError, AttributeError):  # there is no public name for it
            return bool(importlib.import_module("tensorflow.python.util._pywrap_util_port").IsMklEnabled())
        return None

    @property
    def threads(self) -> int:
        """Compute threads of one operation; 0 in TensorFlow's own words stands for all CPUs of the process."""
        return int(self.tensorflow.config.threading.get_intra_op_parallelism_threads()) or _default_threads()


def start_keras(*, threads: int | None, onednn: bool, interop_threads: int | None = None) -> KerasRuntime:
    """Import TensorFlow and Keras, without looking for a GPU.

    Args:
        threads: Compute threads of one operation; None leaves their number to TensorFlow.
        onednn: Whether oneDNN's kernels take the place of TensorFlow's own.
        interop_threads: Operations that may run beside each other; None for one, or to leave that to TensorFlow, too,
            if `threads` is None.

    Raises:
        EngineError: A library is missing or broken, the CPU lacks AVX, Keras runs on another backend, or a setting
            cannot take effect any more, since this process uses TensorFlow already.
    """
    for variable in _MATH_MODE_VARIABLES:
        if os.environ.get(variable, "STRICT").upper() not in {"STRICT", "FP32", ""}:
            raise EngineError(f"{variable}={os.environ[variable]} computes float32 in less; unset it")
    isa = read_isa()
    if "sse2" in isa and "avx" not in isa:  # x86; its import would abort, and end the process
        raise EngineError("TensorFlow needs a CPU with AVX, which this one lacks; choose another engine")
    runtime = _imported(onednn=onednn)
    if (backend := runtime.keras.backend.backend()) != "tensorflow":
        raise EngineError(f"Keras runs on {backend} in this process; start another one, with KERAS_BACKEND=tensorflow")
    if runtime.onednn not in {None, onednn}:
        state = "does not use" if onednn else "uses"
        raise EngineError(
            f"this TensorFlow {state} oneDNN, and it is too late to change that, or its build cannot; ask for "
            f"onednn={str(not onednn).lower()}"
        )
    _set_threads(runtime.tensorflow, threads, 1 if interop_threads is None and threads is not None else interop_threads)
    return replace(runtime, onednn_isa=onednn_isa(lambda: _use_onednn(runtime.tensorflow)))


def _imported(*, onednn: bool) -> KerasRuntime:
    if "tensorflow" not in sys.modules:
        os.environ |= {
            _ONEDNN: str(int(onednn)),
            "KERAS_BACKEND": "tensorflow",
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CPP_MIN_LOG_LEVEL": "2",  # errors only
        }
    with _without_chatter():
        tensorflow = import_library("tensorflow", extra=EXTRA)
        tensorflow.config.set_visible_devices([], "GPU")
        keras = import_library("keras", extra=EXTRA)
        # It goes by another name on PyPI, keras-hub.
        return KerasRuntime(tensorflow, keras, import_library("keras_hub", extra=EXTRA))


def _set_threads(tensorflow: Any, threads: int | None, interop_threads: int | None) -> None:
    threading = tensorflow.config.threading
    try:
        if threads is not None and threading.get_intra_op_parallelism_threads() != threads:
            threading.set_intra_op_parallelism_threads(threads)
        if interop_threads is not None and threading.get_inter_op_parallelism_threads() != interop_threads:
            threading.set_inter_op_parallelism_threads(interop_threads)
    except RuntimeError as error:  # both are fixed by the first operation
        raise EngineError(
            f"TensorFlow already runs with other threads in this process than the {threads} (and {interop_threads} for "
            "operations) asked for; start another"
        ) from error


def _use_onednn(tensorflow: Any) -> None:
    tensorflow.function(tensorflow.nn.softmax)(tensorflow.ones((1, 16)))


def _default_threads() -> int:
    """As TensorFlow's local_device.cc does: its variable, else the CPUs that the process may use."""
    given = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
    return int(given) if given.isdigit() and int(given) else len(os.sched_getaffinity(0))


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Drop what TensorFlow's libraries say to standard error before any setting of theirs counts; keep the rest."""
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            said.seek(0)
            os.write(2, b"".join(line for line in said if not _CHATTER.match(line)))

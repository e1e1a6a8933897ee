"""Ways to multiply large matrices, one a library. Used in a probe's process only."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.importing import import_library
from pinstripe.errors import EngineError
from pinstripe.peak.description import PeakPrecision

__all__ = ["KERNELS", "Kernel", "Product"]

Product: TypeAlias = Callable[[], object]
"""Computes one product."""
Kernel: TypeAlias = Callable[[int, int, int], Product]
"""Makes random matrices [m, k] and [k, n], the second one in the form that a layer's weights would be kept in."""


def _torch_linear(precision: PeakPrecision, threads: int | None) -> Kernel:
    """What torch does in eager mode: MKL, or oneDNN for bfloat16."""
    torch = _torch(threads)

    def kernel(m: int, n: int, k: int) -> Product:
        inputs, weights = (_torch_matrix(torch, rows, k, precision) for rows in (m, n))
        return lambda: torch.nn.functional.linear(inputs, weights)

    return kernel


def _torch_onednn(precision: PeakPrecision, threads: int | None) -> Kernel:
    """What torch's compiler does with frozen weights: oneDNN, with weights reordered once."""
    torch = _torch(threads)

    def kernel(m: int, n: int, k: int) -> Product:
        inputs, weights = (_torch_matrix(torch, rows, k, precision) for rows in (m, n))
        packed = torch.ops.mkldnn._reorder_linear_weight(weights, m)  # noqa: SLF001 - has no public name
        linear = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 - likewise
        return lambda: linear(inputs, packed, None, "none", [], "")

    return kernel


def _openvino(precision: PeakPrecision, threads: int | None) -> Kernel:
    """OpenVINO with constant weights."""
    from pinstripe.engines.openvino import import_openvino  # noqa: PLC0415 - only this probe needs it

    library = import_openvino()
    core = library.Core()
    wanted = {"float32": library.Type.f32, "bfloat16": library.Type.bf16}[precision]
    properties = {"INFERENCE_PRECISION_HINT": wanted, "PERFORMANCE_HINT": "LATENCY"}
    if threads is not None:
        properties |= {
            "INFERENCE_NUM_THREADS": threads,
            "ENABLE_CPU_PINNING": False,
            "ENABLE_HYPER_THREADING": True,
            "NUM_STREAMS": 1,
        }

    def kernel(m: int, n: int, k: int) -> Product:
        operators = library.opset13
        inputs = operators.parameter([m, k], np.float32)
        product = operators.matmul(inputs, operators.constant(_matrix(n, k)), False, True)  # noqa: FBT003 - its form
        compiled = core.compile_model(library.Model([product], [inputs]), "CPU", properties)
        if (effective := compiled.get_property("INFERENCE_PRECISION_HINT")) != wanted:
            raise EngineError(f"openvino computes in {effective.get_type_name()} instead of {precision} on this CPU")
        if threads is not None:
            _check_threads(int(compiled.get_property("INFERENCE_NUM_THREADS")), threads)
        request = compiled.create_infer_request()
        request.set_input_tensor(library.Tensor(_matrix(m, k)))
        return lambda: request.infer(share_outputs=True)  # without a copy of the result

    return kernel


def _numpy(precision: PeakPrecision, threads: int | None) -> Kernel:
    """Numpy's BLAS, which is OpenBLAS in its wheels; it knows no bfloat16."""
    from threadpoolctl import threadpool_info  # noqa: PLC0415 - only this probe needs it

    del precision
    if threads is not None:
        for pool in threadpool_info():
            _check_threads(int(pool["num_threads"]), threads)

    def kernel(m: int, n: int, k: int) -> Product:
        inputs, weights, product = _matrix(m, k), _matrix(n, k).T, np.empty((m, n), np.float32)
        return lambda: np.matmul(inputs, weights, out=product)

    return kernel


KERNELS: Final[dict[str, Callable[[PeakPrecision, int | None], Kernel]]] = {
    "torch-linear": _torch_linear,
    "torch-onednn": _torch_onednn,
    "openvino": _openvino,
    "numpy": _numpy,
}
"""By name of the probe: loads a library for a precision and a number of threads. Raises EngineError if that fails."""


def _torch(threads: int | None) -> Any:
    torch = import_library("torch", extra="torch")
    if threads is not None:
        torch.set_num_threads(threads)
        _check_threads(torch.get_num_threads(), threads)
    return torch


def _torch_matrix(torch: Any, rows: int, columns: int, precision: PeakPrecision) -> Any:
    return torch.from_numpy(_matrix(rows, columns)).to(getattr(torch, precision))


def _matrix(rows: int, columns: int) -> NDArray[np.float32]:
    # Random, since a processor draws less power, and so runs faster, on numbers that are all alike.
    return np.random.default_rng(0).random((rows, columns), dtype=np.float32)


def _check_threads(effective: int, wanted: int) -> None:
    if effective != wanted:
        raise EngineError(f"it computes with {effective} threads instead of {wanted}")

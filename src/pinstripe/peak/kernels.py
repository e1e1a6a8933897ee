"""Ways to multiply large matrices, one a library. Used in a probe's process only."""

from collections.abc import Callable
from functools import partial
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

_INT8_SCALE: Final = 2.0**-13
"""Brings sums of products of 8-bit integers back into 8 bits, most of them without clipping."""
_INT8_ZERO: Final = 128


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
    if precision == "int8":
        return partial(_torch_int8_product, torch)

    def kernel(m: int, n: int, k: int) -> Product:
        inputs, weights = (_torch_matrix(torch, rows, k, precision) for rows in (m, n))
        packed = torch.ops.mkldnn._reorder_linear_weight(weights, m)  # noqa: SLF001 - has no public name
        linear = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001 - likewise
        return lambda: linear(inputs, packed, None, "none", [], "")

    return kernel


def _torch_int8_product(torch: Any, m: int, n: int, k: int) -> Product:
    """8-bit integers in and out, so that the way to memory and back is as short as it can be."""
    inputs = torch.from_numpy(_int8_matrix(m, k, offset=0).astype(np.uint8))
    weights = torch.from_numpy(_int8_matrix(n, k, offset=128).astype(np.int8))
    packed = torch.ops.onednn.qlinear_prepack(weights, [m, k])
    scales, zeros = torch.ones(n), torch.zeros(n, dtype=torch.int32)
    after: tuple[Any, ...] = (1.0, _INT8_ZERO, torch.uint8, "none", [], "")
    return lambda: torch.ops.onednn.qlinear_pointwise(inputs, _INT8_SCALE, 0, packed, scales, zeros, None, *after)


def _openvino(precision: PeakPrecision, threads: int | None) -> Kernel:
    """OpenVINO with constant weights; for int8 it rounds the inputs each time, by a scale that is fixed."""
    from pinstripe.engines.graphs.openvino_library import (  # noqa: PLC0415 - only this probe needs it
        import_openvino,
        openvino_core,
    )

    library = import_openvino()
    core = openvino_core()
    wanted = library.Type.bf16 if precision == "bfloat16" else library.Type.f32
    properties = {"INFERENCE_PRECISION_HINT": wanted, "PERFORMANCE_HINT": "LATENCY"}
    if threads is not None:
        properties |= {
            "INFERENCE_NUM_THREADS": threads,
            "ENABLE_CPU_PINNING": False,
            "ENABLE_HYPER_THREADING": True,
            "NUM_STREAMS": 1,
        }

    def kernel(m: int, n: int, k: int) -> Product:
        graph = _openvino_graph(library.opset13, m, n, k, in_int8=precision == "int8")
        compiled = core.compile_model(library.Model(*graph), "CPU", properties)
        if precision == "int8":
            _check_int8(compiled)
        if (effective := compiled.get_property("INFERENCE_PRECISION_HINT")) != wanted:
            raise EngineError(f"openvino computes in {effective.get_type_name()} instead of {precision} on this CPU")
        if threads is not None:
            _check_threads(int(compiled.get_property("INFERENCE_NUM_THREADS")), threads)
        request = compiled.create_infer_request()
        request.set_input_tensor(library.Tensor(_matrix(m, k)))
        return lambda: request.infer(share_outputs=True)  # without a copy of the result

    return kernel


def _openvino_graph(operators: Any, m: int, n: int, k: int, *, in_int8: bool) -> tuple[list[Any], list[Any]]:
    """Return results and parameters."""
    inputs = operators.parameter([m, k], np.float32)
    if in_int8:
        low, high = (operators.constant(np.float32(end)) for end in (0, 1))
        left = operators.fake_quantize(inputs, low, high, low, high, 256)
        integers = operators.constant(_int8_matrix(n, k, offset=128).astype(np.int8))
        scale = operators.constant(np.full((n, 1), _INT8_SCALE, np.float32))  # one a row, as compressed weights have
        right = operators.multiply(operators.convert(integers, np.float32), scale)
    else:
        left, right = inputs, operators.constant(_matrix(n, k))
    return [operators.matmul(left, right, False, True)], [inputs]  # noqa: FBT003 - its form


def _check_int8(compiled: Any) -> None:
    """Whether a graph is computed in 8-bit integers, OpenVINO decides: the kernel's name in its own graph tells."""
    information = [node.get_rt_info() for node in compiled.get_runtime_model().get_ops()]
    kernels = {one["layerType"].value: one["primitiveType"].value for one in information if "primitiveType" in one}
    name = kernels.get("FullyConnected", kernels.get("MatMul", "another operator"))
    if not name.lower().endswith("i8"):  # seen in both cases
        raise EngineError(f"openvino multiplies by {name} instead of in int8 on this CPU")


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


def _int8_matrix(rows: int, columns: int, *, offset: int) -> NDArray[np.float32]:
    """Return whole numbers from -offset to 255 - offset."""
    return np.floor(_matrix(rows, columns) * 256) - offset


def _check_threads(effective: int, wanted: int) -> None:
    if effective != wanted:
        raise EngineError(f"it computes with {effective} threads instead of {wanted}")

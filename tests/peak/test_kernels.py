"""That a probe multiplies what it says, so that its rate is one of whole matrix products."""

from typing import Any

import numpy as np
import pytest

from pinstripe.errors import EngineError
from pinstripe.peak.kernels import KERNELS, _check_int8

M, N, K = 24, 40, 56


def _random(rows: int, columns: int) -> Any:
    return np.random.default_rng(0).random((rows, columns), dtype=np.float32).astype(np.float64)


@pytest.mark.parametrize(
    ("probe", "library"),
    [("torch-linear", "torch"), ("torch-onednn", "torch"), ("openvino", "openvino"), ("numpy", "numpy")],
)
def test_product_is_the_whole_product(probe: str, library: str) -> None:
    """[24, 56] x [56, 40] in float32 agrees with numpy's float64, in every element."""
    pytest.importorskip(library)
    product: Any = KERNELS[probe]("float32", None)(M, N, K)()
    result = np.asarray(product[0] if library == "openvino" else product)

    assert result.shape == (M, N)
    np.testing.assert_allclose(result, _random(M, K) @ _random(N, K).T, rtol=1e-5)


@pytest.mark.parametrize("probe", ["torch-linear", "torch-onednn"])
def test_bfloat16_is_computed_in_bfloat16(probe: str) -> None:
    """The result has the precision that was asked for, 8 bits, and is right within it."""
    torch = pytest.importorskip("torch")
    product: Any = KERNELS[probe]("bfloat16", None)(M, N, K)()

    assert product.dtype == torch.bfloat16
    np.testing.assert_allclose(product.float().numpy(), _random(M, K) @ _random(N, K).T, rtol=2**-6)


def _integers(rows: int, columns: int, offset: int) -> Any:
    return np.floor(_random(rows, columns) * 256) - offset


def test_int8_of_torch_is_the_whole_product_of_integers() -> None:
    """Sums of products of integers, brought back into 8 bits as its scale 2^-13 and zero 128 say, in every element."""
    torch = pytest.importorskip("torch")
    product: Any = KERNELS["torch-onednn"]("int8", None)(M, N, K)()
    exact = _integers(M, K, 0) @ _integers(N, K, 128).T

    assert product.dtype == torch.uint8
    assert len(np.unique(product.numpy())) > 20
    np.testing.assert_allclose(product.numpy(), np.clip(exact / 2**13 + 128, 0, 255), atol=0.51)


def test_int8_of_openvino_is_the_whole_product_of_rounded_inputs() -> None:
    """Inputs rounded to 255ths, weights whole numbers times 2^-13."""
    pytest.importorskip("openvino")
    product: Any = KERNELS["openvino"]("int8", None)(M, N, K)()
    inputs, weights = np.rint(_random(M, K) * 255) / 255, _integers(N, K, 128) / 2**13

    np.testing.assert_allclose(product[0], inputs @ weights.T, atol=1e-5)


def test_openvino_in_another_precision_than_int8_is_refused() -> None:
    """The name of the kernel in OpenVINO's own graph decides; a float32 product of integers would be another peak."""
    openvino = pytest.importorskip("openvino")
    inputs = openvino.opset13.parameter([M, K], np.float32)
    weights = openvino.opset13.constant(np.ones((K, N), np.float32))
    product = openvino.opset13.matmul(inputs, weights, transpose_a=False, transpose_b=False)
    model = openvino.Model([product], [inputs])
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    with pytest.raises(EngineError, match="instead of in int8"):
        _check_int8(compiled)


def test_other_number_of_threads_than_asked_is_refused() -> None:
    """Numpy's threads are set when it is loaded; a probe with any other number would measure something else."""
    with pytest.raises(EngineError, match=r"computes with \d+ threads instead of 1000"):
        KERNELS["numpy"]("float32", 1000)

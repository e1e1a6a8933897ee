"""That a probe multiplies what it says, so that its rate is one of whole matrix products."""

from typing import Any

import numpy as np
import pytest

from pinstripe.errors import EngineError
from pinstripe.peak.kernels import KERNELS

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


def test_other_number_of_threads_than_asked_is_refused() -> None:
    """Numpy's threads are set when it is loaded; a probe with any other number would measure something else."""
    with pytest.raises(EngineError, match=r"computes with \d+ threads instead of 1000"):
        KERNELS["numpy"]("float32", 1000)

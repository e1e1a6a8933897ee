"""What torch says of itself, after loading."""

from typing import Any

from pinstripe.engines.protocol import EngineReport
from pinstripe.engines.pytorch.denormals import flushed_denormals
from pinstripe.engines.pytorch.kernels import instruction_sets
from pinstripe.engines.pytorch.primitive_cache import primitive_cache_capacity

__all__ = ["make_report"]


def make_report(torch: Any, *, engine: str, precision: str, settings: dict[str, str]) -> EngineReport:
    """Return the report of an engine of torch.

    Args:
        torch: The library.
        engine: Name of the engine.
        precision: As read from the weights.
        settings: What is particular to the engine.
    """
    common = {
        **instruction_sets(torch),
        **primitive_cache_capacity(torch),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "flush_denormals": flushed_denormals(torch),
        "num_interop_threads": str(torch.get_num_interop_threads()),
    }
    return EngineReport(
        engine=engine,
        version=str(torch.__version__),
        precision=precision,
        threads=torch.get_num_threads(),
        settings=common | settings,
    )

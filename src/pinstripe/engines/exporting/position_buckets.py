"""Distances between tokens put into buckets by a table, for models that do it with a logarithm."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pinstripe.engines.exporting.traceable import Traceable
from pinstripe.models import Network

__all__ = ["bucket_tables"]

_BUCKETING: Final = {
    "deberta-v2": ("transformers.models.deberta_v2.modeling_deberta_v2", None, "make_log_bucket_position"),
    "mpnet": ("transformers.models.mpnet.modeling_mpnet", "MPNetEncoder", "relative_position_bucket"),
}
"""By family: module, class if it is a static method, and name of the function in transformers that gives buckets."""


@contextmanager
def bucket_tables(network: Network, traceable: Traceable) -> Iterator[None]:
    """Have the model look buckets up while it is traced.

    In a graph, the logarithm is at the mercy of its rounding: OpenVINO puts most distances of MPNet above 16 into wrong
    buckets in bfloat16, and in float32 the largest one of DeBERTa-v3 (seen in 2026.4). Integers are left as they are.
    """
    if network.model_type not in _BUCKETING:
        yield
        return
    module, class_name, name = _BUCKETING[network.model_type]
    holder: Any = importlib.import_module(module)
    holder = getattr(holder, class_name) if class_name else holder
    original = getattr(holder, name)
    by_table = _by_table(original, network.positions)
    setattr(holder, name, staticmethod(by_table) if class_name else by_table)
    try:
        traceable.module(*traceable.example.values())  # makes the tables, outside of what is traced
        yield
    finally:
        setattr(holder, name, staticmethod(original) if class_name else original)


def _by_table(buckets: Callable[..., Any], positions: int) -> Callable[..., Any]:
    tables: dict[tuple[Any, ...], Any] = {}

    def look_up(distances: Any, *arguments: Any, **named: Any) -> Any:
        key = (*arguments, *sorted(named.items()))
        if key not in tables:
            every = distances.new_tensor(range(1 - positions, positions))
            tables[key] = buckets(every, *arguments, **named).to(distances.dtype)
        return tables[key][distances + (positions - 1)]

    return look_up

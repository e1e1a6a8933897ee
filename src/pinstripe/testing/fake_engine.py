"""An engine without a network: results made of the token ids, at a cost that is known beforehand."""

import os
import time
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe import __version__
from pinstripe.engines.options import checked_options
from pinstripe.engines.protocol import ArtefactFormat, Compiling, EngineReport, LoadRequest, Precision, Threading
from pinstripe.models import Network, TokenBatch

__all__ = ["FakeEngine", "FakeOptions", "fake_network"]

_ROWS: Final = 251
"""Rows of the table that results are looked up in; a prime, so that the sum of ids spreads over them."""
_CRASH_EXIT: Final = 70
_HOUR_S: Final = 3600.0
_OVERSLEEP_NS: Final = 80_000
"""Sleep this much less: the kernel may wake a thread 50 µs late (timer slack, prctl(2)) and takes its time to do it."""

_NotNegative = Annotated[float, msgspec.Meta(ge=0)]
_Nth = Annotated[int, msgspec.Meta(ge=1)]


class FakeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the engine. Forwards are counted from 1.

    Attributes:
        fixed_us: Time that each forward takes, at the least, in microseconds.
        per_token_us: Time added for each position of the batch, padding included, in microseconds.
        busy: Whether that time keeps a CPU busy; otherwise it is slept.
        crash_at: Forward in which the process exits at once.
        hang_at: Forward that never ends.
        fail_at: Forward that raises a RuntimeError.
        grow_bytes: Memory that each forward takes and keeps.
        load_s: Time that loading takes, in seconds.
    """

    fixed_us: _NotNegative = 0.0
    per_token_us: _NotNegative = 0.0
    busy: bool = False
    crash_at: _Nth | None = None
    hang_at: _Nth | None = None
    fail_at: _Nth | None = None
    grow_bytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    load_s: _NotNegative = 0.0


class FakeEngine:
    """The fake. Each result depends on the text's own ids only, and has the shape that the task asks for."""

    name: ClassVar[str] = "fake"
    format: ClassVar[ArtefactFormat] = "none"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32",)
    distributions: ClassVar[tuple[str, ...]] = ()
    also_needs: ClassVar[Mapping[Precision, str]] = {}
    extra: ClassVar[str] = ""
    options_type: ClassVar[type[msgspec.Struct]] = FakeOptions
    threading: ClassVar[Threading] = "none"
    compiles: ClassVar[Compiling] = "never"

    def load(self, request: LoadRequest) -> "_FakeModel":
        """Load nothing; see `Engine.load` and `FakeOptions`."""
        options = checked_options(self, request, FakeOptions)
        time.sleep(options.load_s)
        return _FakeModel(request.network, request.threads or 1, options)


class _FakeModel:
    def __init__(self, network: Network, threads: int, options: FakeOptions) -> None:
        width = _width(network)
        # Filled without random numbers: a table of a large vocabulary must not take long either.
        cells = np.arange(_ROWS * width, dtype=np.uint32) * np.uint32(2654435761)
        self._table = (cells.astype(np.float32) / np.float32(2**31) - np.float32(1)).reshape(_ROWS, width)
        self._one_result_a_text = network.one_result_a_text
        self._threads = threads
        self._options = options
        self._forwards = 0
        self._kept: list[NDArray[Any]] = []

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        begin_ns = time.perf_counter_ns()
        self._forwards += 1
        self._misbehave()
        rows = batch.ids if batch.type_ids is None else batch.ids + batch.type_ids
        if self._one_result_a_text:
            rows = (rows * batch.attention_mask() if batch.padded else rows).sum(axis=1)
        result: NDArray[np.float32] = self._table.take(rows % _ROWS, axis=0)
        cost_us = self._options.fixed_us + self._options.per_token_us * batch.ids.size
        self._wait_until(begin_ns + round(cost_us * 1000))
        return result

    def report(self) -> EngineReport:
        settings = {name: str(value) for name, value in msgspec.structs.asdict(self._options).items()}
        return EngineReport(
            engine=FakeEngine.name,
            version=__version__,
            precision=str(self._table.dtype),
            threads=self._threads,
            settings=settings,
        )

    def _misbehave(self) -> None:
        if self._options.grow_bytes:
            self._kept.append(np.ones(self._options.grow_bytes, np.uint8))
        if self._forwards == self._options.crash_at:
            os._exit(_CRASH_EXIT)
        if self._forwards == self._options.fail_at:
            raise RuntimeError(f"the fake engine fails in forward {self._forwards}, as it was told to")
        while self._forwards == self._options.hang_at:
            time.sleep(_HOUR_S)

    def _wait_until(self, end_ns: int) -> None:
        if not self._options.busy and (left_ns := end_ns - time.perf_counter_ns() - _OVERSLEEP_NS) > 0:
            time.sleep(left_ns / 1e9)
        while time.perf_counter_ns() < end_ns:
            pass


def _width(network: Network) -> int:
    """Return the size of the last axis of the task's result; see `LoadedModel.forward`."""
    match network.task:
        case "embedding":
            return network.hidden_size
        case "fill-mask":
            return network.vocab_size
        case "question-answering":
            return 2
        case _:
            return max(1, len(network.labels))


def fake_network(**changes: Any) -> Network:
    """Return a small embedding network (width 384, 512 tokens, mean pooling) for the fake engine.

    Args:
        **changes: Attributes of `Network` to set otherwise.
    """
    network = Network(
        name="fake",
        directory="",
        fingerprint="fake",
        model_type="bert",
        task="embedding",
        vocab_size=30522,
        hidden_size=384,
        layers=6,
        heads=12,
        intermediate_size=1536,
        positions=512,
        max_tokens=512,
        type_vocab_size=2,
        mask_token_id=103,
        pooling=("mean",),
        normalize=True,
    )
    return msgspec.structs.replace(network, **changes)

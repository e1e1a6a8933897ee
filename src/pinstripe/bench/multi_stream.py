"""One query of several texts at a time, as MLPerf's multi-stream has it."""

from collections.abc import Callable, Sequence

from pinstripe.bench.asking import Asking
from pinstripe.bench.measurement import Measurement, measurement
from pinstripe.bench.scenarios import Limits, ignore
from pinstripe.dispatch import Dispatcher, loop_time_ns
from pinstripe.models import EncodedText

__all__ = ["multi_stream"]


async def multi_stream(
    dispatcher: Dispatcher,
    rows: Sequence[EncodedText],
    texts: int,
    limits: Limits,
    on_open: Callable[[], None] = ignore,
) -> Measurement:
    """Ask for some texts, wait for all of them, ask for the next ones: the latency is that of the whole query.

    The dispatcher splits each query over the instances.

    Args:
        dispatcher: What is measured.
        rows: The texts; at least one.
        texts: Texts of each query, at least 1.
        limits: How long to measure; forwards are counted in queries.
        on_open: Called when the window opens, with nothing in flight.

    Raises:
        WorkerError: An instance failed.
    """
    asking = Asking(dispatcher, rows, texts)
    before = await asking.warm_up(limits.warmup_max_s)
    on_open()
    opened_ns = loop_time_ns()
    latency_ns: list[int] = []
    elapsed_ns = 0
    while not limits.over(elapsed_ns, len(latency_ns)):
        latency_ns.append(await asking.ask(len(latency_ns)))
        elapsed_ns = loop_time_ns() - opened_ns
    return measurement(
        warmup=before,
        complete=len(latency_ns) >= limits.min_forwards,
        opened_ns=opened_ns,
        lanes=asking.lanes,
        samples_per_s=asking.samples / elapsed_ns * 1e9,
        latency_ns=latency_ns,
        samples=asking.samples,
        tokens=asking.tokens,
        padded_tokens=asking.padded_tokens,
    )

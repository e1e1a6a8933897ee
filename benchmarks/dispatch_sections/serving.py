"""Requests of one text each through a dispatcher, and what became of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dispatch_sections.arms import Arm
from dispatch_sections.mixes import pad
from pinstripe.configuration import Arrivals
from pinstripe.dispatch import Dispatcher, Request, loop_time_ns
from pinstripe.load import LoadRun, run_closed_loop, run_load, schedule
from pinstripe.models import EncodedText
from pinstripe.pool import Executor
from pinstripe.statistics import percentile

__all__ = ["Asked", "Question", "class_p99_ms", "serve"]

_WARM_UP_S: Final = 5.0
_TIMEOUT_S: Final = 60.0


class Asked:
    """Texts of which each request asks for one, in turn."""

    def __init__(self, dispatcher: Dispatcher, rows: Sequence[EncodedText]) -> None:
        self._dispatcher = dispatcher
        self._rows = rows

    async def send(self, number: int) -> None:
        """Ask for a text."""
        await self._dispatcher.request(Request((self._rows[number % len(self._rows)],), loop_time_ns()))


@dataclass(frozen=True, slots=True)
class Question:
    """What an arm is asked.

    Attributes:
        rows: The texts.
        requests: How many.
        seed: Of the arrivals.
        p99_ms: Stop as soon as this cannot be kept; None for never.
    """

    rows: Sequence[EncodedText]
    requests: int
    seed: int = 0
    p99_ms: float | None = None


async def serve(
    executor: Executor,
    arm: Arm,
    question: Question,
    rate_per_s: float | None,
    *,
    clients: int = 64,
    cpu_ns: Callable[[], int] = time.process_time_ns,
) -> LoadRun:
    """Warm up, let the requests arrive by a Poisson process, or without a rate from clients in a closed loop."""
    dispatcher = Dispatcher(executor, pad=pad, rule=arm.rule, groups=arm.groups)
    await dispatcher.warm_up(question.rows[:200], _WARM_UP_S)
    target = Asked(dispatcher, question.rows)
    try:
        if rate_per_s is None:
            return await run_closed_loop(
                target, clients, requests=question.requests, timeout_s=_TIMEOUT_S, cpu_ns=cpu_ns
            )
        arrivals = Arrivals(process="poisson", rate_per_s=rate_per_s, seed=question.seed)
        offsets = schedule(arrivals, requests=question.requests)
        return await run_load(target, offsets.tolist(), timeout_s=_TIMEOUT_S, p99_ms=question.p99_ms, cpu_ns=cpu_ns)
    finally:
        await dispatcher.close()


def class_p99_ms(run: LoadRun, rows: Sequence[EncodedText], bounds: Sequence[int], percent: float = 99) -> list[float]:
    """Return a percentile of the latency of each length class, in milliseconds; NaN for a class without requests."""
    ends = [*bounds, 1 << 30]
    latencies: list[list[int]] = [[] for _ in ends]
    for number, (scheduled_ns, done_ns) in enumerate(zip(run.scheduled_ns, run.done_ns, strict=True)):
        length = len(rows[number % len(rows)])
        latencies[next(index for index, end in enumerate(ends) if length <= end)].append(done_ns - scheduled_ns)
    return [percentile(values, percent) / 1e6 if values else float("nan") for values in latencies]

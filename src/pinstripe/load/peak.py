"""The highest rate at which a server keeps a bound on its latency."""

from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from pinstripe.load.report import LoadReport, judge
from pinstripe.load.run import LoadRun

__all__ = ["Peak", "PeakStep", "find_peak"]

_WIDTH: Final = 1.02
"""The highest rate that fails is less than this times the highest that holds."""
_DOUBLINGS: Final = 30
_HALVINGS: Final = 10
_LEAST_ALONE: Final = 2
_INVALID_RATES: Final = 2
_CONFIRMATIONS: Final = 10


class PeakStep(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run of the search.

    Attributes:
        rate_per_s: Requests a second.
        seed: Of its arrivals.
        holds: Whether the server kept the bound.
        because: Why it did not; None if it did.
        report: What the run says. One that ended as `hopeless` has the percentiles of its part.
    """

    rate_per_s: float
    seed: int
    holds: bool
    because: str | None
    report: LoadReport


class Peak(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the search found.

    Attributes:
        p99_ms: The bound.
        rate_per_s: The highest rate that holds, confirmed by arrivals of another seed; None if none does.
        limit: What fails above it: the `server`; the `generator`, so that the server could do more; or nothing that was
            seen, as the search was `stopped`.
        steps: All runs, in their order.
    """

    p99_ms: float
    rate_per_s: float | None
    limit: Literal["server", "generator", "stopped"]
    steps: tuple[PeakStep, ...]


async def find_peak(
    run_at: Callable[[float, int], Awaitable[LoadRun]],
    p99_ms: float,
    *,
    start_per_s: float,
    seed: int = 0,
    on_step: Callable[[PeakStep], None] | None = None,
) -> Peak:
    """Find the highest rate at which the 99th percentile of the latency is at most a bound (MLPerf's `server`).

    A rate holds if the run is valid, its 99th percentile is within the bound, no request failed and the server did
    not fall behind. From the start it is doubled, or halved, until one holds and one does not; then the gap is bisected
    until it is below 2 %. All these runs have the same arrivals, scaled, so that their differences are the rate's. The
    rate found is confirmed with other arrivals, and lowered by 2 % as long as it is not. A run that is not valid is
    repeated once; if on the way down three rates are not, no rate will be. Nor will one below a rate at which
    those requests are late too that met no other.

    Args:
        run_at: Runs at a rate, with a seed for its arrivals; of at least 299 requests, as many at each rate. It may end
            as `hopeless` (`p99_ms` of `run_load`): the outcome is certain then.
        p99_ms: The bound in milliseconds, above 0.
        start_per_s: Where to begin, above 0, such as what a short closed loop reached.
        seed: Of the arrivals; the confirmation has the next one.
        on_step: Called with each step.
    """
    search = _Search(run_at, p99_ms, on_step)
    try:
        rate = await search.bracket(start_per_s, seed)
        rate = await search.confirm(rate, seed + 1)
    except _StoppedError:
        return search.peak(None, "stopped")
    return search.peak(rate, search.limit)


class _StoppedError(Exception):
    """The user has seen enough."""


class _Search:
    def __init__(
        self,
        run_at: Callable[[float, int], Awaitable[LoadRun]],
        p99_ms: float,
        on_step: Callable[[PeakStep], None] | None,
    ) -> None:
        self.limit: Literal["server", "generator"] = "server"
        self._run_at = run_at
        self._p99_ms = p99_ms
        self._on_step = on_step
        self._invalid_rates = 0
        self._late_alone = False
        self._steps: list[PeakStep] = []

    async def bracket(self, start_per_s: float, seed: int) -> float | None:
        """Return the highest rate that holds; None if none does."""
        low: float | None = None
        high: float | None = None
        rate = start_per_s
        for _ in range(_DOUBLINGS):
            if await self._holds(rate, seed):
                low = rate
            else:
                high = rate
            if high is not None and (low is not None or high <= start_per_s / 2**_HALVINGS):
                break
            if self._invalid_rates > _INVALID_RATES and low is None:
                break  # what disturbs the generator has nothing to do with the rate
            if low is None and self._late_alone:
                break
            rate = rate / 2 if high is not None else rate * 2
        while low is not None and high is not None and high >= _WIDTH * low:
            middle = (low + high) / 2
            if await self._holds(middle, seed):
                low = middle
            else:
                high = middle
        return low

    async def confirm(self, rate: float | None, seed: int) -> float | None:
        """Return the highest rate at or below that one which holds with this seed too; None if none near it does."""
        for _ in range(_CONFIRMATIONS):
            if rate is None or await self._holds(rate, seed):
                return rate
            rate /= _WIDTH
        return None

    def peak(self, rate: float | None, limit: Literal["server", "generator", "stopped"]) -> Peak:
        """Return what was found."""
        return Peak(p99_ms=self._p99_ms, rate_per_s=rate, limit=limit, steps=tuple(self._steps))

    async def _holds(self, rate: float, seed: int) -> bool:
        step = await self._step(rate, seed)
        if not step.report.valid:
            step = await self._step(rate, seed)  # something may have got in between
        if not step.holds:
            self.limit = "server" if step.report.valid else "generator"
            self._invalid_rates += not step.report.valid
        return step.holds

    async def _step(self, rate: float, seed: int) -> PeakStep:
        run = await self._run_at(rate, seed)
        if run.end == "stopped":
            raise _StoppedError
        report = judge(run)
        because = _failing(report, self._p99_ms)
        step = PeakStep(rate_per_s=rate, seed=seed, holds=because is None, because=because, report=report)
        self._steps.append(step)
        self._late_alone = because is not None and report.valid and _late_alone(run, self._p99_ms)
        if self._on_step is not None:
            self._on_step(step)
        return step


def _late_alone(run: LoadRun, p99_ms: float) -> bool:
    """Return whether a rate that does not hold shows that no lower one does.

    So it is if no two requests were under way at a time, or all that were under way alone, two at least, are above the
    bound. Where some failed it is not: a server may refuse what comes too fast.
    """
    if run.failures:
        return False
    services_ns = []
    idle_ns = 0  # from when on all earlier ones were answered
    nexts_ns = (*run.sent_ns[1:], max(run.done_ns))
    for sent_ns, done_ns, next_ns in zip(run.sent_ns, run.done_ns, nexts_ns, strict=True):
        if idle_ns <= sent_ns and done_ns <= next_ns:
            services_ns.append(done_ns - sent_ns)
        idle_ns = max(idle_ns, done_ns)
    if len(services_ns) == len(run.sent_ns):
        return True
    return len(services_ns) >= _LEAST_ALONE and min(services_ns) > p99_ms * 1e6


def _failing(report: LoadReport, p99_ms: float) -> str | None:
    """Return why a rate does not hold; None if it does."""
    if not report.valid:
        return report.invalid_because
    if report.failures:
        kind, count = next(iter(report.failures.items()))
        return f"{sum(report.failures.values()):,} of {report.requests:,} requests failed, {count:,} with: {kind}"
    if report.end == "hopeless":
        plural = "s" if report.requests > 1 else ""
        return f"p99 above {p99_ms:g} ms for certain, after {report.requests:,} request{plural}"
    p99 = report.latency_ms.p99
    if p99 is None or p99 > p99_ms:
        return f"p99 is {p99:.1f} ms"
    return report.saturated_because

"""What a trial measured, with every raw value."""

import math
from collections.abc import Sequence

import msgspec

from pinstripe.bench.timings import last_done_ns, occupied_ns, span_ns
from pinstripe.load import LoadRun, Peak
from pinstripe.pool import BatchTiming

__all__ = ["Load", "Measurement", "Warmup", "measurement", "warmup"]


class Warmup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The batches before the window.

    Attributes:
        batches: How many were run by the instance that ran most.
        duration_ns: How long they took.
        steady: Whether times had settled; False if the bound came first.
    """

    batches: int
    duration_ns: int
    steady: bool


class Load(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requests that arrived in a window.

    Attributes:
        run: When each was to be sent, was sent, was answered; how it failed.
        tokens: Tokens of each request's longest text [requests].
        peak: How the highest rate was found, of which this is the confirmation; None if it was not looked for.
    """

    run: LoadRun
    tokens: tuple[int, ...]
    peak: Peak | None = None

    @property
    def latency_ns(self) -> list[float]:
        """Time of each request from when it was to be sent to its answer; infinite if it failed [requests]."""
        times = zip(self.run.done_ns, self.run.scheduled_ns, strict=True)
        failures = self.run.failures
        return [math.inf if number in failures else done - due for number, (done, due) in enumerate(times)]


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One window, in which all instances ran.

    Attributes:
        warmup: What came before it.
        complete: Whether the window met both minimums; False if its upper bound came first.
        window_ns: From the barrier to the last counted batch.
        samples: Texts finished in the window.
        tokens: Real tokens of these texts.
        padded_tokens: Tokens computed, padding included.
        samples_per_s: Over time that really passed. Single-stream, and whole passes over a file of texts: texts by the
            window. Offline with one shape: the sum over the instances of texts by the time from the barrier to the
            instance's last finished batch, so that batches cut off by the window's end are counted neither in texts nor
            in time. Multi-stream: texts by the window. Server: answered texts by the time from when the first request
            was to be sent to the last answer, or until one more would have been due, if that is later.
        latency_ns: Raw values. Single-stream: from handing out a global batch to having its slowest part. Offline: time
            that a batch occupied its instance, from its predecessor's end (or its submission, if later) to its own.
            Multi-stream: from asking to the answer to the whole query. Server: of the answered requests, from when they
            were to be sent to their answer.
        engine_ns: Raw duration of each forward pass, a list an instance, in order.
        pool_ns: Raw time of each batch beyond its forward pass and pooling: queueing, transport, waking; as above.
        load: The requests of the server scenario; None in others.
    """

    warmup: Warmup
    complete: bool
    window_ns: int
    samples: int
    tokens: int
    padded_tokens: int
    samples_per_s: float
    latency_ns: tuple[int, ...]
    engine_ns: tuple[tuple[int, ...], ...]
    pool_ns: tuple[tuple[int, ...], ...]
    load: Load | None = None

    @property
    def tokens_per_s(self) -> float:
        """Real tokens per second."""
        return self.samples_per_s * self.tokens / self.samples

    @property
    def padding_fraction(self) -> float:
        """Share of the computed tokens that was padding, 0 to 1."""
        return 1 - self.tokens / self.padded_tokens


def measurement(
    *,
    warmup: Warmup,
    complete: bool,
    opened_ns: int,
    lanes: Sequence[Sequence[BatchTiming]],
    latency_ns: Sequence[int],
    samples_per_s: float,
    samples: int,
    tokens: int,
    padded_tokens: int,
    load: Load | None = None,
) -> Measurement:
    """Sum up the batches counted in a window.

    Args:
        warmup: What came before.
        complete: Whether the minimums were met.
        opened_ns: When the window opened.
        lanes: The counted batches of each instance, in order of their ends; at least one in all.
        latency_ns: Raw latencies, by the rule of the scenario.
        samples_per_s: The rate, likewise.
        samples: Texts in these batches.
        tokens: Their real tokens.
        padded_tokens: Tokens computed, padding included.
        load: The requests of the server scenario.
    """
    return Measurement(
        warmup=warmup,
        complete=complete,
        window_ns=last_done_ns(timing for lane in lanes for timing in lane) - opened_ns,
        samples=samples,
        tokens=tokens,
        padded_tokens=padded_tokens,
        samples_per_s=samples_per_s,
        latency_ns=tuple(latency_ns),
        engine_ns=tuple(tuple(timing.engine_ns for timing in lane) for lane in lanes),
        pool_ns=tuple(tuple(_pool_ns(lane)) for lane in lanes),
        load=load,
    )


def warmup(lanes: Sequence[Sequence[BatchTiming]], *, steady: bool) -> Warmup:
    """Sum up the batches that each instance ran before the window; at least one in all."""
    timings = [timing for lane in lanes for timing in lane]
    return Warmup(batches=max(map(len, lanes)), duration_ns=span_ns(timings), steady=steady)


def _pool_ns(lane: Sequence[BatchTiming]) -> list[int]:
    """Time of each batch outside the worker: the worker's own span is taken from the time it occupied."""
    return [
        occupied - min(occupied, timing.finished_ns - timing.started_ns)
        for occupied, timing in zip(occupied_ns(lane), lane, strict=True)
    ]

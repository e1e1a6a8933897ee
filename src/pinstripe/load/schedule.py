"""When each request is to be sent: absolute times, known before the first one leaves."""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.configuration import Arrivals
from pinstripe.errors import ConfigurationError

__all__ = ["schedule"]

_MOST_REQUESTS: Final = 5_000_000
"""Their raw times are kept: three numbers each, some hundred bytes in memory and in a file."""
_DRAWN_AT_ONCE: Final = 4096


def schedule(
    arrivals: Arrivals,
    seconds: float | None = None,
    times: NDArray[np.int64] | None = None,
    *,
    requests: int | None = None,
) -> NDArray[np.int64]:
    """Return the times at which an open loop's requests are sent.

    Arrivals of the same process and seed at k times the rate are the same, k times as dense (common random numbers),
    and a longer schedule begins with the shorter one.

    Args:
        arrivals: Any but a closed loop.
        seconds: Length of the schedule, above 0; None for no such end.
        times: Those of a trace, from `read_trace`; with `trace` arrivals only.
        requests: The most requests, at least 1; None for no such end. A trace ends by itself, others need an end.

    Returns:
        Offsets from the begin in nanoseconds [requests], not descending.

    Raises:
        ConfigurationError: There is no end, no request before it, or more than 5,000,000; or the trace has no rate that
            could be stretched.
    """
    if arrivals.process == "closed":
        raise ConfigurationError("a closed loop has no schedule; its answers decide when requests are sent")
    if (times is None) == (arrivals.process == "trace"):
        raise ConfigurationError(
            "the times of a trace go with trace arrivals, and they with them; give both, or neither"
        )
    if requests is not None and requests > _MOST_REQUESTS:
        raise _too_many(requests)
    if times is not None:
        offsets = _stretched(times, arrivals.rate_per_s)
        offsets = offsets[:requests]
    else:
        offsets = _generated(arrivals, seconds, requests)
    if seconds is not None:
        offsets = offsets[offsets < seconds * 1e9]
    if not len(offsets):
        raise ConfigurationError(f"no request arrives within {seconds:g} s of {arrivals.label}; let it run longer")
    return offsets


def _generated(arrivals: Arrivals, seconds: float | None, requests: int | None) -> NDArray[np.int64]:
    rate = arrivals.rate_per_s or 0.0
    most = min(requests or math.inf, seconds * rate * 1.5 + 100 if seconds else math.inf)
    if math.isinf(most):
        raise ConfigurationError(f"{arrivals.label} has no end; name its seconds or its requests")
    if most > _MOST_REQUESTS * 1.5:
        raise _too_many((seconds or 0) * rate)
    if arrivals.process == "constant":
        return _whole(np.arange(math.ceil(most)) * (1e9 / rate))
    # Whole blocks, so that how many are needed never changes what is drawn; 1.5 times the mean number and a hundred are
    # passed with a probability below 10^-6.
    random = np.random.Generator(np.random.PCG64(arrivals.seed))
    blocks = [random.standard_exponential(_DRAWN_AT_ONCE) for _ in range(math.ceil(most / _DRAWN_AT_ONCE))]
    return _whole(np.cumsum(np.concatenate(blocks)) * (1e9 / rate))[:requests]


def _stretched(times: NDArray[np.int64], rate: float | None) -> NDArray[np.int64]:
    if rate is None:
        return times
    span_s = (times[-1] - times[0]) / 1e9
    if span_s <= 0:
        raise ConfigurationError("the trace's requests all arrive at once, which no rate stretches; leave the rate out")
    own = (len(times) - 1) / span_s
    return _whole((times - times[0]) * (own / rate))


def _whole(offsets: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    whole: NDArray[np.int64] = np.rint(offsets).astype(np.int64)
    return whole


def _too_many(requests: float) -> ConfigurationError:
    return ConfigurationError(
        f"{requests:,.0f} requests are more than the {_MOST_REQUESTS:,} whose times can be kept; make it shorter"
    )

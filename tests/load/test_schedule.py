"""When requests are sent."""

from pathlib import Path

import numpy as np
import pytest

from pinstripe.configuration import Arrivals
from pinstripe.errors import ConfigurationError
from pinstripe.load import read_trace, schedule


def test_constant_arrivals_are_evenly_spaced() -> None:
    """Four a second for a second are due at 0, 250, 500 and 750 ms."""
    assert schedule(Arrivals(process="constant", rate_per_s=4), 1.0).tolist() == [
        0,
        250_000_000,
        500_000_000,
        750_000_000,
    ]


def test_poisson_arrivals_have_exponential_gaps() -> None:
    """Mean and standard deviation of the gaps are one over the rate, and half are below ln 2 of it."""
    gaps = np.diff(schedule(Arrivals(rate_per_s=100, seed=3), requests=40_000)) / 1e9

    assert gaps.mean() == pytest.approx(0.01, rel=0.03)
    assert gaps.std() == pytest.approx(0.01, rel=0.03)
    assert np.median(gaps) == pytest.approx(0.01 * 0.6931, rel=0.03)


@pytest.mark.parametrize("process", ["poisson", "constant"])
def test_a_higher_rate_is_the_same_schedule_denser(process: str) -> None:
    """Common random numbers: with the same seed 8 times the rate has an eighth of each time."""
    slow = schedule(Arrivals(process=process, rate_per_s=10, seed=7), requests=5000)  # type: ignore[arg-type]
    fast = schedule(Arrivals(process=process, rate_per_s=80, seed=7), requests=5000)  # type: ignore[arg-type]

    np.testing.assert_allclose(slow, fast * 8.0, atol=8)


def test_a_longer_schedule_begins_with_the_shorter_one() -> None:
    """Whatever ends it, the seed alone says when requests are due."""
    by_number = schedule(Arrivals(rate_per_s=50, seed=1), requests=9000)
    by_time = schedule(Arrivals(rate_per_s=50, seed=1), 20.0)

    assert by_time[-1] < 20e9 <= by_number[len(by_time)]
    np.testing.assert_array_equal(by_time, by_number[: len(by_time)])
    assert schedule(Arrivals(rate_per_s=50, seed=2), requests=5).tolist() != by_number[:5].tolist()


@pytest.mark.parametrize(
    ("content", "offsets"),
    [
        ("0.5\n1\n\n2.25\n", [0, 500_000_000, 1_750_000_000]),
        ("2026-03-01T10:00:00Z\n2026-03-01T11:00:00.25+01:00\n", [0, 250_000_000]),
        ("2026-03-01T10:00:00\n2026-03-02T10:00:00\n", [0, 86_400_000_000_000]),
        ('{"time": 3}\n{"time": "4.5", "user": 1}\n', [0, 1_500_000_000]),
        ("\ufeff7\r\n7\r\n", [0, 0]),
    ],
)
def test_traces(content: str, offsets: list[int], tmp_path: Path) -> None:
    """Seconds, ISO 8601 and JSON lines; from the first on."""
    path = tmp_path / "trace"
    path.write_text(content)

    times, trace = read_trace(path)

    assert times.tolist() == offsets
    assert trace.requests == len(offsets)
    assert schedule(Arrivals(process="trace", trace=trace), times=times).tolist() == offsets


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n3\n2.5\n", "line 3 of .* is 0.5 s before the one above it"),
        ("", "holds no times"),
        ("\n \n", "holds no times"),
        ("1\nsoon\n", "line 2 of .* is no time: 'soon' is neither"),
        ("nan\n", "line 1 of .* is no time"),
        ("inf\n", "line 1 of .* is no time"),
        ('{"when": 3}\n', "line 1 of .* has no field time"),
        ('{"time": true}\n', "line 1 of .* is no time: 'True'"),
        ('{"time": [1]}\n', "line 1 of .* is no time"),
        ('1\n{"time": \n', "line 2 of .* JSON is not valid"),
        ("\x00\xff\n", "line 1 of .* is no time"),
        ("1\n2026-03-01T10:00:00\n", "line 2 of .* is a date, line 1 is seconds; write all in one way"),
        ('\n{"time": "2026-03-01"}\n3\n', "line 3 of .* is seconds, line 2 is a date"),
    ],
)
def test_bad_traces_name_the_line(content: str, message: str, tmp_path: Path) -> None:
    """On one line, and nothing is guessed."""
    path = tmp_path / "trace"
    path.write_text(content, encoding="latin-1")

    with pytest.raises(ConfigurationError, match=message) as caught:
        read_trace(path)

    assert "\n" not in str(caught.value)


def test_a_trace_that_is_not_there(tmp_path: Path) -> None:
    """A missing file and a directory are said to be so."""
    with pytest.raises(ConfigurationError, match="No such file"):
        read_trace(tmp_path / "none")
    with pytest.raises(ConfigurationError, match="no regular file"):
        read_trace(tmp_path)


def test_a_trace_is_stretched_to_a_rate(tmp_path: Path) -> None:
    """Three requests in 4 s come at 0.5 a second; at 5 a second all times are a tenth."""
    (tmp_path / "trace").write_text("0\n1\n4\n")
    times, trace = read_trace(tmp_path / "trace")
    arrivals = Arrivals(process="trace", trace=trace, rate_per_s=5)

    assert schedule(arrivals, times=times).tolist() == [0, 100_000_000, 400_000_000]
    assert schedule(arrivals, 0.3, times).tolist() == [0, 100_000_000]
    with pytest.raises(ConfigurationError, match="all arrive at once"):
        schedule(arrivals, times=times[:1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "has no end"),
        ({"requests": 6_000_000}, "6,000,000 requests are more than"),
        ({"seconds": 1e6}, "100,000,000 requests are more than"),
        ({"seconds": 1e-9}, "no request arrives within"),
    ],
)
def test_schedules_that_cannot_be(arguments: dict[str, float], message: str) -> None:
    """Without an end, too long, or empty."""
    with pytest.raises(ConfigurationError, match=message):
        schedule(Arrivals(rate_per_s=100), **arguments)  # type: ignore[arg-type]

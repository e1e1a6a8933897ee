"""Comparisons through real workers: what is the same, and what is not."""

import asyncio
import importlib.util
import math
from pathlib import Path
from statistics import median

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "verdicts.py"


@pytest.mark.slow
def test_a_planted_slowdown_is_told_from_noise() -> None:
    """Of ten comparisons of each kind, most find the 5 % that were planted, and few a difference that is not there.

    With 5 % of errors, four or more of ten happen once in a thousand times. On a machine whose noise floor is of the
    size of the slow-down there is nothing to find.
    """
    spec = importlib.util.spec_from_file_location("verdicts", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    verdicts = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(verdicts)
    same, slower = asyncio.run(verdicts.compare(10, 12, 0.1, {"fixed_us": 5000, "busy": False}))

    assert sum(ratio.verdict != "undecided" for ratio in same) <= 3
    floors = [math.sqrt((ratio.high or math.inf) / (ratio.low or 1)) - 1 for ratio in same]
    if median(floors) > 0.025:
        pytest.skip(f"this machine is busy: a configuration differs from itself by {median(floors):.1%}")
    assert sum(ratio.verdict == "slower" for ratio in slower) >= 5

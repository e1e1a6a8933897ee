"""Observations to diagnose."""

from collections.abc import Callable
from typing import Any

import pytest

from pinstripe.diagnosis import Finding, Observations, diagnose
from pinstripe.machine import Counters, Machine
from pinstripe.testing.machines import uniform

Look = Callable[..., dict[str, Finding]]

NOTHING_LOST = Counters(nr_periods=None, nr_throttled=None, throttled_ns=None, steal_ns=0, busy_ns=10**12)


@pytest.fixture
def look() -> Look:
    """Diagnose a machine, by default 4 cores with one CPU each and nothing wrong; return the findings by subject."""

    def diagnosed(machine: Machine | None = None, **observed: Any) -> dict[str, Finding]:
        observations = Observations(machine=machine or uniform(), **{"counters": NOTHING_LOST} | observed)
        findings = diagnose(observations)
        by_subject = {finding.subject: finding for finding in findings}
        assert len(by_subject) == len(findings)
        return by_subject

    return diagnosed

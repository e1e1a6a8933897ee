"""What is said of a run."""

import io

import pytest
from msgspec.structs import replace
from rich.console import Console

from pinstripe.cli.load_report import print_report
from pinstripe.configuration import Arrivals
from pinstripe.load import LoadReport, judge, run_load, schedule
from pinstripe.simulate import run_simulated
from pinstripe.testing.fake_service import FakeService, FakeTarget


def _report(rate: float, requests: int) -> LoadReport:
    """Return what a run against a server that can do 100 a second says."""
    offsets = schedule(Arrivals(process="constant", rate_per_s=rate), requests=requests)
    return judge(run_simulated(run_load(FakeTarget(FakeService(0.01)), offsets, cpu_ns=lambda: 0)))


def _printed(report: LoadReport) -> str:
    console = Console(file=io.StringIO(), width=40)
    print_report(report, Arrivals(rate_per_s=1), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(("rate", "requests", "said"), [(200, 900, True), (200, 49, False), (80, 900, False)])
def test_a_queue_in_a_short_run_is_said(rate: float, requests: int, *, said: bool) -> None:
    """200 a second for a server of 100: too few answers for saturation, but half were under way at the end."""
    report = _report(rate, requests)

    assert report.saturated is None
    assert ("of 200.0 offered a second; too few answers to tell" in _printed(report)) is said


def test_failures_are_no_queue() -> None:
    """Of 80 a second half were refused and the rest answered in time."""
    report = _report(80, 900)
    half = replace(report, completed_per_s=40.0, answered=450, failures={"HTTP 503": 450})

    assert "too few answers" not in _printed(half)


def test_one_request() -> None:
    """Grammar, and no line longer than it need be."""
    printed = _printed(_report(80, 1))

    assert "1 request, 1 answered" in printed
    assert "1 request is too few" in printed
    assert all(line == line.rstrip() for line in printed.splitlines())

"""Requests at their times, in virtual time, against services whose latencies are known."""

import asyncio
import random
import time

import pytest

from pinstripe.configuration import Arrivals
from pinstripe.errors import RequestError, UsageError, WorkerError
from pinstripe.load import LoadRun, Target, judge, new_fine_loop, run_closed_loop, run_load, schedule
from pinstripe.simulate import run_simulated
from pinstripe.testing.fake_service import FakeService, FakeTarget

MS = 1_000_000


def _constant(rate: float, requests: int) -> list[int]:
    return [int(offset) for offset in schedule(Arrivals(process="constant", rate_per_s=rate), requests=requests)]


def _run(target: Target, offsets: list[int], **options: float) -> LoadRun:
    return run_simulated(run_load(target, offsets, cpu_ns=lambda: 0, **options))  # type: ignore[arg-type]


class _Scripted:
    """A target that does what its table says of each request: seconds, and how it fails."""

    def __init__(self, script: dict[int, tuple[float, Exception | None]], otherwise_s: float = 0.001) -> None:
        self._script = script
        self._otherwise_s = otherwise_s

    async def send(self, number: int) -> None:
        seconds, error = self._script.get(number, (self._otherwise_s, None))
        await asyncio.sleep(seconds)
        if error is not None:
            raise error


def test_a_stall_shows_in_the_percentiles_as_arithmetic_says() -> None:
    """100 requests a second for 10 s, 1 ms each; from 4 s on all stands still for 1 s.

    The request of 4.00 s + 10 k ms begins at 5 s, behind the k before it: it takes 1000 - 10 k + k + 1 ms, until that
    is no more than 1 ms: k = 0 to 111. So 112 of 1,000 take longer than 1 ms, and the r-th longest 1001 - 9 (r - 1) ms.
    """
    run = _run(FakeTarget(FakeService(0.001, stall=(4.0, 1.0))), _constant(100, 1000))

    latencies = sorted((done - due for done, due in zip(run.done_ns, run.scheduled_ns, strict=True)), reverse=True)
    assert latencies[:112] == [(1001 - 9 * rank) * MS for rank in range(112)]
    assert set(latencies[112:]) == {1 * MS}
    report = judge(run)
    assert report.latency_ms.p50 == 1
    assert report.latency_ms.p90 == 1001 - 9 * 100  # by nearest rank the 900th of 1,000, the 101st longest
    assert report.latency_ms.p99 == 1001 - 9 * 10
    assert report.latency_ms.p999 == 1001 - 9 * 1
    assert report.saturated is False
    assert report.valid


def test_a_closed_loop_does_not_see_the_stall() -> None:
    """One client waits it out: one request of a thousand is late, which is why no promise rests on such a run."""
    service = FakeService(0.01, stall=(4.0, 1.0))
    run = run_simulated(run_closed_loop(FakeTarget(service), 1, requests=1000, cpu_ns=lambda: 0))

    report = judge(run)
    assert report.latency_ms.p99 == 10
    assert max(done - sent for done, sent in zip(run.done_ns, run.sent_ns, strict=True)) == 1010 * MS
    assert report.saturated is None
    assert report.offered_per_s is None
    assert report.clients == 1


def test_a_closed_loop_keeps_its_clients_busy() -> None:
    """Three clients at a service of 10 ms and one server: each waits for the two others."""
    run = run_simulated(run_closed_loop(FakeTarget(FakeService(0.01)), 3, seconds=1.0, cpu_ns=lambda: 0))

    assert run.most_in_flight == 3
    assert len(run.sent_ns) == 102  # at 0.99 s the last one, and two more that were under way
    assert judge(run).latency_ms.p50 == 30


def test_requests_do_not_wait_for_each_other() -> None:
    """An open loop sends at the times of its schedule, whatever becomes of those before."""
    run = _run(_Scripted({}, otherwise_s=5.0), _constant(1000, 2000))

    assert run.sent_ns == run.scheduled_ns
    assert run.most_in_flight == 2000
    assert {done - sent for done, sent in zip(run.done_ns, run.sent_ns, strict=True)} == {5000 * MS}


def test_failures_are_infinitely_late() -> None:
    """Of 1,000 requests 11 fail: the 99th percentile is infinite, the 98th would be as if nothing were."""
    busy = {number: (0.001, RequestError("HTTP 503")) for number in range(0, 700, 70)}
    run = _run(_Scripted({**busy, 999: (99.0, None)}), _constant(100, 1000), timeout_s=2.0)

    report = judge(run)
    assert report.failures == {"HTTP 503": 10, "timeout": 1}
    assert report.answered == 989
    assert report.latency_ms.p99 == float("inf")
    assert report.latency_ms.p95 == 1
    assert run.done_ns[999] - run.sent_ns[999] == 2000 * MS  # the drain is bounded by the timeout


def test_the_cap_ends_a_run_and_is_said() -> None:
    """Against a server that never answers, 50 requests are under way and no more are sent."""
    run = _run(_Scripted({}, otherwise_s=1e6), _constant(100, 1000), cap=50, timeout_s=3.0)

    assert run.end == "capped"
    assert len(run.sent_ns) == run.most_in_flight == 50
    report = judge(run)
    assert report.saturated
    assert "50 requests were under way" in str(report.saturated_because)


def test_a_hopeless_run_ends_early_and_only_then() -> None:
    """Of 1,000 requests 10 may be later than 5 ms; the run ends when the 11th is, 5 ms after it was due."""
    slow: dict[int, tuple[float, Exception | None]] = dict.fromkeys(range(0, 200, 20), (0.02, None))
    offsets = _constant(100, 1000)

    assert _run(_Scripted(slow), offsets, p99_ms=5.0).end == "complete"
    ended = _run(_Scripted({**slow, 300: (0.02, None)}), offsets, p99_ms=5.0)
    assert ended.end == "hopeless"
    assert len(ended.sent_ns) == 302  # 300, 301; the next is due 10 ms later, when its time is over
    assert ended.planned == 1000


def test_stopping_reports_what_was_measured() -> None:
    """Nothing is sent after it; answers under way have 2 s."""

    async def stopped() -> LoadRun:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(1.005, stop.set)
        return await run_load(_Scripted({99: (1.0, None), 100: (60.0, None)}), _constant(100, 1000), stop=stop)

    run = run_simulated(stopped())

    assert run.end == "stopped"
    assert len(run.sent_ns) == 101
    assert run.failures == {100: "stopped before its answer"}
    assert run.elapsed_ns == 3005 * MS


def test_a_fault_of_the_target_is_not_a_failed_request() -> None:
    """What is no `RequestError` ends the run."""
    with pytest.raises(WorkerError, match="broken"):
        _run(_Scripted({3: (0.5, WorkerError("it is broken"))}, otherwise_s=100), _constant(100, 1000))


def test_cancelling_leaves_nothing_behind() -> None:
    """Requests under way are cancelled with the run."""

    async def cancelled() -> int:
        running = asyncio.create_task(run_load(_Scripted({}, otherwise_s=50), _constant(100, 1000)))
        await asyncio.sleep(2)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()
        return len(asyncio.all_tasks())

    assert run_simulated(cancelled()) == 1


def test_a_closed_loop_needs_an_end() -> None:
    """Neither seconds nor requests: it would run for ever."""
    with pytest.raises(UsageError, match="no end"):
        run_simulated(run_closed_loop(_Scripted({}), 2))


def test_no_request_is_lost_or_sent_twice() -> None:
    """Of random services and schedules, each request has its times in order, and those of the answered are exact."""
    for seed in range(20):
        chance = random.Random(seed)  # noqa: S311 - nothing secret
        script: dict[int, tuple[float, Exception | None]] = {
            number: (chance.choice((0.0, 0.001, 0.3)), chance.choice((None, None, RequestError("odd"))))
            for number in range(200)
        }
        offsets = sorted(chance.randrange(10**9) for _ in range(200))
        run = _run(_Scripted(script), offsets)

        assert run.scheduled_ns == tuple(offsets) == run.sent_ns
        assert run.failures == {number: "odd" for number, (_, error) in script.items() if error}
        for number, (seconds, _) in script.items():
            assert run.done_ns[number] - run.sent_ns[number] == pytest.approx(seconds * 1e9, abs=2)


def test_timers_of_the_fine_loop_are_not_rounded_to_milliseconds() -> None:
    """The usual loop never wakes sooner than after a whole millisecond; the best of many tries shows which it is."""

    async def shortest_s() -> float:
        lags = []
        for _ in range(50):
            began = time.perf_counter()
            await asyncio.sleep(0.0003)
            lags.append(time.perf_counter() - began)
        return min(lags)

    with asyncio.Runner(loop_factory=new_fine_loop) as runner:
        assert 0.0003 <= runner.run(shortest_s()) < 0.001

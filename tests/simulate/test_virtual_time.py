"""Code that waits runs in virtual time as it would in real time, but at once."""

import asyncio
import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.errors import ExecutionError, UsageError
from pinstripe.simulate import run_simulated


def _now_ns() -> int:
    return round(asyncio.get_running_loop().time() * 1e9)


async def _sleep_and_tell(seconds: float) -> int:
    await asyncio.sleep(seconds)
    return _now_ns()


def test_waiting_takes_virtual_time_only() -> None:
    """A day passes at once, from 0, and to the nanosecond."""
    began = time.monotonic()

    assert run_simulated(_sleep_and_tell(0.0)) == 0
    assert run_simulated(_sleep_and_tell(86_400.000_000_001)) == 86_400_000_000_001
    assert time.monotonic() - began < 30


def test_waits_overlap() -> None:
    """Tasks wait at the same time, not one after the other; what none waits for takes no time."""

    async def main() -> tuple[list[int], int]:
        ends = await asyncio.gather(*(_sleep_and_tell(seconds) for seconds in (3, 1, 2)))
        for _ in range(100):
            await asyncio.sleep(0)
        return ends, _now_ns()

    assert run_simulated(main()) == ([3 * 10**9, 10**9, 2 * 10**9], 3 * 10**9)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_timers_fire_in_order_of_time_then_of_setting(delays_ns: list[int]) -> None:
    """Equal times keep the order in which they were set, also when they are 1 ns apart."""

    async def main() -> list[tuple[int, int]]:
        fired: list[tuple[int, int]] = []
        loop = asyncio.get_running_loop()
        await asyncio.sleep(1234.5)
        start_ns = _now_ns()

        def note(number: int) -> None:
            fired.append((_now_ns() - start_ns, number))

        for number, delay_ns in enumerate(delays_ns):
            when = (start_ns + delay_ns) / 1e9
            loop.call_at(when, note, number)
        await asyncio.sleep(1)
        return fired

    assert run_simulated(main()) == sorted((delay_ns, number) for number, delay_ns in enumerate(delays_ns))


def test_a_time_that_is_over_is_now() -> None:
    """A timer in the past fires at once, and does not turn the clock back."""

    async def main() -> int:
        await asyncio.sleep(5)
        done = asyncio.Event()
        asyncio.get_running_loop().call_at(1, done.set)
        await done.wait()
        return _now_ns()

    assert run_simulated(main()) == 5 * 10**9


def test_a_cancelled_timer_neither_fires_nor_moves_the_clock() -> None:
    """Nor does it if one of the same time cancels it."""

    async def main() -> tuple[list[str], int]:
        loop = asyncio.get_running_loop()
        fired: list[str] = []
        loop.call_later(7, fired.append, "cancelled early").cancel()
        later: asyncio.TimerHandle

        def cancel_later() -> None:
            later.cancel()

        loop.call_later(3, cancel_later)
        later = loop.call_later(3, fired.append, "cancelled at its own time")
        await asyncio.sleep(3)
        await asyncio.sleep(1)
        return fired, _now_ns()

    assert run_simulated(main()) == ([], 4 * 10**9)


def test_the_rest_of_asyncio() -> None:
    """Time limits, queues and events keep virtual time."""

    async def main() -> tuple[int, list[int]]:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 2.5)
        queue: asyncio.Queue[int] = asyncio.Queue()
        limited_ns = _now_ns()

        async def produce() -> None:
            for number in range(3):
                await asyncio.sleep(1)
                queue.put_nowait(number)

        async with asyncio.TaskGroup() as group, asyncio.timeout(10):
            group.create_task(produce())
            return limited_ns, [await queue.get() * 10**9 + _now_ns() for _ in range(3)]

    assert run_simulated(main()) == (2_500_000_000, [3_500_000_000, 5_500_000_000, 7_500_000_000])


def test_waiting_for_ever_is_an_error() -> None:
    """What nobody will ever wake is said, with its name, instead of a hang."""

    async def wait_for_nobody() -> None:
        await asyncio.sleep(1)
        await asyncio.Event().wait()

    with pytest.raises(ExecutionError, match=r"nothing is scheduled.*wait_for_nobody"):
        run_simulated(wait_for_nobody())


def test_a_deadlock_cancels_what_waits() -> None:
    """Tasks are ended as `asyncio.run` ends them, so that they can clean up."""
    ended = []

    async def wait_for_nobody() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def main() -> None:
        await asyncio.gather(wait_for_nobody(), wait_for_nobody())

    with pytest.raises(ExecutionError, match=r"nothing is scheduled"):
        run_simulated(main())
    assert ended == [True, True]


def test_an_error_of_the_program_comes_out() -> None:
    """An exception is raised as it is, also from between two waits."""

    async def fail() -> None:
        await asyncio.sleep(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run_simulated(fail())


def test_threads_are_refused() -> None:
    """A thread would take real time while virtual time does not know when to go on."""

    async def main() -> None:
        await asyncio.to_thread(time.sleep, 0)

    with pytest.raises(UsageError, match="thread"):
        run_simulated(main())


def test_sockets_are_refused() -> None:
    """Nobody may wait for what only real time can bring."""

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            asyncio.get_running_loop().add_reader(ours, print)

    with pytest.raises(UsageError, match="sockets"):
        run_simulated(main())

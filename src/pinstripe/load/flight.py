"""Requests under way."""

import asyncio
from array import array
from collections.abc import Callable, Coroutine
from typing import Final, Literal

from pinstripe.errors import RequestError
from pinstripe.load.target import Target

__all__ = ["End", "Flight"]

End = Literal["complete", "capped", "hopeless", "stopped"]
_PATIENCE_S: Final = 2.0
"""How long a stopped run waits for the answers that are under way."""


class Flight:
    """Requests that are sent and waited for, and the times of all, as offsets from the begin in nanoseconds.

    Attributes:
        sent: How many were sent.
        sent_ns: When, by their number.
        done_ns: When each was answered or failed; 0 until then.
        failures: How, by their number.
        most_in_flight: Most that were under way at a time.
        end: How it ended.
    """

    def __init__(self, target: Target, most: int, timeout_s: float) -> None:
        """Begin.

        Args:
            target: What answers.
            most: Most requests that there will be.
            timeout_s: After which one has failed.
        """
        self.sent = self.most_in_flight = 0
        self.sent_ns = array("q", bytes(8 * most))
        self.done_ns = array("q", bytes(8 * most))
        self.failures: dict[int, str] = {}
        self.end: End = "complete"
        self._target = target
        self._most = most
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._all_sent: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._error: BaseException | None = None
        self._began_ns = round(self._loop.time() * 1e9)

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return len(self._tasks)

    @property
    def can_send(self) -> bool:
        """Whether another request may be sent."""
        return self.sent < self._most and self.end == "complete"

    def now_ns(self) -> int:
        """Return the time since the begin."""
        return round(self._loop.time() * 1e9) - self._began_ns

    def latency_ns(self, number: int, scheduled_ns: int) -> int | None:
        """Return how long after its scheduled time a request was answered; None if it was not."""
        if not self.done_ns[number] or number in self.failures:
            return None
        return self.done_ns[number] - scheduled_ns

    def call_at(self, offset_ns: int, callback: Callable[[], None]) -> None:
        """Call it at a time after the begin, unless all ends before."""
        self._timer = self._loop.call_at((self._began_ns + offset_ns) / 1e9, callback)

    def launch(self) -> None:
        """Send the next request, and do not wait."""
        self.start(self._send(self.sent))
        self.sent += 1

    async def send(self) -> None:
        """Send the next request, and wait for its answer."""
        number, self.sent = self.sent, self.sent + 1
        await self._send(number)

    def start(self, sending: Coroutine[None, None, None]) -> None:
        """Begin to do something that sends."""
        task = self._loop.create_task(sending)
        self._tasks.add(task)
        task.add_done_callback(self._settle)
        self.most_in_flight = max(self.most_in_flight, len(self._tasks))

    def finish(self, end: End) -> None:
        """Say that all is sent that will be."""
        self.end = end
        if self._timer is not None:
            self._timer.cancel()
        if not self._all_sent.done():
            self._all_sent.set_result(None)

    async def run(self, begin: Callable[[], None], stop: asyncio.Event | None) -> None:
        """Begin, and wait until all is sent and answered.

        Raises:
            Exception: What the target raised, other than a `RequestError`.
        """
        stopping = None if stop is None else self._loop.create_task(self._stop(stop))
        try:
            begin()
            await self._all_sent
            while self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            self.finish(self.end)
            if stopping is not None:
                stopping.cancel()
            left = list(self._tasks)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        if self._error is not None:
            raise self._error

    async def _send(self, number: int) -> None:
        self.sent_ns[number] = self.now_ns()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._target.send(number)
        except TimeoutError:
            self.failures[number] = "timeout"
        except RequestError as error:
            self.failures[number] = error.kind
        except asyncio.CancelledError:
            self.failures[number] = "stopped before its answer"
            raise
        finally:
            self.done_ns[number] = max(1, self.now_ns())

    def _settle(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        self._error = self._error or error
        self._give_up()

    async def _stop(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.finish("stopped")
        await asyncio.sleep(_PATIENCE_S)
        self._give_up()

    def _give_up(self) -> None:
        self.finish("stopped")
        for task in self._tasks:
            task.cancel()

"""A service whose latency is known exactly: it computes nothing, and takes its time for that."""

import asyncio
import heapq

__all__ = ["FakeService", "FakeTarget"]


class FakeService:
    """A queue with a number of servers, each of which takes a fixed time for a request; the first come is served first.

    With Poisson arrivals it is M/D/c. The clock is the running loop's, so that virtual time will do.
    """

    def __init__(self, service_s: float, *, servers: int = 1, stall: tuple[float, float] | None = None) -> None:
        """Describe it.

        Args:
            service_s: Seconds a request takes once it is its turn.
            servers: How many are served at a time.
            stall: Seconds from the first request on at which everything stands still, and for how long.
        """
        self._service_s = service_s
        self._free_at = [0.0] * servers
        self._stall = stall
        self._began: float | None = None

    async def serve(self) -> None:
        """Wait for a turn, and for as long as it takes."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._began is None:
            self._began = now
        begin = max(heapq.heappop(self._free_at), now)
        end = begin + self._service_s
        if self._stall is not None:
            stall_at, stall_s = self._began + self._stall[0], self._stall[1]
            if stall_at <= begin < stall_at + stall_s:
                end = stall_at + stall_s + self._service_s
            elif begin < stall_at < end:
                end += stall_s
        heapq.heappush(self._free_at, end)
        done: asyncio.Future[None] = loop.create_future()
        timer = loop.call_at(end, done.set_result, None)
        try:
            await done
        finally:
            timer.cancel()


class FakeTarget:
    """A `Target` in the same process that such a service answers."""

    def __init__(self, service: FakeService) -> None:
        """Take the service."""
        self._service = service

    async def send(self, number: int) -> None:
        """See `Target.send`."""
        del number
        await self._service.serve()

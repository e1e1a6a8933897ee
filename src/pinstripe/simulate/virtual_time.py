"""asyncio on a clock that jumps: hours of waiting in seconds, and twice the same to the nanosecond."""

import asyncio
import heapq
import itertools
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final, TypeVar, TypeVarTuple

from pinstripe.errors import ExecutionError, UsageError

__all__ = ["run_simulated"]

_Returned = TypeVar("_Returned")
_Arguments = TypeVarTuple("_Arguments")
_WAITING_NAMED: Final = 3


def run_simulated(main: Coroutine[Any, Any, _Returned]) -> _Returned:
    """Run a coroutine as `asyncio.run` does, in virtual time.

    The loop's `time()` begins at 0, stands still while anything can run, and jumps to the next timer when all wait. It
    has whole nanoseconds, so that `round(loop.time() * 1e9)` is exact for 26 days; timers of the same nanosecond fire
    in the order in which they were set. Nothing but timers and tasks may be waited for: threads (`asyncio.to_thread`),
    sockets and processes take real time and are refused.

    Args:
        main: What to run.

    Returns:
        What it returns.

    Raises:
        ExecutionError: All tasks wait and nothing is scheduled: they would wait for ever.
        UsageError: A thread, a socket or a process was asked for.
    """
    with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
        return runner.run(main)


_Timer = tuple[int, int, asyncio.TimerHandle, Callable[[], None], Context | None]
"""When it fires, its number in the order of setting, what cancels it, what it does, and where."""


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop that keeps its timers itself, so that the one below always finds none and asks its selector to wait."""

    def __init__(self) -> None:
        self._now_ns = 0
        self._timers: list[_Timer] = []
        self._numbers = itertools.count()
        super().__init__(_Selector(self.wait))

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._now_ns / 1e9

    def call_at(
        self, when: float, callback: Callable[[*_Arguments], object], *args: *_Arguments, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer; a time that is over is now."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)

        def act() -> None:
            if not handle.cancelled():  # another timer of the same nanosecond may have done that
                callback(*args)

        heapq.heappush(self._timers, (max(round(when * 1e9), self._now_ns), next(self._numbers), handle, act, context))
        return handle

    def run_in_executor(self, *_: object) -> Any:
        """Refuse.

        Raises:
            UsageError: Always.
        """
        raise UsageError("a thread takes real time, of which a simulation has none; call the function in the task")

    def wait(self, timeout: float | None) -> None:
        """Let the timers fire that are due; jump to the next if `timeout` says that nothing else can run."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if timeout is None:
            if not self._timers:
                raise ExecutionError(f"all of a simulation waits and nothing is scheduled: {self._waiting()}")
            self._now_ns = self._timers[0][0]
        while self._timers and self._timers[0][0] <= self._now_ns:
            _, _, _, act, context = heapq.heappop(self._timers)
            self.call_soon(act, context=context)

    def _waiting(self) -> str:
        names = sorted(getattr(task.get_coro(), "__qualname__", task.get_name()) for task in asyncio.all_tasks(self))
        rest = f" and {len(names) - _WAITING_NAMED} more" if len(names) > _WAITING_NAMED else ""
        return ", ".join(names[:_WAITING_NAMED]) + rest


class _Selector(selectors.SelectSelector):
    """Waits for nothing real; the loop's own wake-up socket is the only one that it takes."""

    def __init__(self, wait: Callable[[float | None], None]) -> None:
        super().__init__()
        self._wait = wait

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Take the first.

        Raises:
            UsageError: It is another.
        """
        if self.get_map():
            raise UsageError("sockets and pipes take real time, of which a simulation has none; use queues and futures")
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait in virtual time; no socket is ever ready."""
        self._wait(timeout)
        return []

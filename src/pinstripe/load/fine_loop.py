"""An event loop whose timers are not rounded up to the next millisecond."""

import asyncio
import select
import selectors

__all__ = ["new_fine_loop"]


def new_fine_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop whose timers are late by microseconds; for `asyncio.Runner(loop_factory=…)`.

    asyncio's own waits with epoll, which counts in whole milliseconds, so that it is up to 1 ms late at each timer
    (`EpollSelector.select` in CPython's `selectors.py`): as much as the generator's whole lag may be.
    """
    return asyncio.SelectorEventLoop(_FineSelector())


class _FineSelector(selectors.EpollSelector):
    """Waits for the epoll object itself with `select`, which counts in microseconds."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            select.select([self], [], [], timeout)
            timeout = 0
        return super().select(timeout)

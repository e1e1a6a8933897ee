"""Calls that take long, beside an event loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["run_stoppable"]

T = TypeVar("T")


async def run_stoppable(call: Callable[[threading.Event], T]) -> T:
    """Run a call in another thread, and return what it returns.

    Args:
        call: Gets an event, and should end soon once that is set, which happens if whoever waits here is cancelled.
    """
    stop = threading.Event()
    try:
        return await asyncio.to_thread(call, stop)
    finally:
        stop.set()

"""Ending in order, whoever asks for it: Ctrl-C, a service manager, or the end of a terminal."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run_to_the_end"]

T = TypeVar("T")


def run_to_the_end(
    coroutine: Coroutine[Any, Any, T], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Run a coroutine; SIGTERM and SIGHUP cancel it as Ctrl-C does, unless they are ignored.

    Args:
        coroutine: What to run.
        loop_factory: Makes the event loop; None for the usual one.

    Raises:
        KeyboardInterrupt: One of them came, and the coroutine has ended.
    """

    async def cancellable() -> T:
        task = asyncio.current_task()
        if task is not None:
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_IGN:  # as nohup has it
                    continue
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await coroutine

    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(cancellable())
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error

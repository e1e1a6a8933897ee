"""Signals that ask this process to end, taken as a request."""

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["end_requests"]

_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def end_requests(handle: Callable[[int], None]) -> Iterator[None]:
    """Call `handle` with the signal's number on Ctrl-C, SIGTERM or the end of the terminal, instead of ending.

    It is called in a thread of its own: a handler in Python would have to wait for the main thread, which sleeps on
    where a signal comes just before it begins to sleep, or comes to another thread. Signals that are ignored stay so,
    as `nohup` and shells' background jobs want it. To be entered and left in the main thread.
    """
    before = {number: signal.getsignal(number) for number in _END}
    taken = [number for number in _END if before[number] is not signal.SIG_IGN]
    reader, writer = socket.socketpair()
    writer.settimeout(0)
    previous = signal.set_wakeup_fd(writer.fileno())  # Python writes the number of each signal that has a handler
    threading.Thread(target=_listen, args=(reader, taken, handle), name="pinstripe-signals", daemon=True).start()
    try:
        for number in taken:
            signal.signal(number, lambda _number, _frame: None)
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])
        signal.set_wakeup_fd(previous)
        writer.close()


def _listen(reader: socket.socket, taken: list[signal.Signals], handle: Callable[[int], None]) -> None:
    with reader:
        while received := reader.recv(1):
            if received[0] in taken:
                handle(received[0])

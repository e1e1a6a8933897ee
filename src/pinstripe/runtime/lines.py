"""What several processes write, put together line by line."""

import array
import fcntl
import os
import select
import selectors
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["LineCopier", "PrefixedLines"]

_CHUNK_BYTES = 1 << 16  # what a pipe holds


class PrefixedLines:
    """Bytes as they come, to whole lines with a prefix."""

    def __init__(self, prefix: bytes, longest_bytes: int = _CHUNK_BYTES) -> None:
        """Start with nothing.

        Args:
            prefix: Put before each line.
            longest_bytes: A line that grows to this length is broken, so that it can't use up memory.
        """
        self._prefix = prefix
        self._longest = longest_bytes
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Take some bytes and return the lines that are complete by them."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) >= self._longest:
            lines.append(self._rest)
            self._rest = b""
        return b"".join(self._prefix + line + b"\n" for line in lines)

    def flush(self) -> bytes:
        """Return a last line without an end, if there is one; it gets an end."""
        rest, self._rest = self._rest, b""
        return self._prefix + rest + b"\n" if rest else b""


@dataclass(frozen=True, slots=True)
class _Source:
    fd: int
    target: int
    lines: PrefixedLines


class LineCopier:
    """A thread that copies lines from pipes to file descriptors.

    A line is written in one piece, whoever else writes. Who writes faster than the target takes waits; memory stays
    bounded.
    """

    def __init__(self, done: Callable[[OSError | None], None]) -> None:
        """Start the thread.

        Args:
            done: Called in it when it ends: after `finish`, or with the error of a target that cannot be written.
        """
        self._done = done
        self._finishing = False
        self._selector = selectors.DefaultSelector()
        self._finish_reader, self._finish_writer = os.pipe()
        self._selector.register(self._finish_reader, selectors.EVENT_READ)
        threading.Thread(target=self._run, name="pinstripe-lines", daemon=True).start()

    @contextmanager
    def pipe(self, prefix: bytes, target: int) -> Iterator[int]:
        """Give the end of a new pipe that a child process may write into; it is closed here on leaving.

        Args:
            prefix: Put before each line.
            target: File descriptor to copy lines to.

        Raises:
            OSError: There are too many open files.
        """
        reader, writer = os.pipe()
        try:
            self._selector.register(reader, selectors.EVENT_READ, _Source(reader, target, PrefixedLines(prefix)))
            yield writer
        finally:
            os.close(writer)

    def finish(self) -> None:
        """Have it copy what is in the pipes now, and end; for when the processes have ended.

        A process that left its group could hold a pipe open forever, so their ends are not waited for. Idempotent.
        """
        if not self._finishing:
            self._finishing = True
            os.close(self._finish_writer)

    def _run(self) -> None:
        error = None
        try:
            while self._copy_once():
                pass
            for key in list(self._selector.get_map().values()):
                self._drain(key.data)
        except OSError as caught:
            error = caught
        # Whoever still writes is told so (SIGPIPE) instead of waiting forever.
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._done(error)

    def _copy_once(self) -> bool:
        """Wait for something to copy; return whether to go on."""
        ready = [key for key, _ in self._selector.select()]
        for key in ready:
            if key.data is not None:
                self._copy(key.data, _CHUNK_BYTES)
        if all(key.data is not None for key in ready):
            return True
        self._selector.unregister(self._finish_reader)
        os.close(self._finish_reader)
        return False

    def _copy(self, source: _Source, most_bytes: int) -> None:
        data = os.read(source.fd, most_bytes)
        if data:
            _write(source.target, source.lines.feed(data))
        else:
            self._selector.unregister(source.fd)
            os.close(source.fd)
            _write(source.target, source.lines.flush())

    def _drain(self, source: _Source) -> None:
        waiting = array.array("i", [0])
        fcntl.ioctl(source.fd, termios.FIONREAD, waiting)
        if waiting[0]:
            self._copy(source, waiting[0])
        _write(source.target, source.lines.flush())


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # it is shared with a program that made it so
            select.select([], [fd], [])

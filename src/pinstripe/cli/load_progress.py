"""How far a load is."""

import time
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["LoadProgress"]

_EVERY_S: Final = 1.0
"""Drawing takes a millisecond or two in which nothing is sent, so it is done rarely, and in no thread of its own."""


class LoadProgress:
    """A bar on a terminal, and nothing elsewhere."""

    def __init__(self, screen: "Console") -> None:
        """Take the screen."""
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TextColumn("{task.fields[sent]}"))
        self._bar = Progress(
            *columns, console=screen, transient=True, auto_refresh=False, disable=not screen.is_terminal
        )
        self._task = self._bar.add_task("", total=None, sent="")
        self._drawn_s = self._began_s = 0.0
        self._total: int | None = None
        self._seconds: float | None = None

    def __enter__(self) -> Self:
        """Show it."""
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take it away."""
        self._bar.stop()

    def begin(self, what: str, *, requests: int | None = None, seconds: float | None = None) -> None:
        """Say what begins, and what it goes by: its requests, or its seconds."""
        self._drawn_s = self._began_s = time.monotonic()
        self._total, self._seconds = requests, seconds
        self._bar.update(self._task, description=what, total=requests or seconds, completed=0, sent="", refresh=True)

    def show(self, sent: int) -> None:
        """Show how many requests were sent."""
        now_s = time.monotonic()
        if now_s - self._drawn_s < _EVERY_S:
            return
        self._drawn_s = now_s
        done = sent if self._total else now_s - self._began_s
        of = f" of {self._total:,}" if self._total else ""
        self._bar.update(self._task, completed=done, sent=f"{sent:,}{of} requests", refresh=True)

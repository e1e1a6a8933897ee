"""Ending in order, or not at all where that was asked for."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pinstripe.cli.interrupting import run_to_the_end


@contextmanager
def _handled(number: signal.Signals, how: signal.Handlers) -> Iterator[None]:
    before = signal.signal(number, how)
    try:
        yield
    finally:
        signal.signal(number, before)


async def _signal_itself(number: signal.Signals) -> str:
    os.kill(os.getpid(), number)
    await asyncio.sleep(0.2)
    return "went on"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_as_ctrl_c_does(number: signal.Signals) -> None:
    """A service manager's signal, and the end of a terminal."""
    with _handled(number, signal.SIG_DFL), pytest.raises(KeyboardInterrupt):  # the tests may run under nohup
        run_to_the_end(_signal_itself(number))


def test_an_ignored_hangup_stays_ignored() -> None:
    """Under nohup the work goes on when the terminal ends."""
    with _handled(signal.SIGHUP, signal.SIG_IGN):
        assert run_to_the_end(_signal_itself(signal.SIGHUP)) == "went on"

"""Creating child processes whose death signal means the death of this process.

The kernel sends a child its parent-death signal when the *thread* that created it ends, not the process
(`man 2 PR_SET_PDEATHSIG`). A child that a short-lived worker thread creates would be killed with that thread. So
children are created by the main thread, or else by one that never ends.
"""

import queue
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future

__all__ = ["spawn"]

_Create = Callable[[], subprocess.Popen[bytes]]
_Job = tuple[_Create, Future[subprocess.Popen[bytes]]]


def spawn(create: _Create) -> subprocess.Popen[bytes]:
    """Call `create` in a thread that lives as long as this process, and return what it returns.

    Args:
        create: Creates the child; runs in another thread unless this is the main one.

    Raises:
        OSError: As `create` raises it.
    """
    if threading.current_thread() is threading.main_thread():
        return create()
    future: Future[subprocess.Popen[bytes]] = Future()
    _lasting_thread.jobs().put((create, future))
    return future.result()


class _LastingThread:
    """A daemon thread, started when first used; a forked process, which has lost it, starts its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()

    def jobs(self) -> queue.SimpleQueue[_Job]:
        """Return the queue that the thread serves."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._jobs = queue.SimpleQueue()
                self._thread = threading.Thread(target=_serve, args=(self._jobs,), name="pinstripe-spawn", daemon=True)
                self._thread.start()
            return self._jobs


def _serve(jobs: queue.SimpleQueue[_Job]) -> None:
    while True:
        create, future = jobs.get()
        try:
            future.set_result(create())
        except BaseException as error:  # noqa: BLE001  it is raised again in the thread that asked
            future.set_exception(error)


_lasting_thread = _LastingThread()

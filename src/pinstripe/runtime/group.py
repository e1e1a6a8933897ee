"""Several processes that run, and end, together."""

import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from pinstripe.errors import ExecutionError, StartError
from pinstripe.runtime.group_result import GroupResult, MemberResult, Outcome
from pinstripe.runtime.guard import Guard
from pinstripe.runtime.lines import LineCopier
from pinstripe.runtime.process import Process
from pinstripe.runtime.refused_file import shown
from pinstripe.runtime.starting import StartRequest, start

__all__ = ["Group"]


@dataclass(frozen=True, slots=True)
class _Ended:
    index: int


@dataclass(frozen=True, slots=True)
class _Stuck:
    index: int


@dataclass(frozen=True, slots=True)
class _Interrupted:
    number: int


@dataclass(frozen=True, slots=True)
class _Copied:
    error: OSError | None


_Event: TypeAlias = _Ended | _Stuck | _Interrupted | _Copied


@dataclass(slots=True)
class _Member:
    process: Process
    started_s: float
    ended_s: float | None = None
    asked_to_stop: bool = False
    stuck: bool = False


class Group:
    """Runs processes until all have ended, and leaves none behind, not even when this process is killed.

    When one fails the others are stopped. Use it once. The calling thread sleeps meanwhile.
    """

    def __init__(self, *, grace_s: float = 10.0, keep_going: bool = False) -> None:
        """Prepare a group.

        Args:
            grace_s: Time from SIGTERM to SIGKILL for processes that have to stop, in seconds.
            keep_going: Whether the others run on when one fails.
        """
        self._grace_s = grace_s
        self._keep_going = keep_going
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._members: list[_Member] = []
        self._interruption: int | None = None
        self._first_failure: int | None = None
        self._copier: LineCopier | None = None
        self._copy_error: OSError | None = None

    def interrupt(self, number: int) -> None:
        """Stop all; a second time, at once. May be called from a signal handler and from any thread.

        Args:
            number: Of the signal that asks for it, for `GroupResult.exit_code`.
        """
        self._events.put(_Interrupted(number))

    def run(self, requests: Sequence[StartRequest], prefixes: Sequence[bytes] | None = None) -> GroupResult:
        """Start processes and wait until all have ended.

        Args:
            requests: What to start.
            prefixes: For each, what to put before every line it writes; the lines go to this process's standard output
                and error. A line is never mixed with another's; one of more than 64 KiB is broken. None leaves output
                as the requests say.

        Raises:
            StartError: One could not be started; the others are stopped.
            OSError: The lines could not be written; all are stopped.
        """
        try:
            guard = Guard()
        except OSError as error:
            raise StartError(f"cannot start {sys.executable} ({error}); check the limits (ulimit -a)") from error
        with guard:
            if prefixes is not None:
                self._copier = LineCopier(lambda error: self._events.put(_Copied(error)))
            try:
                self._start_all(requests, prefixes, guard)
                while self._running():
                    self._handle(self._events.get())
            finally:
                self._stop_all()
                while self._running():
                    self._handle(self._events.get())
                self._finish_copying()
        if self._copy_error is not None and self._interruption is None:
            raise self._copy_error
        return self._result(requests)

    def _start_all(self, requests: Sequence[StartRequest], prefixes: Sequence[bytes] | None, guard: Guard) -> None:
        for index, request in enumerate(requests):
            while not self._events.empty():
                self._handle(self._events.get())
            if self._stopping:
                return
            started_s = time.monotonic()
            process = self._start(request, prefixes[index] if prefixes is not None else None)
            guard.watch(process.pid)
            self._members.append(_Member(process, started_s))
            self._in_thread(self._await_end, index, guard)

    def _start(self, request: StartRequest, prefix: bytes | None) -> Process:
        if self._copier is None or prefix is None:
            return start(request)
        try:
            with self._copier.pipe(prefix, 1) as output, self._copier.pipe(prefix, 2) as errors:
                return start(msgspec.structs.replace(request, output=output, errors=errors))
        except OSError as error:
            raise StartError(f"cannot make pipes for {shown(request.argv[0])} ({error}); see ulimit -n") from error

    @property
    def _stopping(self) -> bool:
        failed = self._first_failure is not None and not self._keep_going
        return failed or self._interruption is not None or self._copy_error is not None

    def _running(self) -> bool:
        return any(member.ended_s is None and not member.stuck for member in self._members)

    def _handle(self, event: _Event) -> None:
        match event:
            case _Ended(index):
                self._note_end(self._members[index])
            case _Stuck(index):
                self._members[index].stuck = True
            case _Copied(error):
                self._copy_error = error
                if self._copier:
                    self._copier.finish()
                    self._copier = None
                if error:
                    self._stop_all()
            case _Interrupted(number) if self._interruption is None:
                self._interruption = number
                self._stop_all()
            case _Interrupted():
                self._stop_all(grace_s=0)

    def _note_end(self, member: _Member) -> None:
        member.ended_s = time.monotonic()
        status = member.process.poll()
        if status and not member.asked_to_stop and self._first_failure is None:
            self._first_failure = status
            if not self._keep_going:
                self._stop_all()

    def _stop_all(self, grace_s: float | None = None) -> None:
        for index, member in enumerate(self._members):
            if member.ended_s is None and not member.stuck and (grace_s is not None or not member.asked_to_stop):
                member.asked_to_stop = True
                self._in_thread(self._stop, index, self._grace_s if grace_s is None else grace_s)

    def _finish_copying(self) -> None:
        """Wait until all that was written is copied, unless an interruption says that nobody wants it."""
        if self._copier is None:
            return
        self._copier.finish()
        interrupted = self._interruption is not None
        while self._copier is not None:
            try:
                event = self._events.get(timeout=self._grace_s if interrupted else None)
            except queue.Empty:
                return
            self._handle(event)
            if isinstance(event, _Interrupted):
                return

    def _in_thread(self, function: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=function, args=arguments, daemon=True).start()

    def _await_end(self, index: int, guard: Guard) -> None:
        process = self._members[index].process
        process.wait()
        guard.forget(process.pid)
        self._events.put(_Ended(index))

    def _stop(self, index: int, grace_s: float) -> None:
        try:
            self._members[index].process.stop(grace_s)
        except ExecutionError:
            self._events.put(_Stuck(index))

    def _result(self, requests: Sequence[StartRequest]) -> GroupResult:
        members = tuple(
            _member_result(index, request, self._members[index])
            if index < len(self._members)
            else MemberResult(index=index, outcome="not-started")
            for index, request in enumerate(requests)
        )
        if self._interruption is not None:
            return GroupResult(exit_code=128 + self._interruption, members=members)
        failure = self._first_failure or 0
        return GroupResult(exit_code=128 - failure if failure < 0 else failure, members=members)


def _member_result(index: int, request: StartRequest, member: _Member) -> MemberResult:
    status = None if member.stuck else member.process.poll()
    outcome: Outcome = "failed" if status else "succeeded"
    if member.asked_to_stop:
        outcome = "stuck" if member.stuck else "stopped"
    return MemberResult(
        index=index,
        outcome=outcome,
        status=status,
        duration_s=(member.ended_s or time.monotonic()) - member.started_s,
        cpus=request.cpus,
        memory=member.process.memory,
    )

"""Starting a process on given cores, with a given memory policy and environment."""

import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from signal import SIGKILL
from typing import IO, Literal

import msgspec

from pinstripe.errors import StartError
from pinstripe.machine import format_cpu_list
from pinstripe.runtime.huge_pages import DISABLE_FLAGS, HugePages, explain_refused_huge_pages
from pinstripe.runtime.memory_policy import (
    MemoryPolicy,
    MemoryPolicyEffect,
    PolicyCall,
    PolicyOutcome,
    judge,
    nodes_with_memory,
    resolve,
)
from pinstripe.runtime.process import Process, kill_group
from pinstripe.runtime.refused_file import explain_refused_file, shown
from pinstripe.runtime.spawn import spawn

__all__ = ["StartRequest", "start"]

_TRAMPOLINE = Path(__file__).with_name("trampoline.py")
_ANSWER_LIMIT_S = 60.0  # an interpreter starts in 20 ms; from a cold network file system it may take many seconds


class StartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command, and where it should run.

    Attributes:
        argv: The command and its arguments; a command without a slash is looked for in the child's `PATH`.
        cpus: CPUs it may run on, exactly these; None inherits the parent's.
        memory_policy: `preferred`, `bind` and `interleave` hold for `nodes`, `local` is the node of the running thread,
            `none` leaves what is inherited; each of these takes effect or the start fails. `auto` is, on machines with
            several nodes that have memory, `preferred` for one node and `interleave` for more, and `none` on others
            and where system calls are filtered.
        nodes: Ids of the NUMA nodes for the policy, ascending.
        huge_pages: What the process may have of transparent huge pages; takes effect or the start fails.
        environment: What differs from the parent's environment, in the child only; None removes a variable.
        pass_fds: File descriptors that the child inherits, by the same numbers.
        output: Where its standard output and error go: `inherit` the parent's, or `keep` them in a nameless temporary
            file, which can never block the child, for `Process.output_tail`; or into a file descriptor of this process.
        errors: File descriptor of this process for standard error; None for where `output` says.
    """

    argv: tuple[str, ...]
    cpus: tuple[int, ...] | None = None
    memory_policy: MemoryPolicy = "auto"
    nodes: tuple[int, ...] = ()
    huge_pages: HugePages = "inherit"
    environment: dict[str, str | None] = {}
    pass_fds: tuple[int, ...] = ()
    output: Literal["inherit", "keep"] | int = "inherit"
    errors: int | None = None


class _Report(msgspec.Struct, frozen=True, tag="report"):
    cpus: tuple[int, ...]
    policy: PolicyOutcome


class _Failure(msgspec.Struct, frozen=True, tag="failure"):
    step: Literal["start", "affinity", "huge_pages", "memory", "exec"]
    reason: str
    errno: int | None = None


def start(request: StartRequest) -> Process:
    """Start a process; when this returns, its command runs where it was asked to.

    The process leads its own session, so that neither Ctrl-C nor the end of a terminal reaches it; its standard input
    is empty. It is killed when this process ends, however that happens. That does not hold for processes that it
    starts itself (they end with `Process.stop`), nor for a command that gains privileges by being executed, for which
    the kernel clears the signal (`man 2 PR_SET_PDEATHSIG`). May be called from any thread; takes about 50 ms.

    Args:
        request: What to start, and where.

    Raises:
        StartError: It could not be started exactly so; nothing is left running.
    """
    if not request.argv:
        raise StartError("there is no command to start: argv is empty")
    call, why = resolve(request.memory_policy, request.nodes, nodes_with_memory())
    with ExitStack() as undo:
        try:
            kept = undo.enter_context(tempfile.TemporaryFile()) if request.output == "keep" else None
            ours, theirs = (undo.enter_context(end) for end in socket.socketpair())
            child = _create(request, theirs.fileno(), kept)
        except (OSError, ValueError) as error:
            raise StartError(
                f"cannot create a process for {shown(request.argv[0])} with {sys.executable} ({error}); check "
                "pass_fds, the limits of processes and open files (ulimit -a) and the temporary directory"
            ) from error
        undo.callback(_abandon, child)
        theirs.close()
        memory = _hand_over(ours, request, call, why)
        ours.close()
        undo.pop_all()
    return Process(child, memory, kept)


def _create(request: StartRequest, channel: int, kept: IO[bytes] | None) -> subprocess.Popen[bytes]:
    output = request.output if isinstance(request.output, int) else kept
    return spawn(
        lambda: subprocess.Popen(
            [sys.executable, "-I", "-S", str(_TRAMPOLINE), str(channel)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output if request.errors is None else request.errors,
            pass_fds=(channel, *request.pass_fds),
            start_new_session=True,
        )
    )


def _abandon(child: subprocess.Popen[bytes]) -> None:
    kill_group(child.pid, SIGKILL)
    child.wait()


def _hand_over(channel: socket.socket, request: StartRequest, call: PolicyCall | None, why: str) -> MemoryPolicyEffect:
    """Have the trampoline apply the request, check what took effect, and let it execute the command."""
    channel.settimeout(_ANSWER_LIMIT_S)
    answer = _ask(channel, _message(request, call))
    if answer is None:
        raise StartError(f"{sys.executable} ended before it could start {shown(request.argv[0])}; see its error output")
    if isinstance(answer, _Failure):
        raise _explain(request, answer)
    if request.cpus is not None and answer.cpus != tuple(sorted(set(request.cpus))):
        raise _explain(request, _Failure("affinity", f"the kernel grants only {format_cpu_list(answer.cpus)}"))
    memory = judge(request.memory_policy, call, why, answer.policy)
    failure = _ask(channel, b"go\n")
    if isinstance(failure, _Failure):
        raise _explain(request, failure)
    return memory


def _message(request: StartRequest, call: PolicyCall | None) -> bytes:
    environment = {**os.environ, **request.environment}
    message = {
        "parent_pid": os.getpid(),
        "cpus": request.cpus,
        "thp_disable_flags": DISABLE_FLAGS[request.huge_pages],
        "policy": call,
        "argv": [_latin_1(text) for text in request.argv],
        "environment": {_latin_1(k): _latin_1(v) for k, v in environment.items() if v is not None},
    }
    return msgspec.json.encode(message) + b"\n"


def _latin_1(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


def _ask(channel: socket.socket, message: bytes) -> _Report | _Failure | None:
    """Send a line and return the answer; None if there is none, because the trampoline executed its command or died."""
    try:
        channel.sendall(message)
        with channel.makefile("rb") as lines:
            answer = lines.readline()
    except TimeoutError:
        raise StartError(
            f"no sign of life from {sys.executable} after {_ANSWER_LIMIT_S:.0f} s; is the machine overloaded?"
        ) from None
    except OSError:  # it died before it read the message
        return None
    return msgspec.json.decode(answer, type=_Report | _Failure) if answer else None


def _explain(request: StartRequest, failure: _Failure) -> StartError:
    command = shown(request.argv[0])
    if failure.step == "affinity":
        allowed = format_cpu_list(os.sched_getaffinity(0))
        return StartError(
            f"cannot run {command} on CPUs {format_cpu_list(request.cpus or ()) or 'none'} ({failure.reason}); this "
            f"process may use {allowed}: CPUs have to be online and in its cpuset, so choose others or plan again"
        )
    if failure.step == "huge_pages":
        return StartError(f"cannot start {command}: {explain_refused_huge_pages(request.huge_pages, failure.reason)}")
    if failure.step == "exec":
        path = {**os.environ, **request.environment}.get("PATH")
        why = explain_refused_file(request.argv[0], path, failure.errno)
        if why is not None:
            return StartError(f"cannot execute {command} ({failure.reason}): {why}")
        if len(request.argv) == 1 and any(sign in request.argv[0] for sign in " |;&"):
            return StartError(f"cannot execute {command} ({failure.reason}); a line for a shell needs sh -c before it")
        return StartError(f"cannot execute {command} ({failure.reason}); check its name, its permissions and PATH")
    return StartError(f"cannot start {command}: {failure.step} failed ({failure.reason})")

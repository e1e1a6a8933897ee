"""Limits that a process lays on itself: control groups of both versions, and a filter of system calls."""

import ctypes
import json
import os
import struct
import subprocess
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from .progress import tell

__all__ = [
    "GROUPS",
    "deny_memory_policies",
    "in_child",
    "join_group",
    "leave_group",
    "mount_groups",
    "mount_old_groups",
]

GROUPS = Path("/sys/fs/cgroup")


def mount_groups() -> None:
    """Mount control groups, version 2."""
    _mount("cgroup2", GROUPS)
    (GROUPS / "cgroup.subtree_control").write_text("+cpuset +cpu")


def mount_old_groups() -> None:
    """Mount control groups, version 1: a hierarchy for each controller."""
    _mount("tmpfs", GROUPS)
    for controller in ("cpu", "cpuset"):
        (GROUPS / controller).mkdir()
        _mount("cgroup", GROUPS / controller, "-o", controller)


def _mount(kind: str, point: Path, *options: str) -> None:
    subprocess.run(["/bin/mount", "-t", kind, *options, kind, str(point)], check=True)


def join_group(name: str, limits: Mapping[str, str]) -> None:
    """Make a control group below `GROUPS` with these limits, and move this process into it."""
    group = GROUPS / name
    group.mkdir()
    for limit, value in limits.items():
        (group / limit).write_text(value)
    (group / "cgroup.procs").write_text(str(os.getpid()))


def leave_group(name: str, controllers: str) -> None:
    """Leave a group for the root, and let groups below it have controllers, such as `+cpu`."""
    (GROUPS / "cgroup.procs").write_text(str(os.getpid()))
    (GROUPS / name / "cgroup.subtree_control").write_text(controllers)


def in_child(action: Callable[[], Any]) -> Any:
    """Run `action` in a forked process, so that what it does to itself ends with it."""
    tell(f"in a child: {action}")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(action, writer)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise ChildProcessError(f"{action} ended with status {status}")
    return json.loads(text)


def _answer(action: Callable[[], Any], writer: int) -> NoReturn:
    """Write what `action` returns; whatever it raises, the parent's code is not run a second time in this process."""
    try:
        with os.fdopen(writer, "w") as answer:
            json.dump(action(), answer)
    except BaseException:  # noqa: BLE001 - it is shown, and the process ends by it
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def deny_memory_policies() -> None:
    """Have set_mempolicy (238) fail with EPERM (1) by a seccomp filter, as container engines do."""
    instructions = [(0x20, 0, 0, 0), (0x15, 0, 1, 238), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in instructions))
    program = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(code))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER

"""A run of a command in an emulated machine."""

import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .cpio import Cpio
from .firmware import PATH_IN_ARCHIVE, processor_table
from .image import Image
from .layout import Layout

__all__ = ["Run", "run_in_guest"]

# With the default vendor, AMD, this emulation has no TOPOEXT and so no hardware threads. What is off costs time.
_PROCESSOR: Final = "max,vendor=GenuineIntel,la57=off,smap=off,smep=off,pku=off,monitor=off"
# About a second of a boot is self-tests and certificates that nothing here uses.
_PARAMETERS: Final = (
    "console=ttyS0 panic=-1 quiet nokaslr mitigations=off no_timer_check tsc=reliable random.trust_cpu=on nowatchdog "
    "cryptomgr.notests lsm= apparmor=0 initcall_blacklist=crypto_kdf108_init,init_kprobe_trace,init_encrypted,"
    "load_system_certificate_list,cubictcp_register,digsig_init,init_ima,apparmor_nf_ip_init"
)
_MOST_AT_ONCE: Final = 16
_LIMIT_S: Final = 600.0
_EXIT: Final = re.compile(r"\n@@exit (\d+)@@\n")


@dataclass(frozen=True)
class Run:
    """How it went.

    Attributes:
        status: The command's exit status; None if the guest did not come to its end.
        output: What it wrote, to standard error too; without a status, what the kernel wrote.
        seconds: Time from the start of the emulator to its end.
    """

    status: int | None
    output: str
    seconds: float


def run_in_guest(image: Image, layout: Layout, command: str, files: bytes) -> Run:
    """Boot a machine, run a shell command in it, and end it.

    Args:
        image: Kernel and first file system.
        layout: How the machine is made.
        command: The command.
        files: Archive of more files.
    """
    with tempfile.TemporaryDirectory() as temporary:
        log, output, initrd = (Path(temporary) / name for name in ("log", "output", "initrd"))
        initrd.write_bytes(_tables(layout) + image.root.read_bytes() + files + _job(command))
        emulator = (
            *("qemu-system-x86_64", "-accel", _accelerator(layout), "-machine", "pc,usb=off,vmport=off"),
            *("-cpu", _PROCESSOR, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-kernel", str(image.kernel), "-initrd", str(initrd)),
            *("-append", f"{_PARAMETERS} {layout.parameters}", "-serial", f"file:{log}", "-serial", f"file:{output}"),
            *layout.qemu_options(),
        )
        began_s = time.monotonic()
        complaint = _run(emulator)
        seconds = time.monotonic() - began_s
        said = output.read_text(errors="replace") if output.exists() else ""
        end = _EXIT.search(said)
        if end is None:
            kernel = log.read_text(errors="replace") if log.exists() else ""
            return Run(None, "\n".join((complaint, kernel[-3000:], said)), seconds)
        return Run(int(end[1]), said[: end.start()], seconds)


def _run(emulator: Sequence[str]) -> str:
    """Run the emulator to its end, and return what it complains of."""
    try:
        run = subprocess.run(
            emulator, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the guest did not end within {_LIMIT_S:.0f} s"
    return run.stdout + run.stderr


def _accelerator(layout: Layout) -> str:
    """Emulate CPUs at the same time; many of them, which then mostly wait for each other's locks, in turn."""
    return "tcg,thread=multi" if layout.cpus <= _MOST_AT_ONCE else "tcg,thread=single"


def _tables(layout: Layout) -> bytes:
    if layout.numbering == "adjacent":  # which is how QEMU counts
        return b""
    archive = Cpio()
    archive.file(PATH_IN_ARCHIVE, processor_table(layout))
    return archive.finished()


def _job(command: str) -> bytes:
    archive = Cpio()
    archive.file("job", f"{command}\n".encode())
    return archive.finished()

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
# Steps of a case take seconds; with six other programs for each CPU of the host, up to 130. A guest that is alive says
# within twice this where it hangs, and ends. One that is silent for longer has an emulator or a kernel that stands
# still.
_SILENCE_S: Final = 240
_LIMIT_S: Final = 2 * _SILENCE_S + 60.0
_POLL_S: Final = 0.1
# All CPUs in one thread: less of the host (64 s of its CPU instead of 83 for `two_nodes`, in the same time), so that as
# many guests as it has CPUs run at a time; and no threads of the emulator that could miss each other's signals.
_ACCELERATOR: Final = "tcg,thread=single"
_EXIT: Final = re.compile(r"\n@@exit (\d+)@@\n")


@dataclass(frozen=True)
class Run:
    """How it went.

    Attributes:
        status: The command's exit status, 124 if it hung; None if the guest did not come to its end.
        output: What it wrote, to standard error too; without a status, also what the emulator and the kernel wrote.
        stood_still: Whether the guest did not even say that the command hung.
        seconds: Time from the start of the emulator to its end.
    """

    status: int | None
    output: str
    stood_still: bool
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
            *("qemu-system-x86_64", "-accel", _ACCELERATOR, "-machine", "pc,usb=off,vmport=off"),
            *("-cpu", _PROCESSOR, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-kernel", str(image.kernel), "-initrd", str(initrd)),
            *("-append", f"{_PARAMETERS} silence_s={_SILENCE_S} {layout.parameters}"),
            *("-monitor", "stdio", "-serial", f"file:{log}", "-serial", f"file:{output}"),
            *layout.qemu_options(),
        )
        began_s = time.monotonic()
        complaint, stood_still = _run(emulator, output)
        seconds = time.monotonic() - began_s
        said = output.read_text(errors="replace") if output.exists() else ""
        end = _EXIT.search(said)
        if end is None:
            kernel = log.read_text(errors="replace") if log.exists() else ""
            return Run(None, "\n".join((complaint, kernel[-3000:], said)), stood_still, seconds)
        return Run(int(end[1]), said[: end.start()], stood_still, seconds)


def _run(emulator: Sequence[str], output: Path) -> tuple[str, bool]:
    """Run the emulator to its end, and return what it complains of and whether it had to be ended."""
    with subprocess.Popen(
        emulator, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            if not _ends(process, output):
                return f"the guest said nothing for {_LIMIT_S:.0f} s\n{_interrogated(process)}", True
        except BaseException:
            process.kill()
            raise
        return process.communicate()[0], False


def _ends(process: subprocess.Popen[str], output: Path) -> bool:
    """Wait for the emulator's end, as long as the output grows; return whether it has come."""
    size, last_s = 0, time.monotonic()
    while process.poll() is None:
        if output.exists() and output.stat().st_size > size:
            size, last_s = output.stat().st_size, time.monotonic()
        if time.monotonic() - last_s > _LIMIT_S:
            return False
        time.sleep(_POLL_S)
    return True


def _interrogated(process: subprocess.Popen[str]) -> str:
    """End the emulator, and return what each CPU was doing, as its monitor answers."""
    try:
        said, _ = process.communicate("info registers -a\nquit\n", timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        return "and the emulator's monitor does not answer"
    return "\n".join(line for line in said.splitlines() if line.startswith(("CPU#", "RIP=")))


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

"""CPU numbers as text: the lists of numactl and the kernel (`0-3,8`), and the kernel's hexadecimal masks."""

import re
from collections.abc import Iterable

from pinstripe.errors import MachineError

__all__ = ["format_cpu_list", "parse_cpu_list", "parse_cpu_mask"]

# Far above the 8192 CPUs of the largest Linux configuration (arch/x86/Kconfig, NR_CPUS), far below what hurts.
_LIMIT = 1 << 16
_ITEM = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)
_MASK = re.compile(r"[0-9a-fA-F]{1,8}(?:,[0-9a-fA-F]{8})*", re.ASCII)
# Some kernels' sysfs files, and so copies of them, end with a NUL byte.
_PADDING = "\0 \t\r\n"


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """Return the CPUs (or NUMA nodes) of a list such as `0-3,8`, ascending and without duplicates.

    Args:
        text: Numbers and ranges separated by commas, with spaces, line ends or NUL bytes around them; a blank text is
            the empty list, as the kernel writes it.

    Raises:
        MachineError: The text has another form, a range runs backwards, a number is not below 65536, or
            numbers are repeated to more than that many.
    """
    stripped = text.strip(_PADDING)
    if not stripped:
        return ()
    cpus: list[int] = []
    for item in stripped.split(","):
        match = _ITEM.fullmatch(item.strip(_PADDING))
        if match is None:
            raise MachineError(f"{text[:80]!r} is not a list of CPUs; write one such as 0-3,8")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < _LIMIT:
            message = (
                f"{match[0]!r} in the list of CPUs {text[:80]!r} is no range of numbers below {_LIMIT}; correct it"
            )
            raise MachineError(message)
        cpus.extend(range(first, last + 1))
        if len(cpus) > _LIMIT:
            raise MachineError(f"the list of CPUs {text[:80]!r}... repeats more than {_LIMIT} numbers; shorten it")
    return tuple(sorted(set(cpus)))


def parse_cpu_mask(text: str) -> tuple[int, ...]:
    """Return the CPUs of a kernel mask such as `00000000,0000000f`, ascending.

    Args:
        text: Hexadecimal words of 32 bits, most significant first (only that one may be shorter), separated by commas,
            with spaces, line ends or NUL bytes around them. See `%*pb` in the kernel's `printk-formats`.

    Raises:
        MachineError: The text has another form, or has more than 65536 bits.
    """
    stripped = text.strip(_PADDING)
    if _MASK.fullmatch(stripped) is None:
        raise MachineError(f"{text[:80]!r} is not a mask of CPUs; write one such as 00000000,0000000f")
    digits = stripped.replace(",", "")
    if len(digits) * 4 > _LIMIT:
        raise MachineError(f"the mask of CPUs {text[:80]!r}... has more than {_LIMIT} bits; correct it")
    bits = int(digits, 16)
    return tuple(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def format_cpu_list(cpus: Iterable[int]) -> str:
    """Return the shortest list that `parse_cpu_list` reads back, such as `0-3,8`; blank for no CPUs.

    Args:
        cpus: CPU numbers, at least 0, in any order.
    """
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)

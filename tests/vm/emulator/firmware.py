"""The table by which the firmware tells Linux of its CPUs; Linux counts them in the order of that table."""

import struct

from .layout import Layout

__all__ = ["PATH_IN_ARCHIVE", "processor_table"]

PATH_IN_ARCHIVE = "kernel/firmware/acpi/apic.aml"
"""Where the kernel finds a table to use instead, see Documentation/admin-guide/acpi/initrd_table_override.rst"""

_HEADER = "<4sIBB6s8sI4sI"
_LEGACY_INTERRUPTS = (5, 9, 10, 11)


def processor_table(layout: Layout) -> bytes:
    """Return QEMU's Multiple APIC Description Table with the processors in another order (ACPI 6.5, section 5.2.12)."""
    entries = [struct.pack("<BBBBI", 0, 8, cpu, _apic_id(layout, cpu), 1) for cpu in layout.order()]
    entries.append(struct.pack("<BBBBII", 1, 12, 0, 0, 0xFEC00000, 0))  # the I/O APIC
    entries.append(struct.pack("<BBBBIH", 2, 10, 0, 0, 2, 0))  # the timer
    entries += [struct.pack("<BBBBIH", 2, 10, 0, line, line, 0xD) for line in _LEGACY_INTERRUPTS]
    entries.append(struct.pack("<BBBHB", 4, 6, 0xFF, 0, 1))  # the non-maskable interrupt of all processors
    body = struct.pack("<II", 0xFEE00000, 1) + b"".join(entries)
    return _header(body, -sum(_header(body, 0) + body) % 256) + body


def _header(body: bytes, checksum: int) -> bytes:
    # The OEM revision is 2, one more than QEMU's: only a newer table replaces the firmware's.
    length = struct.calcsize(_HEADER) + len(body)
    return struct.pack(_HEADER, b"APIC", length, 1, checksum, b"BOCHS ", b"BXPC    ", 2, b"BXPC", 1)


def _apic_id(layout: Layout, cpu: int) -> int:
    """Return the number by which QEMU addresses a CPU: a field of bits for each level."""
    socket, die, core, thread = layout.place(cpu)
    number = socket
    for index, count in ((die, layout.dies), (core, layout.cores), (thread, layout.threads)):
        number = number << (count - 1).bit_length() | index
    return number

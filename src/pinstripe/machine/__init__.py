"""What is this host, and how much of it is ours?"""

from pinstripe.machine.counters import Counters, read_counters, read_idle_ns
from pinstripe.machine.cpu_list import format_cpu_list, parse_cpu_list, parse_cpu_mask
from pinstripe.machine.description import Core, CoreKind, Machine, Node
from pinstripe.machine.frequency import read_frequency_mhz
from pinstripe.machine.memory import Memory, read_memory
from pinstripe.machine.offline import read_offline
from pinstripe.machine.power import Power, read_power
from pinstripe.machine.reading import read_isa, read_machine

__all__ = [
    "Core",
    "CoreKind",
    "Counters",
    "Machine",
    "Memory",
    "Node",
    "Power",
    "format_cpu_list",
    "parse_cpu_list",
    "parse_cpu_mask",
    "read_counters",
    "read_frequency_mhz",
    "read_idle_ns",
    "read_isa",
    "read_machine",
    "read_memory",
    "read_offline",
    "read_power",
]

"""What is this host, and how much of it is ours?"""

from pinstripe.machine.counters import Counters, read_counters
from pinstripe.machine.cpu_list import format_cpu_list, parse_cpu_list, parse_cpu_mask
from pinstripe.machine.description import Core, CoreKind, Machine, Node
from pinstripe.machine.reading import read_machine

__all__ = [
    "Core",
    "CoreKind",
    "Counters",
    "Machine",
    "Node",
    "format_cpu_list",
    "parse_cpu_list",
    "parse_cpu_mask",
    "read_counters",
    "read_machine",
]

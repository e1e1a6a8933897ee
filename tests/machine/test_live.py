"""The machine the tests run on."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from pinstripe.machine import Machine, read_machine


def test_agrees_with_python() -> None:
    """Online and allowed CPUs are those that Python counts."""
    machine = read_machine()
    assert len(machine.online) == os.cpu_count()
    assert set(machine.allowed) == os.sched_getaffinity(0)


def test_memory_is_the_kernels() -> None:
    """The nodes have memory, and not more than the system (memory that a hypervisor may add later is in no node)."""
    total_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < sum(node.memory_bytes for node in read_machine().nodes) <= 1.02 * total_bytes


def test_affinity_counts() -> None:
    """A process that is bound to one CPU has one CPU, and sees the others as online."""
    machine = read_machine()
    cpu = machine.allowed[-1]
    code = (
        f"import os; os.sched_setaffinity(0, {{{cpu}}}); from pinstripe.machine import read_machine;"
        "m = read_machine(); print(m.allowed, m.online)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == f"{(cpu,)} {machine.online}"


def test_root_by_another_name(tmp_path: Path) -> None:
    """A link to the root is the live machine."""
    (tmp_path / "root").symlink_to("/")
    assert read_machine(tmp_path / "root") == read_machine()


def test_survives_encoding() -> None:
    """A machine is plain data: it comes back from JSON as it was."""
    machine = read_machine()
    assert msgspec.json.decode(msgspec.json.encode(machine), type=Machine) == machine


def test_import_is_light() -> None:
    """Reading machines loads no heavy library."""
    code = "import sys, pinstripe.machine; print(sorted({'numpy', 'torch', 'tokenizers'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"

"""Machines written as files."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pinstripe.machine import Machine, read_machine
from pinstripe.testing import machines
from pinstripe.testing.trees import write_tree


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(machines.c5_metal(), id="two sockets"),
        pytest.param(machines.epyc_7763_nps4(), id="many nodes and caches"),
        pytest.param(machines.container_2cpu(), id="quota"),
        pytest.param(
            replace(machines.hybrid_1370p(), allowed=(0, 1, 12), thp="never", isa=("avx2",)), id="hybrid, limits"
        ),
        pytest.param(replace(machines.uniform(), isolated=(2, 3)), id="isolated"),
    ],
)
def test_reads_as_written(tmp_path: Path, machine: Machine) -> None:
    """What is written is read as the same machine."""
    write_tree(machine, tmp_path)
    assert read_machine(tmp_path) == machine

"""The picture of a machine's cores."""

import io
import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from pinstripe.cli.core_map import core_map
from pinstripe.machine import Machine, Node, read_machine, read_offline
from pinstripe.testing import machines
from pinstripe.testing.dumps import unpack_dump

TOPOLOGIES = Path(__file__).parents[2] / ".." / "shared" / "topologies"
SIGNS = "■▪·i×"  # noqa: RUF001 - the map's own

KNOWN = {
    "2x48": machines.uniform(packages=2, cores_per_node=48, smt=2),
    "2x64 nps4": machines.uniform(packages=2, nodes_per_package=4, cores_per_node=16, smt=2, cores_per_l3=8),
    "4x60": machines.uniform(packages=4, cores_per_node=60, smt=2),
    "8280": machines.uniform(packages=2, cores_per_node=28, smt=2),
    "c5.metal": machines.c5_metal(),
    "7742": machines.epyc_7742_nps4(),
    "hybrid": machines.hybrid_1370p(),
    "container": machines.container_2cpu(),
    "limits": replace(machines.uniform(smt=2), allowed=(0, 1, 2, 3), isolated=(3, 7)),
}

ODD = (
    "hwloc-16amd64-8n2c-cpusets",
    "hwloc-256ppc-8n8s4t",
    "hwloc-fakememinitiators-1np2c+1npp+gi",
    "hwloc-offline-cpu0-node0",
    "lscpu-arm-A510-A710-A715-X3",
    "lscpu-x86_64-64cpu",
)


def drawn(machine: Machine, offline: tuple[int, ...] = (), *, width: int = 80, squares: bool = True) -> list[str]:
    """Return the lines of a map with its legend, as they are printed without colours."""
    console = Console(file=io.StringIO(), width=width)
    console.print(*core_map(machine, offline, width=width, squares=squares), sep="\n")
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def labelled(label: str) -> list[int]:
    """Read a row's CPUs: `0-3,8`, or `0,4..28` for equal distances."""
    stride = re.fullmatch(r"(\d+),(\d+)\.\.(\d+)", label)
    if stride:
        first, second, last = map(int, stride.groups())
        return list(range(first, last + 1, second - first))
    ends = (part.split("-") for part in label.split(","))
    return [cpu for part in ends for cpu in range(int(part[0]), int(part[-1]) + 1)]


def check_rows(lines: list[str], cpus: list[int]) -> None:
    """Check that each CPU is in one row's label, and has one sign there."""
    rows = re.findall(rf"^.* (\d[\d,.-]*) +([{SIGNS}][{SIGNS} |]*)$", "\n".join(lines[1:-1]), re.MULTILINE)
    assert sorted(cpu for label, _ in rows for cpu in labelled(label)) == cpus
    for label, signs in rows:
        assert len(labelled(label)) == sum(signs.count(sign) for sign in SIGNS)


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("name", KNOWN)
def test_every_cpu_once(name: str, width: int) -> None:
    """Each CPU is one sign in one row, and nothing is wider than the terminal."""
    lines = drawn(KNOWN[name], width=width)
    check_rows(lines, list(KNOWN[name].online))
    assert max(map(len, lines)) <= width


def test_every_cpu_once_in_dumps(tmp_path: Path) -> None:
    """So it is on real machines with odd numbers, nodes or packages, and with CPUs offline."""
    answers = [TOPOLOGIES / f"{name}.json" for name in ODD]
    if not all(answer.exists() for answer in answers):
        pytest.skip(f"the dumps of real machines are not in {TOPOLOGIES}")
    for answer in answers:
        oracle = json.loads(answer.read_text())
        unpack_dump(next(TOPOLOGIES.glob(f"{answer.stem}.tar.*")), tmp_path / answer.stem)
        root = tmp_path / answer.stem / oracle["root"]
        offline = read_offline(root)
        lines = drawn(read_machine(root), offline)
        check_rows(lines, sorted([*oracle["online"], *offline]))
        assert max(map(len, lines)) <= 80, answer.stem


def test_server_fits_a_page() -> None:
    """192 CPUs take 6 rows of 16 cores at 100 columns: 48 is 3 times 16."""
    lines = drawn(KNOWN["2x48"], width=100)
    assert [line.split()[-17] for line in lines[1:-1]] == [
        "0-15,96-111",
        "16-31,112-127",
        "32-47,128-143",
        "48-63,144-159",
        "64-79,160-175",
        "80-95,176-191",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("container", ["package  node  memory    CPUs  cores", "0        0       16 GiB  0-7   ■■ ■■ ■■ ■■"]),
        ("hybrid", [None, "0        0       32 GiB  0-19  ■■ ■■ ■■ ■■ ■■ ■■ ▪ ▪ ▪ ▪ ▪ ▪ ▪ ▪"]),
        # Cores 0,4 and 1,5 and 2,6 and 3,7, of which 0-3 are ours, and 3 and 7 isolated.
        ("limits", [None, "0        0       64 GiB  0-7   ■· ■· ■· i·"]),
    ],
)
def test_pictures(name: str, expected: list[str | None]) -> None:
    """Small machines look as drawn by hand."""
    lines = drawn(KNOWN[name])
    assert [line for line, wanted in zip(lines, expected, strict=False) if wanted] == [e for e in expected if e]
    assert len(lines) == 3


def test_what_has_no_package_is_in_none() -> None:
    """Memory without cores, and CPUs that are off, do not look as if they were in the last package."""
    machine = machines.uniform(packages=2)
    extra = [Node(id=number, cpus=(), memory_bytes=5 << 30) for number in (7, 9)]
    lines = drawn(replace(machine, nodes=(*machine.nodes, *extra), allowed_nodes=(0, 1, 7, 9)), (90, 91))
    assert [line.split()[0] for line in lines[1:-1]] == ["0", "1", "-", "-", "-"]
    assert [line.split()[1] for line in lines[3:-1]] == ["7", "9", "-"]


def test_caches_are_apart() -> None:
    """Two caches of 4 cores in a row have a bar between them; where rows are caches the legend says so."""
    assert "■■ ■■ ■■ ■■ | ■■ ■■ ■■ ■■" in drawn(KNOWN["7742"])[1]
    assert drawn(KNOWN["7742"])[-1].endswith("| between level-3 caches")
    assert drawn(KNOWN["2x64 nps4"])[-1].endswith("rows: level-3 caches")


def test_legend_explains_what_is_there() -> None:
    """The legend has the signs that the map has, and no others."""
    legend = drawn(KNOWN["limits"], (8, 9), width=100)[-1]
    assert all(f"{sign} " in legend for sign in "■·i×")  # noqa: RUF001 - the map's own
    assert "▪" not in legend
    assert drawn(machines.uniform())[-1] == "■ ours"


def test_without_squares() -> None:
    """Where the terminal has no squares, everything is ASCII."""
    lines = drawn(KNOWN["limits"], (8, 9), squares=False)
    assert lines[1].endswith("#. #. #. i.")
    assert all(line.isascii() for line in lines)

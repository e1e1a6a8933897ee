"""A picture of a machine's cores: which lie together, and which are ours."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.table import Table
from rich.text import Text

from pinstripe.cli.core_layout import Row, blocks, cpu_ranges, row_lengths, rows
from pinstripe.machine import Core, Machine, Node

__all__ = ["SQUARES", "core_map"]

_GIB: Final = 1 << 30
_FEW_GIB: Final = 10
_GAP: Final = 2


class _State(NamedTuple):
    name: str
    square: str
    letter: str  # where the terminal has no squares
    style: str


_OURS: Final = _State("ours", "■", "#", "bold green")
_EFFICIENT: Final = _State("ours, efficiency core", "▪", "e", "cyan")
_ISOLATED: Final = _State("ours, isolated", "i", "i", "yellow")
_OTHERS: Final = _State("not ours", "·", ".", "dim")
_OFFLINE: Final = _State("offline", "×", "x", "red")  # noqa: RUF001 - a cross is meant
_STATES: Final = (_OURS, _EFFICIENT, _ISOLATED, _OTHERS, _OFFLINE)

SQUARES: Final = "".join(state.square for state in _STATES)
"""The signs that a terminal needs for a map with squares."""

_NO_PACKAGE: Final = "-"
"""Memory without cores, and CPUs that are off: nobody says where they belong."""
_MEMORY_ONLY: Final = Text("memory only", "dim")


class _Line(NamedTuple):
    package: str
    node: str
    memory: str
    cpus: str
    cores: Text


def core_map(machine: Machine, offline: Sequence[int], *, width: int, squares: bool = True) -> tuple[Table, Text]:
    """Return a picture of the cores, and its legend.

    Each CPU is one sign; those of a core touch each other, and a bar stands between level-3 caches. A row holds as many
    cores as the width allows.

    Args:
        machine: The machine.
        offline: CPUs that are present and switched off; nobody says where they belong.
        width: Columns of the terminal.
        squares: Whether the terminal can show them; else there are letters.
    """
    lines: list[_Line] = []
    for length in row_lengths(blocks(machine)):
        lines = _lines(machine, offline, length, squares=squares)
        if _width(lines) <= width:
            break
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    for name in _Line._fields:
        table.add_column("CPUs" if name == "cpus" else name, no_wrap=name != "cpus", overflow="fold")
    for line in lines:
        table.add_row(*line)
    return table, _legend(machine, offline, lines, squares=squares)


def _lines(machine: Machine, offline: Sequence[int], length: int, *, squares: bool) -> list[_Line]:
    nodes = {node.id: node for node in machine.nodes}
    lines: list[_Line] = []
    package = None
    for block in blocks(machine):
        node = nodes.get(block.node) if block.node is not None else None
        name = "" if block.packages == package else block.packages
        package = block.packages
        heads = [(name, "?" if node is None else str(node.id), _memory(machine, node))]
        for row in rows(block, length):
            cpus = sorted(cpu for cores in row for core in cores for cpu in core.cpus)
            lines.append(
                _Line(
                    *(heads.pop() if heads else ("", "", "")), cpu_ranges(cpus), _cores(machine, row, squares=squares)
                )
            )
    homes = {core.node for core in machine.cores}
    alone = [node for node in machine.nodes if node.id not in homes and node.memory_bytes]
    lines += [_Line(_NO_PACKAGE, str(node.id), _memory(machine, node), "", _MEMORY_ONLY) for node in alone]
    for start in range(0, len(offline), length):
        cpus = list(offline[start : start + length])
        signs = Text(" ".join([_sign(_OFFLINE, squares=squares)] * len(cpus)), _OFFLINE.style)
        lines.append(_Line(_NO_PACKAGE, _NO_PACKAGE, "", cpu_ranges(cpus), signs))
    return lines


def _width(lines: Sequence[_Line]) -> int:
    columns = zip(_Line._fields, *lines, strict=True)
    return sum(max(map(len, column)) + _GAP for column in columns) - _GAP


def _memory(machine: Machine, node: Node | None) -> str:
    if node is None or not node.memory_bytes:
        known = node is not None and any(other.memory_bytes for other in machine.nodes)
        return "none" if known else "?"
    gib = node.memory_bytes / _GIB
    size = f"{gib:4.1f} GiB" if gib < _FEW_GIB else f"{gib:4.0f} GiB"
    return size if node.id in machine.allowed_nodes else f"{size}, not ours"


def _cores(machine: Machine, row: Row, *, squares: bool) -> Text:
    caches = [Text(" ").join(_core(machine, core, squares=squares) for core in cores) for cores in row]
    return Text.assemble((" | ", "dim")).join(caches)


def _core(machine: Machine, core: Core, *, squares: bool) -> Text:
    states = [_state(machine, core, cpu) for cpu in core.cpus]
    return Text.assemble(*((_sign(state, squares=squares), state.style) for state in states))


def _state(machine: Machine, core: Core, cpu: int) -> _State:
    if cpu not in machine.allowed:
        return _OTHERS
    if cpu in machine.isolated:
        return _ISOLATED
    return _EFFICIENT if core.kind == "efficiency" else _OURS


def _sign(state: _State, *, squares: bool) -> str:
    return state.square if squares else state.letter


def _legend(machine: Machine, offline: Sequence[int], lines: Sequence[_Line], *, squares: bool) -> Text:
    present = {_state(machine, core, cpu) for core in machine.cores for cpu in core.cpus}
    present |= {_OFFLINE} if offline else set()
    ordered = [state for state in _STATES if state in present]
    parts = [Text.assemble((_sign(state, squares=squares), state.style), f" {state.name}") for state in ordered]
    if any(len(core.cpus) > 1 for core in machine.cores):
        parts.append(Text("touching: CPUs of one core"))
    if any("|" in line.cores.plain for line in lines):
        parts.append(Text("| between level-3 caches"))
    elif any(len(block.caches) > 1 for block in blocks(machine)):
        parts.append(Text("rows: level-3 caches"))
    return Text("   ").join(parts)

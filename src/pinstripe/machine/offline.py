"""CPUs that are there, and switched off."""

from pathlib import Path

from pinstripe.machine.limits import CPU_DIRECTORY, online_cpus
from pinstripe.machine.tree import Tree

__all__ = ["read_offline"]


def read_offline(root: Path = Path("/")) -> tuple[int, ...]:
    """Return the CPUs that are present and not online, ascending. Those that could be added later do not count.

    Args:
        root: As for `read_machine`.

    Raises:
        MachineError: As for `read_machine`.
    """
    tree = Tree(root)
    present = tree.cpu_list(f"{CPU_DIRECTORY}/present") or tuple(tree.numbered(CPU_DIRECTORY, "cpu"))
    return tuple(sorted(set(present).difference(online_cpus(tree))))

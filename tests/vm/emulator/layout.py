"""How the CPUs and the memory of an emulated machine lie."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Layout", "Numbering"]

Numbering = Literal["split", "adjacent", "robin"]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What QEMU is told.

    Attributes:
        sockets: Packages.
        dies: Dies of each, with a level-3 cache of their own.
        cores: Cores of each die.
        threads: Hardware threads of each core.
        numbering: How Linux counts CPUs: `split` first threads first, socket after socket, as Intel's and AMD's
            firmware does; `adjacent` the threads of a core one after the other; `robin` first threads first, the
            sockets in turn.
        nodes: CPUs of each memory node as QEMU counts them (as with `adjacent`), such as `0-3`, empty for none; and
            its memory in MiB, 0 for none.
        distances: A row for each node; empty for 21 between any two.
        parameters: Parameters of the kernel.
    """

    sockets: int = 2
    dies: int = 1
    cores: int = 2
    threads: int = 2
    numbering: Numbering = "split"
    nodes: tuple[tuple[str, int], ...]
    distances: tuple[tuple[int, ...], ...] = ()
    parameters: str = ""

    @property
    def cpus(self) -> int:
        """Number of CPUs."""
        return self.sockets * self.dies * self.cores * self.threads

    def place(self, cpu: int) -> tuple[int, int, int, int]:
        """Return socket, die, core and thread of a CPU as QEMU counts it."""
        core, thread = divmod(cpu, self.threads)
        die, core = divmod(core, self.cores)
        return (*divmod(die, self.dies), core, thread)

    def order(self) -> list[int]:
        """List the CPUs, as QEMU counts them, in the order in which Linux is to count them."""

        def rank(cpu: int) -> tuple[int, ...]:
            socket, die, core, thread = self.place(cpu)
            match self.numbering:
                case "split":
                    return thread, cpu
                case "robin":
                    return thread, die, core, socket
                case "adjacent":
                    return (cpu,)

        return sorted(range(self.cpus), key=rank)

    def qemu_options(self) -> list[str]:
        """Return QEMU's options for all of it but the numbering, which is the firmware's."""
        total = sum(mib for _, mib in self.nodes)
        shape = f"sockets={self.sockets},dies={self.dies},cores={self.cores},threads={self.threads}"
        options = ["-m", f"{total}M", "-smp", f"{self.cpus},{shape},maxcpus={self.cpus}"]
        for node, (cpus, mib) in enumerate(self.nodes):
            described = f"node,nodeid={node}"
            if mib:
                options += ["-object", f"memory-backend-ram,id=memory{node},size={mib}M"]
                described += f",memdev=memory{node}"
            described += "".join(f",cpus={part}" for part in cpus.split(",") if part)
            options += ["-numa", described]
        for i in range(len(self.nodes)):
            for j in range(len(self.nodes)):
                if i != j:
                    distance = self.distances[i][j] if self.distances else 21
                    options += ["-numa", f"dist,src={i},dst={j},val={distance}"]
        return options

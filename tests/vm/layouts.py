"""The machines that are emulated: one for each module of `guest/`, by its name."""

from typing import Final

from .emulator.layout import Layout

__all__ = ["LAYOUTS"]

_TWO_NODES: Final = (("0-3", 512), ("4-7", 512))
_FOUR_NODES: Final = (("0-1", 400), ("2-3", 400), ("4-5", 400), ("6-7", 400))
_ODD_NODES: Final = (("0-1", 400), ("2-3", 400), ("4-5", 0), ("", 400))

# The longest first, since several are booted at a time.
LAYOUTS: Final = {
    # CPUs 0-1,4-5 are on node 0 and 2-3,6-7 on node 1; CPU n and n+4 share a core.
    "pools": Layout(nodes=_TWO_NODES),
    "two_nodes": Layout(nodes=_TWO_NODES),
    # Two nodes of two single-threaded cores in each of two sockets.
    "four_nodes": Layout(
        dies=2,
        threads=1,
        nodes=_FOUR_NODES,
        distances=((10, 12, 21, 21), (12, 10, 21, 21), (21, 21, 10, 12), (21, 21, 12, 10)),
    ),
    # Two sockets of 24 cores; CPU n and n+48 share a core.
    "metal": Layout(cores=24, nodes=(("0-47", 600), ("48-95", 600))),
    # Even CPUs are on node 0 and odd ones on node 1; CPU n and n+4 share a core.
    "robin": Layout(numbering="robin", nodes=_TWO_NODES),
    # As `two_nodes`, but CPUs 3 and 7 are isolated.
    "isolated": Layout(nodes=_TWO_NODES, parameters="isolcpus=3,7"),
    # Node 2 has no memory and node 3 no CPUs; both are nearest to node 1.
    "odd_nodes": Layout(
        sockets=1,
        cores=6,
        threads=1,
        numbering="adjacent",
        nodes=_ODD_NODES,
        distances=((10, 21, 31, 31), (21, 10, 15, 21), (31, 15, 10, 25), (31, 21, 25, 10)),
    ),
    # Two dies a socket; CPUs 2n and 2n+1 share a core.
    "adjacent": Layout(dies=2, numbering="adjacent", nodes=(("0-7", 512), ("8-15", 512))),
}

"""Booting a real kernel with a layout that this machine does not have, in software emulation."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import threadpoolctl

import pinstripe

from .emulator.cpio import Cpio
from .emulator.emulation import run_in_guest
from .emulator.image import Image, PackagesError, find_image
from .emulator.layout import Layout

_GUEST = Path(__file__).parent / "guest"
_UNNEEDED = {"tests", "f2py", "_pyinstaller"}
Boot = Callable[[Layout, str], Any]
_BOOTS = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def image() -> Image:
    """Kernel and Python for guests, or a reason to skip."""
    if missing := [program for program in ("qemu-system-x86_64", "busybox") if shutil.which(program) is None]:
        pytest.skip(f"not installed: {', '.join(missing)} (apt-get install qemu-system-x86 busybox-static)")
    if os.uname().machine != "x86_64":
        pytest.skip("the guest is an x86-64 machine, and so must be the libraries that are put into it")
    try:
        return find_image()
    except PackagesError as error:
        pytest.skip(f"the guest's packages cannot be downloaded: {error}")


@pytest.fixture(scope="session")
def boot(image: Image, pytestconfig: pytest.Config) -> Boot:
    """Return a function that boots a machine and runs a case of `guest/` in it; it gives the JSON that it prints."""
    files = _files()
    boots = pytestconfig.stash.setdefault(_BOOTS, [])

    def _boot(layout: Layout, case: str) -> Any:
        run = run_in_guest(image, layout, f"python3 -m guest {case}", files)
        assert run.status == 0, run.output
        boots.append(f"{case:<16} {layout.cpus:3} CPUs, {len(layout.nodes)} nodes: {run.seconds:5.1f} s")
        return json.loads(run.output.splitlines()[-1])

    return _boot


@pytest.fixture(scope="session")
def two_nodes(boot: Boot) -> Any:
    """Results of a guest with CPUs 0-1,4-5 on node 0 and 2-3,6-7 on node 1; CPU n and n+4 share a core."""
    return boot(Layout(nodes=(("0-3", 512), ("4-7", 512))), "two_nodes")


@pytest.fixture(scope="session")
def pools(boot: Boot) -> Any:
    """Results of another such guest."""
    return boot(Layout(nodes=(("0-3", 512), ("4-7", 512))), "pools")


@pytest.fixture(scope="session")
def adjacent(boot: Boot) -> Any:
    """Results of a guest with two dies a socket, where CPUs 2n and 2n+1 share a core."""
    return boot(Layout(dies=2, numbering="adjacent", nodes=(("0-7", 512), ("8-15", 512))), "adjacent")


@pytest.fixture(scope="session")
def robin(boot: Boot) -> Any:
    """Results of a guest with even CPUs on node 0 and odd ones on node 1; CPU n and n+4 share a core."""
    return boot(Layout(numbering="robin", nodes=(("0-3", 512), ("4-7", 512))), "robin")


@pytest.fixture(scope="session")
def odd_nodes(boot: Boot) -> Any:
    """Results of a guest whose node 2 has no memory and node 3 no CPUs; both are nearest to node 1."""
    distances = ((10, 21, 31, 31), (21, 10, 15, 21), (31, 15, 10, 25), (31, 21, 25, 10))
    nodes = (("0-1", 400), ("2-3", 400), ("4-5", 0), ("", 400))
    layout = Layout(sockets=1, cores=6, threads=1, numbering="adjacent", nodes=nodes, distances=distances)
    return boot(layout, "odd_nodes")


@pytest.fixture(scope="session")
def isolated(boot: Boot) -> Any:
    """Results of a guest as `two_nodes`, whose CPUs 3 and 7 are isolated."""
    return boot(Layout(nodes=(("0-3", 512), ("4-7", 512)), parameters="isolcpus=3,7"), "isolated")


@pytest.fixture(scope="session")
def four_nodes(boot: Boot) -> Any:
    """Results of a guest with two nodes of two single-threaded cores in each of two sockets."""
    distances = ((10, 12, 21, 21), (12, 10, 21, 21), (21, 21, 10, 12), (21, 21, 12, 10))
    nodes = (("0-1", 400), ("2-3", 400), ("4-5", 400), ("6-7", 400))
    return boot(Layout(dies=2, threads=1, nodes=nodes, distances=distances), "four_nodes")


@pytest.fixture(scope="session")
def metal(boot: Boot) -> Any:
    """Results of a guest with two sockets of 24 cores; CPU n and n+48 share a core."""
    return boot(Layout(cores=24, nodes=(("0-47", 600), ("48-95", 600))), "metal")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show how long each boot took, from the start of the emulator to its end."""
    if boots := config.stash.get(_BOOTS, []):
        terminalreporter.section("virtual machines")
        for line in boots:
            terminalreporter.line(line)


def _files() -> bytes:
    """Pack the project and what its workers need, from this environment."""
    archive = Cpio()
    for path in _packages():
        archive.tree(path, f"site/{path.name}", skip=lambda one: one.name in _UNNEEDED or one.suffix in {".pyi", ".a"})
    return archive.finished()


def _packages() -> Iterator[Path]:
    yield _GUEST
    for module in (pinstripe, msgspec, np):
        yield Path(str(module.__file__)).parent
    yield Path(str(threadpoolctl.__file__))
    libraries = Path(str(np.__file__)).parents[1] / "numpy.libs"  # where wheels have OpenBLAS
    if libraries.is_dir():
        yield libraries

"""Booting a real kernel with a layout that this machine does not have, in software emulation."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import threadpoolctl

import pinstripe

from .emulator.cpio import Cpio
from .emulator.emulation import Run, run_in_guest
from .emulator.image import Image, PackagesError, find_image
from .layouts import LAYOUTS

_HERE = Path(__file__).parent
_GUEST = _HERE / "guest"
_UNNEEDED = {"tests", "f2py", "_pyinstaller"}
Guests = Callable[[str], Any]
_RUNS = pytest.StashKey[dict[str, list[Run]]]()


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
def guests(image: Image, request: pytest.FixtureRequest) -> Guests:
    """Boot all machines that the tests at hand ask for, as many at a time as there are CPUs: an emulator uses one.

    Returns a function that gives what a case, a module of `guest/`, has printed as JSON.
    """
    files = _files()
    wanted = [name for name in LAYOUTS if any(_asks_for(item, name) for item in request.session.items)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        runs = dict(zip(wanted, pool.map(lambda name: _boot(image, name, files), wanted), strict=True))
    request.config.stash[_RUNS] = runs

    def results(name: str) -> Any:
        last = runs[name][-1]
        assert last.status == 0, last.output
        return json.loads(last.output.splitlines()[-1])

    return results


def _asks_for(item: pytest.Item, name: str) -> bool:
    """Tell whether it is a test of this folder that has this fixture, or takes it by a parameter."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    asked = (*getattr(item, "fixturenames", ()), *(one for one in parameters if isinstance(one, str)))
    return item.path.parent == _HERE and name in asked


def _boot(image: Image, name: str, files: bytes) -> list[Run]:
    """Boot a machine; once more if it stood still, which is no finding about the project."""
    runs: list[Run] = []
    while len(runs) < 2 and all(run.stood_still for run in runs):
        runs.append(run_in_guest(image, LAYOUTS[name], f"python3 -m guest {name}", files))
    return runs


@pytest.fixture(scope="session")
def two_nodes(guests: Guests) -> Any:
    """Return the results of the guest `two_nodes`."""
    return guests("two_nodes")


@pytest.fixture(scope="session")
def pools(guests: Guests) -> Any:
    """Return the results of the guest `pools`."""
    return guests("pools")


@pytest.fixture(scope="session")
def adjacent(guests: Guests) -> Any:
    """Return the results of the guest `adjacent`."""
    return guests("adjacent")


@pytest.fixture(scope="session")
def robin(guests: Guests) -> Any:
    """Return the results of the guest `robin`."""
    return guests("robin")


@pytest.fixture(scope="session")
def odd_nodes(guests: Guests) -> Any:
    """Return the results of the guest `odd_nodes`."""
    return guests("odd_nodes")


@pytest.fixture(scope="session")
def isolated(guests: Guests) -> Any:
    """Return the results of the guest `isolated`."""
    return guests("isolated")


@pytest.fixture(scope="session")
def four_nodes(guests: Guests) -> Any:
    """Return the results of the guest `four_nodes`."""
    return guests("four_nodes")


@pytest.fixture(scope="session")
def metal(guests: Guests) -> Any:
    """Return the results of the guest `metal`."""
    return guests("metal")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show how long each boot took, from the start of the emulator to its end."""
    if runs := config.stash.get(_RUNS, {}):
        terminalreporter.section("virtual machines")
    for name, layout in LAYOUTS.items():
        for run in runs.get(name, ()):
            ending = f", in which it stood still:\n{run.output}" if run.stood_still else ""
            shape = f"{layout.cpus:3} CPUs, {len(layout.nodes)} nodes"
            terminalreporter.line(f"{name:<16} {shape}: {run.seconds:5.1f} s{ending}")


def _files() -> bytes:
    """Pack the project and what its workers need, from this environment."""
    archive = Cpio()
    archive.tree(_GUEST / "sitecustomize.py", "site/sitecustomize.py")
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

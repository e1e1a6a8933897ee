"""`pinstripe doctor` as a user runs it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from pinstripe.machine import read_machine
from pinstripe.testing.machines import container_2cpu
from pinstripe.testing.trees import write_tree

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def container(tmp_path: Path) -> str:
    """A copy of the files of a container with 2 CPUs' worth of time on 8 CPUs."""
    write_tree(container_2cpu(), tmp_path / "container")
    return str(tmp_path / "container")


def test_container(pinstripe: Run, container: str) -> None:
    """A container's quota is the first thing said, with what to do; notes are one line, and what is good is counted."""
    shown = pinstripe("doctor", "--root", container).stdout
    lines = [line.rstrip() for line in shown.splitlines()]

    assert "quota   2 CPUs" in lines
    assert next(line for line in lines if line.startswith(("problem", "warning"))).startswith(
        "problem  The CPU quota of 2 is below the 8 CPUs that programs see"
    )
    assert "OMP_NUM_THREADS=2" in shown
    assert not any(line.startswith("good") for line in lines)
    assert "not looked at, in a copy: busy neighbours" in shown
    assert lines[-1] == f"  pinstripe place --root {container}"
    assert "\x1b" not in shown


def test_all(pinstripe: Run, container: str) -> None:
    """With -v what is good is listed too."""
    lines = pinstripe("doctor", "-v", "--root", container).stdout.splitlines()
    assert any(line.startswith("good     All 8 CPUs are ours") for line in lines)


def test_json_of_copy(pinstripe: Run, container: str) -> None:
    """JSON has the machine and the findings; what was not looked at is null."""
    answer = json.loads(pinstripe("doctor", "--json", "--root", container).stdout)
    assert answer["machine"]["cpu_quota"] == 2.0
    assert answer["findings"][0]["subject"] == "cpu-quota"
    assert answer["findings"][0].keys() == {"subject", "severity", "title", "seen", "cost", "remedy", "certainty"}
    assert (answer["activity"], answer["libraries"], answer["engines"]) == (None, None, None)


def test_json_of_this_machine(pinstripe: Run) -> None:
    """The machine's description is as ever: all but the neighbours that placement works with."""
    answer = json.loads(pinstripe("doctor", "--json").stdout)
    machine = json.loads(msgspec.json.encode(read_machine()))
    for node in machine["nodes"]:
        del node["neighbours"]
    assert answer["machine"] == machine
    assert answer["activity"]["duration_s"] >= 0.5
    assert "engines" in {finding["subject"] for finding in answer["findings"]}


def test_here(pinstripe: Run) -> None:
    """On this machine nothing is left out, and the next step is a command."""
    finished = pinstripe("doctor")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "not looked at" not in finished.stdout
    assert finished.stdout.splitlines()[-1].startswith("  pinstripe bench random:minilm-l6 ")


def test_a_copy_is_not_measured(pinstripe: Run, container: str) -> None:
    """Measuring is for this machine: the two options exclude each other."""
    finished = pinstripe("doctor", "--measure", "--root", container)
    assert finished.returncode == 2
    assert finished.stderr == (
        f"pinstripe: error: --measure measures this machine, not the copy in {container}; leave one of both out\n"
    )

"""Machines to read: real ones' dumps, and small trees written by hand."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pinstripe.testing.dumps import unpack_dump

Oracle = dict[str, Any]
TOPOLOGIES = Path(__file__).parents[2] / ".." / "shared" / "topologies"


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Oracle]]:
    """Return root and hwloc's answer of each real machine's dump, by name."""
    answers = sorted(TOPOLOGIES.glob("*.json"))
    if not answers:
        pytest.skip(f"the dumps of real machines are not in {TOPOLOGIES}")
    dumps = {}
    for answer in answers:
        oracle = json.loads(answer.read_text())
        directory = tmp_path_factory.mktemp(answer.stem)
        (archive,) = TOPOLOGIES.glob(f"{answer.stem}.tar.*")
        unpack_dump(archive, directory)
        dumps[answer.stem] = (directory / oracle["root"], oracle)
    return dumps


@pytest.fixture
def grow(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Return a function that writes files, by path below a fresh root, and returns the root."""

    def write(files: Mapping[str, str]) -> Path:
        for path, content in files.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        return tmp_path

    return write


@pytest.fixture
def four_cpus() -> dict[str, str]:
    """Return the files of a small machine: CPUs 0 and 2 share a core, 1 and 3 the other."""
    cpu = "sys/devices/system/cpu"
    files = {f"{cpu}/online": "0-3\n"}
    for number in range(4):
        files[f"{cpu}/cpu{number}/topology/thread_siblings_list"] = f"{number % 2},{number % 2 + 2}\n"
        files[f"{cpu}/cpu{number}/topology/core_siblings_list"] = "0-3\n"
    return files

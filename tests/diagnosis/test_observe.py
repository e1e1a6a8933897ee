"""Looking at a machine: the running one, and a copy of another."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from pinstripe.diagnosis import diagnose, observe
from pinstripe.testing.machines import container_2cpu
from pinstripe.testing.trees import write_tree


def test_copy(tmp_path: Path) -> None:
    """Of a copy, what only the running system shows is not looked at: nothing here is said of it."""
    write_tree(container_2cpu(), tmp_path, {"sys/fs/cgroup/cpu.stat": "nr_periods 10\nnr_throttled 5\n"})
    seen = observe(tmp_path)
    assert seen.machine == container_2cpu()
    assert (seen.activity, seen.libraries, seen.engines, seen.refused_knobs) == (None,) * 4
    subjects = {finding.subject: finding.severity for finding in diagnose(seen)}
    assert (subjects["cpu-quota"], subjects["throttled"]) == ("problem", "problem")
    unseen = {"neighbours", "allocators", "engines", "openmp", "openmp-runtimes", "memory-policy"}
    assert not unseen & subjects.keys()


def test_this_machine() -> None:
    """Here all is looked at, in about the time that it watches; versions are those of the installed packages."""
    waits: list[float] = []
    seen = observe(watch_s=0.01, sleep=waits.append)
    assert waits == [0.01]
    assert seen.activity is not None
    assert seen.libraries is not None
    assert seen.engines is not None
    assert seen.refused_knobs is not None
    on_torch = {"torch-eager", "torchscript", "torch-compile"}
    assert seen.engines.keys() == {*on_torch, "onnxruntime", "openvino", "tf-eager", "tf-graph", "tf-xla"}
    installed = {distribution.metadata["Name"].lower() for distribution in metadata.distributions()}
    for needed in seen.engines.values():
        assert {name for name, version in needed.items() if version} == needed.keys() & installed


def test_no_engine_is_imported() -> None:
    """Looking at a machine imports no framework, so that it is quick and disturbs nothing."""
    code = (
        "import sys; from pinstripe.diagnosis import *; diagnose(observe(watch_s=0.01));"
        "print(sorted({'torch', 'onnxruntime', 'openvino', 'transformers'} & sys.modules.keys()))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"

"""Booting a real kernel with a layout this machine does not have, in software emulation."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import pinstripe

RUNNER = Path(__file__).parents[2] / ".." / "shared" / "vm" / "run_in_vm.py"
GUEST = Path(__file__).parent / "guest"


@pytest.fixture(scope="session")
def boot() -> Callable[..., Any]:
    """Run a script of `guest/` with an argument in a machine of the runner's options; give the JSON that it prints."""
    if not RUNNER.exists():
        pytest.skip(f"{RUNNER} is not there")
    if missing := [program for program in ("qemu-system-x86_64", "busybox") if shutil.which(program) is None]:
        pytest.skip(f"not installed: {missing} (apt-get install qemu-system-x86 busybox-static)")
    if sys.version_info[:2] != (3, 11) or os.uname().machine != "x86_64":
        pytest.skip("the guest's Python is 3.11 on x86-64, and so must be the msgspec that is put into it")
    packages = [Path(package.__file__).parent for package in (pinstripe, msgspec) if package.__file__]

    def _boot(script: str, argument: str, *options: str) -> Any:
        add = [option for package in packages for option in ("--add", f"{package}:/site/{package.name}")]
        command = [sys.executable, str(RUNNER), "--timeout", "280", *options, *add, str(GUEST / script), argument]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        return json.loads(run.stdout.splitlines()[-1])

    return _boot

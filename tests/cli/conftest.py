"""The command line as a user runs it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pinstripe.testing.tiny_model import make_tiny_model

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def pinstripe(tmp_path: Path) -> Run:
    """Run `pinstripe` in an empty directory."""

    def run(*words: str | bytes, cwd: Path = tmp_path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", "from pinstripe.cli import main; main()", *words],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            env={**os.environ, "COLUMNS": "200", "PINSTRIPE_CACHE": str(tmp_path / "cache")},
        )

    return run


@pytest.fixture
def tiny_model(tmp_path: Path) -> Path:
    """A directory that says it holds a small BERT; enough for the fake engine."""
    return make_tiny_model(tmp_path / "tiny")

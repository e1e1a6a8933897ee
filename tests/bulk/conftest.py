"""A small model, a file of texts, and the command over them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinstripe.testing.tiny_model import make_tiny_model

Embed = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A model for the fake engine."""
    return make_tiny_model(tmp_path / "tiny")


@pytest.fixture
def plan(tmp_path: Path, tiny: Path) -> Callable[..., Path]:
    """Write a plan for that model on the fake engine, with the fake's options."""

    def write(**options: Any) -> Path:
        path = tmp_path / "plan.toml"
        settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
        path.write_text(
            f'model = "{tiny}"\n[configuration]\nengine = "fake"\ninstances = 2\ncores = 1\n'
            f"[configuration.options]\n{settings}\n[batching]\ntexts = 32\n"
        )
        return path

    return write


@pytest.fixture
def write_texts(tmp_path: Path) -> Callable[[Sequence[Any]], Path]:
    """Write lines: strings as texts, anything else as it is encoded in JSON; bytes as they are."""

    def write(lines: Sequence[Any]) -> Path:
        path = tmp_path / "texts.jsonl"
        encoded = [
            line if isinstance(line, bytes) else json.dumps({"text": line} if isinstance(line, str) else line).encode()
            for line in lines
        ]
        path.write_bytes(b"".join(line + b"\n" for line in encoded))
        return path

    return write


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., list[str]]:
    """The words of `pinstripe embed`."""
    del tmp_path

    def words(*more: object) -> list[str]:
        return [sys.executable, "-c", "from pinstripe.cli import main; main()", "embed", *map(str, more)]

    return words


@pytest.fixture
def embed(tmp_path: Path, command: Callable[..., list[str]]) -> Embed:
    """Run `pinstripe embed` to its end."""

    def run(*words: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command(*words),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
            env={**os.environ, "COLUMNS": "200"},
        )

    return run


@pytest.fixture
def expected(plan: Callable[..., Path]) -> Callable[[Sequence[str]], "np.ndarray[Any, np.dtype[np.float32]]"]:
    """What the model makes of texts, each by itself through the Python interface."""
    import pinstripe  # noqa: PLC0415

    def vectors(texts: Sequence[str]) -> "np.ndarray[Any, np.dtype[np.float32]]":
        with pinstripe.open(str(plan())) as model:
            return np.stack([model.encode(text) for text in texts])

    return vectors

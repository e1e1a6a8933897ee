"""The command line as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def pinstripe(tmp_path: Path) -> Run:
    """Run `pinstripe` in an empty directory."""

    def run(*words: str, cwd: Path = tmp_path) -> "subprocess.CompletedProcess[str]":
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
    directory = tmp_path / "tiny"
    directory.mkdir()
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 256,
        "type_vocab_size": 2,
        "pad_token_id": 0,
    }
    (directory / "config.json").write_text(json.dumps(config))
    save_file({"embeddings.word_embeddings.weight": np.zeros((100, 32), np.float32)}, directory / "model.safetensors")
    return directory

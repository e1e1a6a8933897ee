"""Encode with fastembed: -m offline_rivals.with_fastembed MODEL EXPORT CORPUS.

MODEL is the directory with the model's own files, EXPORT one that holds its float32 graph as onnx/model.onnx.
"""

import json
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from offline_rivals.turns import Encode, take_turns

_NAME = "local/model"


def main(model_directory: str, export_directory: str, corpus: str) -> None:
    """Take turns, with the default settings of `embed`."""
    with tempfile.TemporaryDirectory() as directory:
        _lay_out(Path(model_directory), Path(export_directory), Path(directory))

        def load() -> tuple[Encode, dict[str, Any]]:
            # By name, since type checkers run in another environment.
            library, descriptions = import_module("fastembed"), import_module("fastembed.common.model_description")
            library.TextEmbedding.add_custom_model(
                model=_NAME,
                pooling=descriptions.PoolingType.MEAN,
                normalization=True,
                sources=descriptions.ModelSource(url="unused"),
                dim=json.loads((Path(directory) / "config.json").read_bytes())["hidden_size"],
                model_file="onnx/model.onnx",
            )
            model = library.TextEmbedding(_NAME, specific_model_path=directory)
            [element] = {value.type for value in model.model.model.get_outputs()}
            return lambda texts: np.stack(list(model.embed(texts))), {"precision": element}

        take_turns(load, Path(corpus), ["fastembed", "onnxruntime", "tokenizers"])


def _lay_out(model: Path, export: Path, directory: Path) -> None:
    """Put the graph and the tokenizer into one directory, with the length limit of sentence-transformers."""
    (directory / "onnx").mkdir()
    (directory / "onnx" / "model.onnx").symlink_to((export / "onnx" / "model.onnx").resolve())
    for name in ("config.json", "tokenizer.json", "special_tokens_map.json"):
        shutil.copy(model / name, directory)
    # fastembed takes its limit from the tokenizer's settings, where this model says 512; that of its card is 256.
    settings = json.loads((model / "tokenizer_config.json").read_bytes())
    limit = json.loads((model / "sentence_bert_config.json").read_bytes())["max_seq_length"]
    (directory / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": limit}))


if __name__ == "__main__":
    main(*sys.argv[1:])

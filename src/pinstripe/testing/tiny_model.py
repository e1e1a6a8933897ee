"""A model's directory that is small, and enough for the fake engine."""

import json
import string
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors.numpy import save_file

__all__ = ["make_tiny_model"]

_CHARACTERS: Final = string.ascii_lowercase + string.digits + string.punctuation
_VOCABULARY: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_CHARACTERS, *(f"##{one}" for one in _CHARACTERS))


def make_tiny_model(directory: Path, *, architecture: str = "BertModel", seed: int = 0, **config: Any) -> Path:
    """Write a BERT whose tokens are single characters: a word of n letters has n tokens. Return its directory.

    Args:
        directory: Where; made if it is not there.
        architecture: Transformers' name of the class, which says the task.
        seed: Other seeds give other weights, and so another fingerprint.
        **config: Further fields of `config.json`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    shape = {
        "model_type": "bert",
        "architectures": [architecture],
        "vocab_size": len(_VOCABULARY),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 256,
        "type_vocab_size": 2,
        "pad_token_id": 0,
    }
    (directory / "config.json").write_text(json.dumps(shape | config))
    (directory / "vocab.txt").write_text("\n".join(_VOCABULARY) + "\n")
    weights = np.random.default_rng(seed).standard_normal((len(_VOCABULARY), 32), dtype=np.float32)
    save_file({"embeddings.word_embeddings.weight": weights}, directory / "model.safetensors")
    return directory

"""Shapes of other families against transformers' own models."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pinstripe import models
from pinstripe.errors import ModelError
from pinstripe.models.family import word_embeddings
from pinstripe.models.weights import tensor_shapes

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

COMMON = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": 20,
    "pad_token_id": 3,
}
DISTILBERT = {"dim": 24, "n_layers": 3, "n_heads": 2, "hidden_dim": 40}
OWN: dict[str, dict[str, Any]] = {
    "distilbert": DISTILBERT,
    "mpnet": {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
    "modernbert": {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2},
    "eurobert": {"bos_token_id": 1, "eos_token_id": 2, "mask_token_id": 4, "num_key_value_heads": 2},
    "mobilebert": {"embedding_size": 16, "intra_bottleneck_size": 8, "true_hidden_size": 8},
    "convbert": {"conv_kernel_size": 3},
    "squeezebert": {"embedding_size": 24},
}
LEARNED_POSITIONS = [
    "albert",
    "bert",
    "camembert",
    "convbert",
    "data2vec-text",
    "deberta",
    "distilbert",
    "electra",
    "ernie",
    "megatron-bert",
    "mobilebert",
    "mpnet",
    "rembert",
    "roberta",
    "roberta-prelayernorm",
    "squeezebert",
    "xlm-roberta",
    "xlm-roberta-xl",
]
OTHER_POSITIONS = ["deberta-v2", "eurobert", "modernbert", "nomic_bert"]


def tiny(family: str, directory: Path, **changes: Any) -> Any:
    """Return a tiny model of a family with random weights, and save its config.json."""
    options = COMMON | OWN.get(family, {}) | changes
    if family == "distilbert":
        for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"):
            options.pop(key)
    config = transformers.AutoConfig.for_model(family, **options)
    config.architectures = ["AnyModel"]
    config.save_pretrained(directory)
    save_file({"weight": np.zeros(1, np.float32)}, directory / "model.safetensors")
    return transformers.AutoModel.from_config(config, attn_implementation="eager").eval()


@pytest.mark.parametrize("family", [*LEARNED_POSITIONS, *OTHER_POSITIONS])
def test_shape_agrees_with_the_model_of_transformers(family: str, tmp_path: Path) -> None:
    """Layers and widths by the family's own key names; the token-type table as the model has it."""
    model = tiny(family, tmp_path)
    network = models.resolve(str(tmp_path))
    assert (network.vocab_size, network.hidden_size, network.layers, network.heads) == (50, 24, 3, 2)
    assert (network.intermediate_size, network.pad_token_id) == (40, model.config.pad_token_id)
    tables = [module for name, module in model.named_modules() if name.endswith("token_type_embeddings")]
    assert network.type_vocab_size == (tables[0].num_embeddings if tables else 0)


@pytest.mark.parametrize("headed", [False, True])
@pytest.mark.parametrize("family", [*LEARNED_POSITIONS, *OTHER_POSITIONS])
def test_weights_that_transformers_saves_fit_their_configuration(family: str, headed: bool, tmp_path: Path) -> None:  # noqa: FBT001 - a parameter of the test
    """With and without a head; where the word table's name is known, that is its name, and its shape is checked."""
    tiny(family, tmp_path)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    kind = transformers.AutoModelForSequenceClassification if headed else transformers.AutoModel
    try:
        model = kind.from_config(config, attn_implementation="eager")
    except ValueError:
        pytest.skip(f"transformers has no classifier of {family}")
    model.save_pretrained(tmp_path)
    assert models.resolve(str(tmp_path)).vocab_size == 50
    names = word_embeddings(family)
    if names:
        assert sum(name in names for name in tensor_shapes(tmp_path / "model.safetensors")) == 1
        config = json.loads((tmp_path / "config.json").read_text()) | {"vocab_size": 49}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(ModelError, match="take both files from one model"):
            models.resolve(str(tmp_path))


@pytest.mark.parametrize("family", LEARNED_POSITIONS)
def test_max_tokens_is_the_longest_input_that_runs(family: str, tmp_path: Path) -> None:
    """One token more asks for a position that the model does not have."""
    model = tiny(family, tmp_path)
    longest = models.resolve(str(tmp_path)).max_tokens
    with torch.inference_mode():
        model(input_ids=torch.full((1, longest), 7), attention_mask=torch.ones(1, longest, dtype=torch.int64))
        with pytest.raises((IndexError, RuntimeError, ValueError)):
            model(
                input_ids=torch.full((1, longest + 1), 7), attention_mask=torch.ones(1, longest + 1, dtype=torch.int64)
            )


@pytest.mark.parametrize("padding", [None, 0, 3], ids=lambda padding: f"padding {padding}")
@pytest.mark.parametrize("family", LEARNED_POSITIONS)
def test_first_position_is_the_one_that_transformers_looks_up(family: str, padding: int | None, tmp_path: Path) -> None:
    """Whoever gives position ids to a graph gives those that the model itself would use, whatever its padding id."""
    model = tiny(family, tmp_path, **({} if padding is None else {"pad_token_id": padding}))
    asked: list[int] = []
    for name, module in model.named_modules():
        if name.endswith("position_embeddings"):
            module.register_forward_pre_hook(lambda _, given: asked.append(int(given[0].flatten()[0])))
    with torch.inference_mode():
        model(input_ids=torch.full((1, 4), 7), attention_mask=torch.ones(1, 4, dtype=torch.int64))
    assert asked == [models.first_position(family, model.config.pad_token_id)]


def test_nomic_as_published_before_transformers_knew_it(build: Callable[..., Path]) -> None:
    """nomic-embed-text-v1.5: the key names of GPT-2, 12 layers of 768, 8192 positions."""
    config = {"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12}
    files = {"config.json": config | {"n_positions": 8192, "vocab_size": 30528, "type_vocab_size": 2}}
    network = models.resolve(str(build(files)))
    assert (network.hidden_size, network.heads, network.intermediate_size, network.layers) == (768, 12, 3072, 12)
    assert network.max_tokens == 8192

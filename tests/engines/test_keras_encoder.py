"""What TensorFlow's engines refuse, and which weights they take; none of it needs TensorFlow."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.engines.keras import runtime as keras_runtime
from pinstripe.engines.keras.checkpoint import Checkpoint
from pinstripe.engines.keras.encoder import read_encoder
from pinstripe.engines.tf_xla import rounded_up
from pinstripe.errors import EngineError
from pinstripe.models import Network
from pinstripe.testing.fake_engine import fake_network


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Network]:
    """A maker of networks of a `config.json` and no weights."""

    def make(model_type: str = "bert", **config: Any) -> Network:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type} | config))
        return fake_network(directory=str(tmp_path), model_type=model_type, layers=4)

    return make


@pytest.mark.parametrize("family", ["deberta-v2", "modernbert", "mpnet", "nomic_bert"])
def test_other_families_are_refused(family: str, configured: Callable[..., Network]) -> None:
    """A family with another kind of layer is named, with those that can be run; nothing else is looked at."""
    network = configured(family)
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    with pytest.raises(EngineError, match=f"cannot run the family {family}, only .*bert.*choose another engine"):
        engine("tf-graph").load(LoadRequest(network=network, artefact=artefact))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"hidden_act": "quick_gelu"}, "hidden_act='quick_gelu', only gelu"),
        ({"hidden_act": ["gelu"]}, "hidden_act="),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
        ({"is_decoder": True}, "is_decoder=True"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads="),
        ({"layer_norm_eps": -1}, "layer_norm_eps -1 is no number from 0 to 1"),
        ({"layer_norm_eps": "tiny"}, "layer_norm_eps 'tiny'"),
    ],
)
def test_what_would_be_computed_otherwise_is_refused(
    setting: dict[str, Any], message: str, configured: Callable[..., Network]
) -> None:
    """A setting that the layers do not have is an error, and never left out."""
    with pytest.raises(EngineError, match=message) as caught:
        read_encoder(configured(**setting))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("groups", [0, 5, "2", 1.5])
def test_groups_that_make_no_sense_are_refused(groups: object, configured: Callable[..., Network]) -> None:
    """ALBERT shares weights within groups of layers: at least one group, at most one for each of its 4 layers."""
    with pytest.raises(EngineError, match="num_hidden_groups"):
        read_encoder(configured("albert", num_hidden_groups=groups))


def test_activations_and_epsilon(configured: Callable[..., Network]) -> None:
    """They are the configuration's, with transformers' defaults: ALBERT's is gelu_new, DistilBERT has no epsilon."""
    found = [
        read_encoder(configured()),
        read_encoder(configured(hidden_act="gelu_pytorch_tanh", layer_norm_eps=1e-5)),
        read_encoder(configured("albert")),
        read_encoder(configured("distilbert", activation="relu", layer_norm_eps=1e-5)),
    ]

    assert [(encoder.activation, encoder.epsilon) for encoder in found] == [
        ("gelu", 1e-12),
        ("gelu_tanh", 1e-5),
        ("gelu_tanh", 1e-12),
        ("relu", 1e-12),
    ]


def test_shared_layers(configured: Callable[..., Network]) -> None:
    """Four layers in two groups of one: the first two run with the weights of the first."""
    names = read_encoder(configured("albert", num_hidden_groups=2)).layers

    assert [name.split(".")[2] for name in names] == ["0", "0", "1", "1"]


def _saved(directory: Path, *names: str) -> None:
    save_file(
        {name: np.full((2,), index, np.float32) for index, name in enumerate(names)}, directory / "model.safetensors"
    )


def test_encoders_tensors_have_a_prefix_or_none(tmp_path: Path) -> None:
    """A tensor is found with the encoder's prefix first, then without; old names of a layer norm's mean the same."""
    _saved(tmp_path, "bert.a.weight", "a.weight", "b.bias", "bert.LayerNorm.gamma", "bert.LayerNorm.beta")
    checkpoint = Checkpoint(tmp_path, "bert")

    assert checkpoint.tensor("a.weight", 2)[0] == 0
    assert checkpoint.tensor("b.bias", None)[0] == 2
    assert [float(part[0]) for part in checkpoint.norm("LayerNorm", 2)] == [3, 4]
    assert "c.bias" not in checkpoint


def test_missing_and_misshapen_tensors_are_named(tmp_path: Path) -> None:
    """A head that is not there, or a table of another size, is an error and never random numbers."""
    _saved(tmp_path, "a.weight")
    checkpoint = Checkpoint(tmp_path, "bert")

    with pytest.raises(EngineError, match=r"no weights for qa_outputs.weight; is the task right"):
        checkpoint.dense("qa_outputs", 2, 2)
    with pytest.raises(EngineError, match=r"a.weight is \[2\], but \[3\] is needed"):
        checkpoint.tensor("a.weight", 3)
    with pytest.raises(EngineError, match=r"a.weight is \[2\], but \[\?, 2\] is needed"):
        checkpoint.tensor("a.weight", None, 2)


def test_a_directory_without_safetensors(tmp_path: Path, configured: Callable[..., Network]) -> None:
    """It is said before TensorFlow is imported."""
    network = msgspec.structs.replace(configured(), directory=str(tmp_path))
    artefact = Artefact(format="safetensors", path=str(tmp_path), origin="model")
    with pytest.raises(EngineError, match="has no safetensors weights"):
        engine("tf-graph").load(LoadRequest(network=network, artefact=artefact))


def test_a_cpu_without_avx_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow's import would end the process there."""
    monkeypatch.setattr(keras_runtime, "read_isa", lambda: ("sse2", "sse4_2"))
    with pytest.raises(EngineError, match="needs a CPU with AVX"):
        keras_runtime.start_keras(threads=1, onednn=True)


@given(st.integers(1, 1 << 20))
def test_rounding_wastes_less_than_half(number: int) -> None:
    """A side grows to a power of two or one and a half of one, by less than half; what is such stays."""
    rounded = rounded_up(number)

    assert number <= rounded < 1.5 * number
    assert rounded_up(rounded) == rounded
    assert (rounded / 3).is_integer() or rounded.bit_count() == 1

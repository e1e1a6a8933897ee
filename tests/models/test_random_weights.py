"""Models of published shapes with random weights."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from pinstripe import models
from pinstripe.errors import ExecutionError, ModelError
from pinstripe.models.random_weights import random_model


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache directory of this test's own."""
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


# Parameters without the head: 110 M and 340 M in the BERT paper, 66 M in the DistilBERT paper, 22.7 M on MiniLM's card.
@pytest.mark.parametrize(
    ("shape", "millions", "shown"),
    [
        ("minilm-l6", 22.7, (6, 384, 12, 1536)),
        pytest.param("bert-base", 109.5, (12, 768, 12, 3072), marks=pytest.mark.slow),
        pytest.param("distilbert", 66.4, (6, 768, 12, 3072), marks=pytest.mark.slow),
        pytest.param("bert-large", 335.1, (24, 1024, 16, 4096), marks=pytest.mark.slow),
    ],
)
def test_transformers_loads_it_whole(shape: str, millions: float, shown: tuple[int, ...]) -> None:
    """No key is missing or left over, and the size is the published one."""
    transformers = pytest.importorskip("transformers")
    network = models.resolve(f"random:{shape}")
    assert (network.layers, network.hidden_size, network.heads, network.intermediate_size) == shown
    assert (network.task, network.pooling, network.max_tokens) == ("embedding", ("mean",), 512)
    model, report = transformers.AutoModel.from_pretrained(network.directory, output_loading_info=True)
    assert not any(report.values())
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.002)


def test_values_are_those_of_a_fresh_network() -> None:
    """Normal with standard deviation 0.02; layer norms do nothing; biases are 0."""
    tensors = load_file(random_model("minilm-l6") / "model.safetensors")
    words = tensors["embeddings.word_embeddings.weight"]
    assert words.std() == pytest.approx(0.02, rel=0.01)
    assert words.mean() == pytest.approx(0, abs=1e-4)
    assert np.abs(words).max() > 4 * 0.02
    assert set(np.unique(tensors["encoder.layer.5.output.LayerNorm.weight"])) == {1.0}
    assert not tensors["encoder.layer.0.attention.self.query.bias"].any()
    assert not np.array_equal(
        tensors["encoder.layer.0.attention.self.query.weight"], tensors["encoder.layer.1.attention.self.query.weight"]
    )


def test_it_is_made_once_and_the_same_again(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second use finds the first one's files; another cache gets equal ones."""
    first = models.resolve("random:minilm-l6")
    made = (Path(first.directory) / "model.safetensors").stat()
    again = models.resolve("random:minilm-l6")
    assert (Path(again.directory) / "model.safetensors").stat() == made
    assert Path(first.directory).is_relative_to(cache)
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path / "other"))
    other = models.resolve("random:minilm-l6")
    assert (other.directory != first.directory, other.fingerprint) == (True, first.fingerprint)


def test_an_unknown_shape_lists_the_known_ones() -> None:
    """One line with all of them."""
    with pytest.raises(ModelError, match=r"random:gpt is unknown; known are random:bert-base, .*random:distilbert"):
        models.resolve("random:gpt")


def test_a_cache_that_cannot_be_written_is_an_error_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request was fine; the disk is not."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path / "file"))
    with pytest.raises(ExecutionError, match="cannot write the cache"):
        models.resolve("random:minilm-l6")

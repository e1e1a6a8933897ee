"""Outputs to results, against sentence-transformers, torch and arithmetic by hand."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from pinstripe import models
from pinstripe.errors import ModelError

Build = Callable[..., Path]
MODES = ["mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


def batch_of(lengths: Sequence[int], sequence_length: int) -> models.TokenBatch:
    """Return a batch with these lengths; its ids don't matter."""
    ids = np.full((len(lengths), sequence_length), 7, dtype=np.int32)
    return models.TokenBatch(ids=ids, lengths=np.array(lengths, dtype=np.int32))


def head_of(directory: Path, **overrides: Any) -> models.Head:
    """Return the head of a model."""
    return models.make_head(models.resolve(str(directory), overrides=models.Overrides(**overrides)))


def hidden_states(*shape: int) -> NDArray[np.float32]:
    """Return random hidden states."""
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("modes", [*([mode] for mode in MODES), ["cls", "mean", "max"]], ids="+".join)
@pytest.mark.parametrize("lengths", [[9, 1, 4], [9, 9, 9]], ids=["padded", "full"])
def test_pooling_is_that_of_sentence_transformers(build: Build, modes: list[str], lengths: list[int]) -> None:
    """Every mode alone, and several side by side, with and without padding."""
    torch = pytest.importorskip("torch")
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    hidden, batch = hidden_states(3, 9, 8), batch_of(lengths, 9)
    features = {
        "token_embeddings": torch.from_numpy(hidden),
        "attention_mask": torch.from_numpy(batch.attention_mask()),
    }
    expected = modules.Pooling(8, tuple(modes))(features)["sentence_embedding"].numpy()
    embedding = head_of(build(), pooling=tuple(modes))(hidden, batch)["embedding"]
    assert embedding.shape == (3, 8 * len(modes))
    assert embedding.dtype == np.float32
    np.testing.assert_allclose(embedding, expected, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_padding_is_never_read(build: Build, mode: str) -> None:
    """Whatever the network leaves there; the vector is to the last bit that of the text alone."""
    head = head_of(build(), pooling=(mode,), normalize=True)
    hidden = hidden_states(2, 6, 8)
    hidden[1, 3:] = np.nan
    together = head(hidden, batch_of([6, 3], 6))["embedding"]
    alone = head(hidden[1:, :3], batch_of([3], 3))["embedding"]
    np.testing.assert_array_equal(together[1:], alone)


def test_unit_length_and_the_zero_vector(build: Build) -> None:
    """3-4-5 by hand; nothing is divided by zero."""
    hidden = np.zeros((2, 1, 8), dtype=np.float32)
    hidden[0, 0, :2] = 3, 4
    embedding = head_of(build(), normalize=True)(hidden, batch_of([1, 1], 1))["embedding"]
    np.testing.assert_allclose(embedding[0, :3], [0.6, 0.8, 0], rtol=1e-6)
    assert not embedding[1].any()


ACTIVATIONS = {"identity": "Identity", "tanh": "Tanh", "gelu": "GELU", "relu": "ReLU", "sigmoid": "Sigmoid"}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_dense_layers_are_those_of_torch(build: Build, activation: str, *, bias: bool) -> None:
    """Two in a row, with the activation and without or with a bias, against torch.nn."""
    torch = pytest.importorskip("torch")
    layers = [torch.nn.Linear(8, 5, bias=bias), torch.nn.Linear(5, 3, bias=bias)]
    function = getattr(torch.nn, ACTIVATIONS[activation])
    kinds = ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
    files: dict[str, Any] = {
        "modules.json": [{"type": f"x.{kind}", "path": f"{n}_{kind}" if n else ""} for n, kind in enumerate(kinds)],
        "1_Pooling/config.json": {"pooling_mode": "cls"},
    }
    for number, layer in enumerate(layers, start=2):
        config = {"in_features": layer.in_features, "out_features": layer.out_features, "bias": bias}
        files[f"{number}_Dense/config.json"] = config | {
            "activation_function": f"{function.__module__}.{function.__name__}"
        }
    directory = build(files)
    for number, layer in enumerate(layers, start=2):
        tensors = {f"linear.{name}": value.detach().numpy() for name, value in layer.named_parameters()}
        save_file(tensors, directory / f"{number}_Dense" / "model.safetensors")
    hidden = hidden_states(4, 2, 8)
    expected = torch.from_numpy(hidden[:, 0])
    with torch.no_grad():
        for layer in layers:
            expected = function()(layer(expected))
        expected = torch.nn.functional.normalize(expected)
    embedding = head_of(directory)(hidden, batch_of([2, 1, 2, 1], 2))["embedding"]
    np.testing.assert_allclose(embedding, expected.numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, [[0.5, 0.5], [0, 1]]),
        ({"problem_type": "multi_label_classification"}, [[0.5, 0.5], [0, 1]]),
        ({"problem_type": "regression"}, [[0, 0], [-800, 800]]),
    ],
)
def test_scores_of_a_classifier(build: Build, config: dict[str, str], expected: list[list[float]]) -> None:
    """By hand, with logits at which a careless exponential overflows."""
    head = head_of(build(architectures=["BertForSequenceClassification"], **config))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = head(np.array([[0, 0], [-800, 800]], dtype=np.float32), batch_of([2, 1], 2))["scores"]
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_scores_of_a_reranker(build: Build) -> None:
    """The logistic function: ln 3 gives 3/4."""
    head = head_of(build(architectures=["BertForSequenceClassification"], id2label={"0": "LABEL_0"}))
    scores = head(np.log([[3.0], [1.0]]).astype(np.float32), batch_of([2, 1], 2))["scores"]
    np.testing.assert_allclose(scores, [[0.75], [0.5]], rtol=1e-6)


def test_scores_of_tokens(build: Build) -> None:
    """Softmax over the labels of each token; 0 at padding, whatever is there."""
    head = head_of(build(architectures=["BertForTokenClassification"]))
    output = np.log([[[1.0, 3.0], [1.0, 1.0]], [[4.0, 1.0], [1.0, 1.0]]]).astype(np.float32)
    np.testing.assert_allclose(head(output, batch_of([2, 2], 2))["scores"][1], [[0.8, 0.2], [0.5, 0.5]], rtol=1e-6)
    output[1, 1] = np.nan
    scores = head(output, batch_of([2, 1], 2))["scores"]
    np.testing.assert_allclose(scores, [[[0.25, 0.75], [0.5, 0.5]], [[0.8, 0.2], [0.0, 0.0]]], rtol=1e-6)
    assert scores.dtype == np.float32


def test_starts_and_ends_of_answers(build: Build) -> None:
    """Logits as they are; a span never starts or ends in padding."""
    head = head_of(build(architectures=["BertForQuestionAnswering"]))
    output = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    results = head(output, batch_of([2, 1], 2))
    assert results["start"].tolist() == [[0, 2], [4, -np.inf]]
    assert results["end"].tolist() == [[1, 3], [5, -np.inf]]
    assert results["start"].dtype == results["end"].dtype == np.float32


def test_fillings_of_mask_tokens(build: Build) -> None:
    """The five likeliest tokens for each mask, best first, as torch finds them; a mask id in padding is none."""
    torch = pytest.importorskip("torch")
    files = {"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "tokenizer_config.json": {"mask_token": "[MASK]"}}
    head = head_of(build(files, architectures=["BertForMaskedLM"]))
    ids = np.array([[2, 4, 7, 4], [2, 7, 3, 4], [2, 4, 3, 0]], dtype=np.int32)
    batch = models.TokenBatch(ids=ids, lengths=np.array([4, 3, 3], dtype=np.int32))
    output = hidden_states(3, 4, 40)
    results = head(output, batch)
    assert results["row"].tolist() == [0, 0, 2]
    assert results["position"].tolist() == [1, 3, 1]
    scores, ranked = torch.from_numpy(output[[0, 0, 2], [1, 3, 1]]).softmax(-1).topk(5)
    assert results["token_ids"].tolist() == ranked.tolist()
    np.testing.assert_allclose(results["scores"], scores.numpy(), rtol=1e-5)
    without = models.TokenBatch(ids=np.full((1, 4), 7, np.int32), lengths=np.array([4], dtype=np.int32))
    assert head(output[:1], without)["token_ids"].shape == (0, 5)


def test_fill_mask_without_a_mask_token_is_refused(build: Build) -> None:
    """A model directory without its tokenizer files."""
    with pytest.raises(ModelError, match="has no mask token"):
        head_of(build(architectures=["BertForMaskedLM"]))


def test_embeddings_end_to_end_are_those_of_sentence_transformers(minilm: models.Network) -> None:
    """Tokenizer, transformers' hidden states as the engine, head: the same vectors within 1e-5."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    library = pytest.importorskip("sentence_transformers")
    texts = ["A man is eating food.", "", "naïve café 中文 👍", "word " * 400, "Perl module to truncate long strings"]
    expected = library.SentenceTransformer(minilm.directory, device="cpu").encode(texts)
    tokenizer = models.load_tokenizer(minilm)
    batch = tokenizer.pad(tokenizer.encode(texts), 256)
    model = transformers.AutoModel.from_pretrained(minilm.directory).eval()
    with torch.inference_mode():
        inputs = {"input_ids": torch.from_numpy(batch.ids), "attention_mask": torch.from_numpy(batch.attention_mask())}
        output = model(**inputs).last_hidden_state.numpy()
    embedding = models.make_head(minilm)(output, batch)["embedding"]
    np.testing.assert_allclose(embedding, expected, atol=1e-5)

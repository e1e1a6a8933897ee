"""Plain results, against transformers' own pipelines and brute force."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from shutil import copy
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pinstripe import models
from pinstripe.errors import ModelError, UsageError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

Build = Callable[..., Path]

TEXTS = [
    "Ada Lovelace met Charles Babbage in London, naïve İstanbul 中文 👩\u200d👩!",
    "short",
    "  leading blanks and\ttabs\n\nJosé  Ångström Unbelievableness [SEP] tokenization  ",
]
KINDS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC"]


class Tiny(NamedTuple):
    """A small random model, in both libraries."""

    network: models.Network
    tokenizer: models.Tokenizer
    reference: Any
    reference_tokenizer: Any

    def outputs(self, rows: list[models.EncodedText]) -> dict[str, NDArray[Any]]:
        """Return the head's arrays for rows as one batch, with transformers as the engine."""
        batch = self.tokenizer.pad(rows)
        inputs = {"input_ids": torch.from_numpy(batch.ids), "attention_mask": torch.from_numpy(batch.attention_mask())}
        if batch.type_ids is not None:
            inputs["token_type_ids"] = torch.from_numpy(batch.type_ids)
        with torch.inference_mode():
            output = self.reference(**inputs)
        logits = output.logits if "logits" in output else torch.stack([output.start_logits, output.end_logits], dim=-1)
        return models.make_head(self.network)(logits.numpy(), batch)

    def answer(self, texts: list[models.Text], **options: Any) -> list[models.Answer]:
        """Return the answers to texts as one batch."""
        rows = self.tokenizer.encode(texts, offsets=models.needs_offsets(self.network.task))
        return models.make_answers(self.network, self.tokenizer, **options)(self.outputs(rows), rows, texts)

    def pipeline(self, task: str, **options: Any) -> Any:
        """Return transformers' pipeline."""
        return transformers.pipeline(
            task, model=self.reference, tokenizer=self.reference_tokenizer, device="cpu", **options
        )


@pytest.fixture
def tiny(minilm: models.Network, tmp_path: Path) -> Callable[..., Tiny]:
    """Return a function that makes a random BERT of a class, with MiniLM's tokenizer."""

    def make(architecture: str, **config: Any) -> Tiny:
        torch.manual_seed(5)
        shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        configuration = transformers.BertConfig(initializer_range=1.0, max_position_embeddings=64, **shape, **config)
        reference = getattr(transformers, architecture)(configuration).eval()
        reference.save_pretrained(tmp_path)
        for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
            if (file := Path(minilm.directory) / name).is_file():
                copy(file, tmp_path)
        network = models.resolve(str(tmp_path))
        return Tiny(
            network, models.load_tokenizer(network), reference, transformers.AutoTokenizer.from_pretrained(tmp_path)
        )

    return make


@pytest.mark.parametrize("problem", ["single_label_classification", "multi_label_classification", "regression"])
def test_classes_are_those_of_transformers(tiny: Callable[..., Tiny], problem: str) -> None:
    """The best label, and the scores of all, for texts of unequal lengths in one batch."""
    model = tiny(
        "BertForSequenceClassification", problem_type=problem, id2label={0: "bad", 1: "so so", 2: "good"}, num_labels=3
    )
    pipeline = model.pipeline("text-classification", top_k=None)
    for text, answer in zip(TEXTS, model.answer(list(TEXTS)), strict=True):
        (expected,) = pipeline(text)
        assert isinstance(answer, models.Classification)
        assert answer.label == expected[0]["label"]
        assert answer.score == pytest.approx(expected[0]["score"], abs=1e-5)
        assert answer.scores == pytest.approx({each["label"]: each["score"] for each in expected}, abs=1e-5)
        assert list(answer.scores) == ["bad", "so so", "good"]


def test_pairs_are_reranked_by_one_number(tiny: Callable[..., Tiny]) -> None:
    """As transformers scores a pair, a plain float each."""
    model = tiny("BertForSequenceClassification", num_labels=1)
    pairs = [("a query", "a passage about it"), ("a query", "another")]
    pipeline = model.pipeline("text-classification")
    expected = [pipeline({"text": query, "text_pair": passage})["score"] for query, passage in pairs]
    answers = model.answer(list(pairs))
    assert [type(answer) for answer in answers] == [float, float]
    assert answers == pytest.approx(expected, abs=1e-5)


def test_tokens_and_entities_are_those_of_transformers(tiny: Callable[..., Tiny]) -> None:
    """Labels, scores and character offsets of both, with accents, emoji, blanks and a special token typed as text."""
    model = tiny("BertForTokenClassification", id2label=dict(enumerate(KINDS)), num_labels=len(KINDS))
    single = model.pipeline("token-classification", aggregation_strategy="none", ignore_labels=[])
    grouped = model.pipeline("token-classification", aggregation_strategy="simple")
    for text, answer in zip(TEXTS, model.answer(list(TEXTS)), strict=True):
        assert isinstance(answer, models.TokenClassification)
        for found, expected, name in (
            (answer.tokens, single(text), "entity"),
            (answer.entities, grouped(text), "entity_group"),
        ):
            assert [(each.label, each.start, each.end) for each in found] == [
                (each[name], each["start"], each["end"]) for each in expected
            ]
            assert [each.score for each in found] == pytest.approx([each["score"] for each in expected], abs=1e-5)
            assert all(each.text == text[each.start : each.end] for each in found)


def test_what_makes_an_entity() -> None:
    """By hand: B- always begins one, I- and labels without prefix go on, O and another kind end it."""
    labels = ["I-PER", "I-PER", "B-PER", "I-PER", "O", "I-PER", "I-LOC", "B-LOC", "MISC", "MISC", "O", "B-PER"]
    tokens = [
        models.Entity(label=label, score=number / 16, text="x", start=2 * number, end=2 * number + 1)
        for number, label in enumerate(labels)
    ]
    text = "x " * len(labels)
    groups = [(each.label, each.text, each.score * 16) for each in models.group_entities(text, tokens)]
    assert groups == [
        ("PER", "x x", 0.5),
        ("PER", "x x", 2.5),
        ("PER", "x", 5),
        ("LOC", "x", 6),
        ("LOC", "x", 7),
        ("MISC", "x x", 8.5),
        ("PER", "x", 11),
    ]


@given(st.lists(st.sampled_from(KINDS), max_size=30))
def test_entities_cover_all_tokens_but_o(labels: list[str]) -> None:
    """Every token with another label is in one entity, in order, and none overlap."""
    tokens = [
        models.Entity(label=label, score=1.0, text="x", start=number, end=number + 1)
        for number, label in enumerate(labels)
    ]
    entities = models.group_entities("x" * len(labels), tokens)
    assert [place for each in entities for place in range(each.start, each.end)] == [
        number for number, label in enumerate(labels) if label != "O"
    ]
    assert all(first.end <= second.start for first, second in pairwise(entities))


def test_masks_are_filled_as_by_transformers(tiny: Callable[..., Tiny]) -> None:
    """None, one and two masks in one batch: each with its place in the text and its candidates, best first."""
    model = tiny("BertForMaskedLM")
    texts = ["nothing hidden here", "Paris is the [MASK] of France.", "[MASK] and  [MASK]"]
    none, one, two = model.answer(list(texts))
    pipeline = model.pipeline("fill-mask")
    assert none == ()
    for text, fillings, expected in (
        (texts[1], one, [pipeline(texts[1])]),
        (texts[2], two, pipeline(texts[2])),
    ):
        assert isinstance(fillings, tuple)
        assert [text[each.start : each.end] for each in fillings] == ["[MASK]"] * len(expected)
        for filling, best in zip(fillings, expected, strict=True):
            assert [(each.token, each.token_id) for each in filling.candidates] == [
                (each["token_str"], each["token"]) for each in best
            ]
            assert [each.score for each in filling.candidates] == pytest.approx([e["score"] for e in best], abs=1e-5)
    assert isinstance(two, tuple)
    assert two[1].start == len("[MASK] and  ")


QUESTIONS = [
    ("Who was it?", "Ada Lovelace, Countess of İstanbul, wrote  notes about the Analytical Engine in 1843."),
    ("Where is the naïve 👩\u200d👩 café of which everybody speaks these days?", "Here."),
]


@pytest.mark.parametrize("most_tokens", [1, 3, 15])
def test_answers_are_the_likeliest_spans(tiny: Callable[..., Tiny], most_tokens: int) -> None:
    """Against all spans of the context, tried one by one on transformers' own tokens, offsets and logits."""
    model = tiny("BertForQuestionAnswering")
    for (question, context), answer in zip(
        QUESTIONS, model.answer(list(QUESTIONS), most_answer_tokens=most_tokens), strict=True
    ):
        inputs = model.reference_tokenizer(question, context, return_offsets_mapping=True, return_tensors="pt")
        offsets = inputs.pop("offset_mapping")[0].tolist()
        places = [place for place, sequence in enumerate(inputs.sequence_ids(0)) if sequence == 1]
        with torch.inference_mode():
            output = model.reference(**inputs)
        starts = output.start_logits[0, places].softmax(0).tolist()
        ends = output.end_logits[0, places].softmax(0).tolist()
        score, first, last = max(
            (starts[first] * ends[last], first, last)
            for first in range(len(places))
            for last in range(first, min(first + most_tokens, len(places)))
        )
        start, end = offsets[places[first]][0], offsets[places[last]][1]
        assert isinstance(answer, models.Span)
        assert (answer.start, answer.end, answer.text) == (start, end, context[start:end])
        assert answer.score == pytest.approx(score, rel=1e-4)


def test_no_context_is_no_answer(tiny: Callable[..., Tiny]) -> None:
    """An empty context, beside one that is not."""
    answers = tiny("BertForQuestionAnswering").answer([("Who?", ""), ("Who?", "Ada")])
    assert answers[0] == models.Span(text="", score=0.0, start=0, end=0)
    assert isinstance(answers[1], models.Span)
    assert answers[1].text == "Ada"


def test_an_embedding_is_its_vector(minilm: models.Network) -> None:
    """One array a text."""
    vectors = np.arange(6, dtype=np.float32).reshape(2, 3)
    rows = [models.EncodedText(np.array([101, 102], dtype=np.int32))] * 2
    answers = models.make_answers(minilm, models.load_tokenizer(minilm))({"embedding": vectors}, rows, ["a", "b"])
    assert [np.asarray(answer).tolist() for answer in answers] == [[0, 1, 2], [3, 4, 5]]


def test_answers_are_written_as_json(tiny: Callable[..., Tiny]) -> None:
    """Other programs rely on these names."""
    model = tiny("BertForTokenClassification", id2label={0: "O", 1: "B-X"}, num_labels=2)
    (answer,) = model.answer(["Ada"])
    written = json.loads(msgspec.json.encode(answer))
    assert set(written) == {"tokens", "entities"}
    assert set(written["tokens"][0]) == {"label", "score", "text", "start", "end"}


def test_texts_of_the_wrong_form_are_named() -> None:
    """By their index; classification takes both forms."""
    with pytest.raises(UsageError, match=r"text 1 is a pair; token-classification takes single texts"):
        models.check_texts("token-classification", ["a", ("b", "c")])
    with pytest.raises(UsageError, match=r"text 0 is a single text; question-answering takes pairs"):
        models.check_texts("question-answering", ["a"])
    with pytest.raises(UsageError, match="text 1 is a single text; reranking takes pairs"):
        models.check_texts("reranking", [("b", "c"), "a"])
    models.check_texts("classification", ["a", ("b", "c")])
    models.check_texts("question-answering", [("b", "c")])


def test_offsets_must_have_been_asked_for(tiny: Callable[..., Tiny]) -> None:
    """A caller's mistake is said, not guessed around."""
    model = tiny("BertForTokenClassification")
    rows = model.tokenizer.encode(["a"])
    with pytest.raises(UsageError, match="offsets=True"):
        models.make_answers(model.network, model.tokenizer)(model.outputs(rows), rows, ["a"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task": "classification", "labels": ("same", "same")}, "gives two classes one label"),
        ({"task": "reranking", "labels": ("a", "b")}, "has 2 scores a text"),
    ],
)
def test_labels_that_cannot_be_used(minilm: models.Network, changes: dict[str, Any], said: str) -> None:
    """Before anything is computed."""
    network = msgspec.structs.replace(minilm, **changes)
    with pytest.raises(ModelError, match=said):
        models.make_answers(network, models.load_tokenizer(minilm))


def test_more_scores_than_labels_are_refused(minilm: models.Network) -> None:
    """A graph made of another model."""
    network = msgspec.structs.replace(minilm, task="classification", labels=("a", "b"))
    answers = models.make_answers(network, models.load_tokenizer(minilm))
    with pytest.raises(ModelError, match="gives 3 scores for its 2 labels"):
        answers({"scores": np.zeros((0, 3), np.float32)}, [], [])

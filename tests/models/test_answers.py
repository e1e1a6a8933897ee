"""Plain results, against transformers' own pipelines and brute force."""

import json
from collections.abc import Callable
from functools import reduce
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


@pytest.mark.parametrize("strategy", ["none", "simple", "first", "average", "max"])
def test_entities_by_all_strategies(tiny: Callable[..., Tiny], strategy: Any) -> None:
    """Those of transformers' pipeline, on texts with accents, pieces of words, unknown characters and odd labels."""
    kinds = [*KINDS, "E-LOC"]
    model = tiny("BertForTokenClassification", id2label=dict(enumerate(kinds)), num_labels=len(kinds))
    answers = models.make_answers(msgspec.structs.replace(model.network, aggregation=strategy), model.tokenizer)
    texts = [*TEXTS, "Unbelievableness, antidisestablishmentarianism \U000f0000 untranslatable!"]
    rows = model.tokenizer.encode(texts, offsets=True)
    pipeline = model.pipeline("token-classification", aggregation_strategy=strategy)
    for text, answer in zip(texts, answers(model.outputs(rows), rows, texts), strict=True):
        assert isinstance(answer, models.TokenClassification)
        expected = pipeline(text)
        name = "entity" if strategy == "none" else "entity_group"
        assert [(each.label, each.start, each.end) for each in answer.entities] == [
            (each[name], each["start"], each["end"]) for each in expected
        ]
        assert [each.score for each in answer.entities] == pytest.approx([each["score"] for each in expected], abs=1e-5)


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


def best_span(model: Tiny, inputs: Any, row: int, most_tokens: int) -> tuple[float, int, int, float]:
    """Return score, begin and end of the best span, tried one by one on transformers' own logits, and that of none.

    As its question-answering pipeline did: the softmax is over the context and the first token.
    """
    offsets = inputs["offset_mapping"][row].tolist()
    places = [place for place, sequence in enumerate(inputs.sequence_ids(row)) if sequence == 1]
    with torch.inference_mode():
        output = model.reference(
            **{name: inputs[name][row : row + 1] for name in model.reference_tokenizer.model_input_names}
        )
    starts = output.start_logits[0, [0, *places]].softmax(0).tolist()
    ends = output.end_logits[0, [0, *places]].softmax(0).tolist()
    score, first, last = max(
        (starts[first] * ends[last], first, last)
        for first in range(1, len(places) + 1)
        for last in range(first, min(first + most_tokens, len(places) + 1))
    )
    return score, offsets[places[first - 1]][0], offsets[places[last - 1]][1], starts[0] * ends[0]


@pytest.mark.parametrize("most_tokens", [1, 3, 15])
def test_answers_are_the_likeliest_spans(tiny: Callable[..., Tiny], most_tokens: int) -> None:
    """Against all spans of the context, with both texts in one batch."""
    model = tiny("BertForQuestionAnswering")
    for (question, context), answer in zip(
        QUESTIONS, model.answer(list(QUESTIONS), most_answer_tokens=most_tokens), strict=True
    ):
        inputs = model.reference_tokenizer(question, context, return_offsets_mapping=True, return_tensors="pt")
        score, start, end, none = best_span(model, inputs, 0, most_tokens)
        assert isinstance(answer, models.Span)
        assert (answer.start, answer.end, answer.text) == (start, end, context[start:end])
        assert answer.score == pytest.approx(score, rel=1e-4)
        assert answer.no_answer == pytest.approx(none, rel=1e-4)


LONG = (QUESTIONS[0][0], " ".join(f"{QUESTIONS[0][1]} Part {number}." for number in range(9)))


@pytest.mark.parametrize("stride", [0, 7, 32])
def test_long_contexts_are_read_in_windows(tiny: Callable[..., Tiny], stride: int) -> None:
    """Transformers' own windows, beside a short context; the best span of all, and no answer where all say so."""
    model = tiny("BertForQuestionAnswering")
    network = msgspec.structs.replace(model.network, stride=stride)
    tokenizer = models.load_tokenizer(network)
    texts: list[models.Text] = [QUESTIONS[0], LONG]
    rows, owners = tokenizer.encode_windows(texts, offsets=True)
    inputs = model.reference_tokenizer(
        *LONG,
        truncation="only_second",
        max_length=64,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding=True,
        return_tensors="pt",
    )
    windows = len(inputs["input_ids"])
    assert windows > 3
    assert owners.tolist() == [0] + [1] * windows
    for row, ids, mask in zip(rows[1:], inputs["input_ids"], inputs["attention_mask"], strict=True):
        assert row.ids.tolist() == ids[mask == 1].tolist()
    answers = models.make_answers(network, tokenizer)(model.outputs(rows), rows, [texts[owner] for owner in owners])
    answer = reduce(models.better_answer, answers[1:])
    expected = [best_span(model, inputs, row, 15) for row in range(windows)]
    score, start, end, _ = max(expected)
    assert isinstance(answer, models.Span)
    assert (answer.start, answer.end, answer.text) == (start, end, LONG[1][start:end])
    assert answer.score == pytest.approx(score, rel=1e-4)
    assert answer.no_answer == pytest.approx(min(none for *_, none in expected), rel=1e-4)
    assert models.better_answer(None, answers[0]) == answers[0]


def test_questions_that_leave_little_room(tiny: Callable[..., Tiny]) -> None:
    """With less room than the stride, windows still go on, and hold every token; without any, the pair is cut."""
    model = tiny("BertForQuestionAnswering")  # 64 tokens, 3 of them special
    words = "which " * 51, " ".join("abcdefghijklmnop")
    rows, owners = model.tokenizer.encode_windows([words, ("which " * 80, "Ada"), ("which " * 80, "")], offsets=True)
    assert model.network.stride == 32
    assert owners.tolist() == [0, 0, 0, 1, 2]
    places = [row.sources.offsets[row.sources.sequences == 1, 0].tolist() for row in rows[:3] if row.sources]
    assert places == [list(range(0, 20, 2)), list(range(10, 30, 2)), list(range(20, 32, 2))]
    assert [len(row) for row in rows[3:]] == [64, 64]


def test_other_tasks_have_a_row_a_text(minilm: models.Network) -> None:
    """However long it is."""
    tokenizer = models.load_tokenizer(minilm)
    texts = ["short", "long " * 1000]
    rows, owners = tokenizer.encode_windows(texts)
    assert [len(row) for row in rows] == [len(row) for row in tokenizer.encode(texts)]
    assert owners.tolist() == [0, 1]


def test_no_context_is_no_answer(tiny: Callable[..., Tiny]) -> None:
    """An empty context, beside one that is not."""
    answers = tiny("BertForQuestionAnswering").answer([("Who?", ""), ("Who?", "Ada")])
    assert answers[0] == models.Span(text="", score=0.0, start=0, end=0, no_answer=1.0)
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

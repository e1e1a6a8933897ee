"""Character offsets of tokens, against transformers' own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinstripe import models

pytest.importorskip("tokenizers")

Build = Callable[..., Path]
TEXTS: list[models.Text] = [
    "",
    "naïve İstanbul 中文 👩\u200d👩 x\x00y [MASK] [SEP] ﬁ",
    "word " * 5000,
    "x" * 9000 + " word",
    ("a question?", "The  Context e\u0301"),
    ("q " * 300, "c " * 300),
]


@pytest.fixture(scope="module")
def tokenizer(minilm: models.Network) -> models.Tokenizer:
    """Return MiniLM's tokenizer."""
    return models.load_tokenizer(minilm)


def places(row: models.EncodedText) -> list[tuple[int, int, int]]:
    """Return (sequence, start, end) of each token."""
    assert row.sources is not None
    return [
        (sequence, start, end)
        for sequence, (start, end) in zip(row.sources.sequences.tolist(), row.sources.offsets.tolist(), strict=True)
    ]


def test_offsets_are_those_of_transformers(minilm: models.Network, tokenizer: models.Tokenizer) -> None:
    """Of single texts and pairs, cut ones too; the ids are those that are found without offsets."""
    transformers = pytest.importorskip("transformers")
    reference = transformers.AutoTokenizer.from_pretrained(minilm.directory)
    rows = tokenizer.encode(TEXTS, offsets=True)
    plain = tokenizer.encode(TEXTS)
    assert [row.ids.tolist() for row in rows] == [row.ids.tolist() for row in plain]
    assert all(row.sources is None for row in plain)
    for text, row in zip(TEXTS, rows, strict=True):
        words = text if isinstance(text, tuple) else (text,)
        expected = reference(*words, truncation=True, max_length=256, return_offsets_mapping=True)
        sequences = [-1 if number is None else number for number in expected.sequence_ids(0)]
        assert places(row) == [(s, *offset) for s, offset in zip(sequences, expected["offset_mapping"], strict=True)]


@settings(max_examples=50)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_offsets_lie_in_the_text(text: str, tokenizer: models.Tokenizer) -> None:
    """Whatever the text: ascending, within it."""
    (row,) = tokenizer.encode([text], offsets=True)
    inside = [(start, end) for sequence, start, end in places(row) if sequence == 0]
    assert all(0 <= start <= end <= len(text) for start, end in inside)
    assert inside == sorted(inside)


def with_prompt(directory: Path, **overrides: Any) -> models.Tokenizer:
    """Return the tokenizer of a model with a prompt `q`."""
    return models.load_tokenizer(
        models.resolve(str(directory), overrides=models.Overrides(prompts={"q": "Query: "}, **overrides))
    )


@pytest.mark.parametrize("text", ["The text", ("The text", "the other")])
def test_a_prompt_does_not_count(minilm: models.Network, text: models.Text) -> None:
    """Its tokens are of no text, and those of the text are where they are without it."""
    tokenizer = with_prompt(Path(minilm.directory))
    (row,) = tokenizer.encode([text], prompt="q", offsets=True)
    (plain,) = tokenizer.encode([text], prompt="", offsets=True)
    added = len(row) - len(plain)
    assert added == 2  # "query" and ":"
    assert places(row) == [(-1, 0, 0)] * added + places(plain)


def test_lowercasing_does_not_move_offsets(build: Build) -> None:
    """İ is one character in the text, and two when it is lower-cased."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "i\u0307x"]
    files = {
        "vocab.txt": "\n".join(words) + "\n",
        "tokenizer_config.json": {"do_lower_case": False, "strip_accents": False},
        "sentence_bert_config.json": {"do_lower_case": True},
    }
    tokenizer = models.load_tokenizer(models.resolve(str(build(files))))
    (row,) = tokenizer.encode(["İX Hello"], offsets=True)
    assert row.ids.tolist() == [2, 6, 5, 3]
    assert places(row) == [(-1, 0, 0), (0, 0, 2), (0, 3, 8), (-1, 0, 0)]


def test_a_token_across_the_end_of_a_prompt_is_cut(build: Build) -> None:
    """A prompt without a space behind it: only the text's part of the token counts."""
    files = {"vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\n"}
    network = models.resolve(str(build(files)), overrides=models.Overrides(prompts={"q": "he"}))
    (row,) = models.load_tokenizer(network).encode(["llo"], prompt="q", offsets=True)
    assert row.ids.tolist() == [2, 5, 3]
    assert places(row) == [(-1, 0, 0), (0, 0, 3), (-1, 0, 0)]

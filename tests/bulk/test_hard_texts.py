"""`pinstripe embed` on texts that are only known to be hard once they are tokenized."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pinstripe
from pinstripe.errors import BadTextError
from pinstripe.models import Span
from pinstripe.testing.tiny_model import make_tiny_model

if TYPE_CHECKING:
    import subprocess

Embed = Callable[..., "subprocess.CompletedProcess[str]"]
WriteTexts = Callable[[Sequence[Any]], Path]


def _plan(model: Path) -> Path:
    plan = model.with_suffix(".toml")
    plan.write_text(f'model = "{model}"\n[configuration]\nengine = "fake"\ninstances = 2\ncores = 1\n')
    return plan


@pytest.fixture
def gapped(tmp_path: Path) -> Path:
    """A model whose tokenizer has a token with an id that the network lacks."""
    model = make_tiny_model(tmp_path / "gapped")
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    vocabulary = {"[UNK]": 0, "near": 1, "<far>": 100_000}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [special | {"id": 100_000, "content": "<far>"}],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    return model


def test_a_token_that_the_network_lacks(embed: Embed, gapped: Path, write_texts: WriteTexts, tmp_path: Path) -> None:
    """Its line is refused by number, or skipped; the others get their results."""
    texts = write_texts(["near", "near near", "a <far>", "near", "<far>"])
    refused = embed(_plan(gapped), texts, "-o", "refused.jsonl")
    assert refused.returncode == 2
    assert "line 3 of" in refused.stderr
    assert "token '<far>' with id 100000" in refused.stderr
    skipped = embed(_plan(gapped), texts, "-o", "skipped.jsonl", "--bad-lines", "skip")
    assert skipped.returncode == 0, skipped.stderr
    rows = [json.loads(line) for line in (tmp_path / "skipped.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 4]
    only_bad = embed(_plan(gapped), write_texts(["<far>", "<far>"]), "-o", "none.jsonl", "--bad-lines", "skip")
    assert only_bad.returncode == 0, only_bad.stderr


def test_the_bad_one_of_many_is_named(gapped: Path) -> None:
    """By its index in the caller's list, however texts were sorted."""
    with (
        pinstripe.open(str(_plan(gapped))) as model,
        pytest.raises(BadTextError, match="text 2 has the token") as caught,
    ):
        model.encode(["near", "near near near near", "<far>", "near near"])
    assert caught.value.index == 2


def test_long_contexts(embed: Embed, write_texts: WriteTexts, tmp_path: Path) -> None:
    """One answer a line, that of the best of its windows, which here are given as contexts of their own, too."""
    model = make_tiny_model(tmp_path / "qa", architecture="BertForQuestionAnswering", max_position_embeddings=64)
    words = list("bcdefghijklmnop" * 40)
    contexts = ["x", " ".join(words), "f g"]
    lines = [{"text": "who?", "text_pair": context} for context in contexts]
    result = embed(_plan(model), write_texts(lines), "-o", "out.jsonl", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["texts"] == 3
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3]
    # 64 positions, 3 of them for special tokens and 4 for the question; windows share 32.
    windows = [" ".join(words[start : start + 57]) for start in range(0, 600 - 57 + 25, 25)]
    with pinstripe.open(str(_plan(model))) as opened:
        answers = opened.predict([("who?", context) for context in contexts])
        parts = opened.predict([("who?", window) for window in windows])
    spans = [answer for answer in [*answers, *parts] if isinstance(answer, Span)]
    best = max(spans[3:], key=lambda span: span.score)
    assert (spans[1].text, spans[1].score) == (best.text, best.score)
    assert spans[1].no_answer == min(span.no_answer for span in spans[3:])
    found = [(row["result"]["text"], row["result"]["start"], row["result"]["end"]) for row in rows]
    assert found == [(span.text, span.start, span.end) for span in spans[:3]]


def test_texts_that_are_too_long(embed: Embed, tmp_path: Path, write_texts: WriteTexts) -> None:
    """They are cut, and counted; or bad lines, named by number, if they are not to be cut."""
    model = make_tiny_model(tmp_path / "short", max_position_embeddings=64)
    # A letter is a token, and there are [CLS] and [SEP].
    texts = write_texts(["near", "n" * 62, "n" * 63, "far"])
    cut = embed(_plan(model), texts, "-o", "cut.jsonl", "--json")
    refused = embed(_plan(model), texts, "-o", "refused.jsonl", "--no-truncate")
    skipped = embed(_plan(model), texts, "-o", "skipped.jsonl", "--no-truncate", "--bad-lines", "skip", "--json")

    assert json.loads(cut.stdout)["cut"] == 1
    assert refused.returncode == 2
    assert "line 3 of" in refused.stderr
    assert "has 65 tokens, the limit is 64" in refused.stderr
    assert [one["line"] for one in json.loads(skipped.stdout)["skipped"]] == [3]


def test_a_text_that_is_too_long_for_a_program(tmp_path: Path) -> None:
    """With truncate=False the call fails with the text's index; without, the text is cut."""
    model = make_tiny_model(tmp_path / "short", max_position_embeddings=64)
    with pinstripe.open(_plan(model), truncate=False) as strict, pytest.raises(BadTextError, match="the limit is 64"):
        strict.encode(["near", "near " * 200])
    with pinstripe.open(_plan(model)) as lenient:
        assert lenient.encode(["near", "near " * 200]).shape[0] == 2

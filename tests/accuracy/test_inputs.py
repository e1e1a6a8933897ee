"""Which texts are compared."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import pytest

from pinstripe.accuracy import read_inputs
from pinstripe.errors import PinstripeError, UsageError
from pinstripe.models import Network, Task, Text, check_texts, resolve
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.tiny_model import make_tiny_model

Write = Callable[[Sequence[object]], Path]


@pytest.fixture
def pairs(tmp_path: Path) -> Write:
    """Write pairs with these scores: a0 and b0, a1 and b1, and so on."""

    def write(scores: Sequence[object]) -> Path:
        path = tmp_path / "pairs.tsv"
        path.write_text("".join(f"{score}\ta{number}\tb{number}\n" for number, score in enumerate(scores)))
        return path

    return write


@pytest.fixture
def texts(tmp_path: Path) -> Callable[[Sequence[Text]], Path]:
    """Write texts and pairs of texts."""

    def write(several: Sequence[Text]) -> Path:
        path = tmp_path / "texts.jsonl"
        lines = [{"text": one} if isinstance(one, str) else {"text": one[0], "text_pair": one[1]} for one in several]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return path

    return write


@pytest.mark.parametrize("task", [task for task in get_args(Task) if task != "fill-mask"])
def test_texts_that_come_with_pinstripe(task: Task) -> None:
    """A hundred or more that the task takes, of many lengths, each once."""
    inputs = read_inputs(fake_network(task=task))

    check_texts(task, inputs.texts)
    assert len(inputs.texts) >= 100
    assert len(set(inputs.texts)) == len(inputs.texts)
    assert inputs.source is not None
    assert (inputs.source.name, inputs.source.used) == ("sample", len(inputs.texts))
    lengths = [len(" ".join([text] if isinstance(text, str) else text).split()) for text in inputs.texts]
    assert max(lengths) > 50


def test_questions_stand_with_their_passage() -> None:
    """The passage that a question comes with has the words of an answer to it."""
    inputs = read_inputs(fake_network(task="question-answering"))

    (passage,) = [one[1] for one in inputs.texts if one[0] == "When was the lighthouse built?"]
    assert "built in 1854" in passage


def test_texts_of_a_file_are_taken_evenly(texts: Callable[[Sequence[Text]], Path]) -> None:
    """Twelve of 36 are the first, the fourth, the seventh and so on; one that comes again counts once."""
    path = texts([f"text {number % 33}" for number in range(36)])

    inputs = read_inputs(fake_network(), texts=path, limit=12)

    assert inputs.texts == tuple(f"text {number}" for number in range(0, 33, 3))
    assert inputs.source is not None
    assert (inputs.source.used, inputs.source.total, inputs.source.name) == (11, 36, str(path))


def test_pairs_of_an_embedding_model(pairs: Write, texts: Callable[[Sequence[Text]], Path]) -> None:
    """Their texts are embedded one by one, beside those of the file, and each only once."""
    inputs = read_inputs(fake_network(), pairs=pairs(range(12)), texts=texts(["b3", "other"]))

    assert inputs.texts[:2] == ("b3", "other")
    assert len(inputs.texts) == 25
    assert inputs.rated is not None
    assert inputs.rated.second is not None
    named = [
        (inputs.texts[one], inputs.texts[other])
        for one, other in zip(inputs.rated.first, inputs.rated.second, strict=True)
    ]
    assert named[3] == ("a3", "b3")
    assert inputs.rated.scores.tolist() == list(range(12))


def test_pairs_of_a_reranker(pairs: Write) -> None:
    """It gets them as they are."""
    inputs = read_inputs(fake_network(task="reranking", labels=("score",)), pairs=pairs(range(10)))

    assert inputs.source is None
    assert inputs.texts[4] == ("a4", "b4")
    assert inputs.rated is not None
    assert inputs.rated.first.tolist() == list(range(10))
    assert inputs.rated.second is None


def test_a_word_is_masked_for_fill_mask(tmp_path: Path, texts: Callable[[Sequence[Text]], Path]) -> None:
    """The one in the middle, unless there is a mask; in a long text one that is not cut off.

    Where there are no words, as in Japanese, a character: a text must not become a mask alone.
    """
    directory = make_tiny_model(tmp_path / "tiny", architecture="BertForMaskedLM")
    (directory / "tokenizer_config.json").write_text('{"mask_token": "[MASK]"}')
    network = resolve(str(directory))
    others = [f"{number} other" for number in range(6)]
    path = texts(["one two three", "猫が外に座る", "[MASK] two three", " ".join(map(str, range(400))), *others])

    inputs = read_inputs(network, texts=path)

    assert inputs.texts[:3] == ("one [MASK] three", "猫が外[MASK]座る", "[MASK] two three")
    assert str(inputs.texts[3]).split()[24:27] == ["24", "[MASK]", "26"]


@pytest.mark.parametrize(
    ("task", "scores", "message"),
    [
        ("embedding", range(9), "9 pairs are too few for a rank correlation; give at least 10 in .*pairs.tsv"),
        ("embedding", [2.5] * 10, "all pairs of .* have the score 2.5"),
        ("classification", range(10), "--pairs says how alike texts are, and the model is for classification"),
    ],
)
def test_pairs_that_say_nothing(pairs: Write, task: Task, scores: Sequence[object], message: str) -> None:
    """No correlation without several scores, and none for a task without similarity."""
    with pytest.raises(UsageError, match=message):
        read_inputs(fake_network(task=task), pairs=pairs(scores))


@pytest.mark.parametrize(
    ("network", "several", "message"),
    [
        (fake_network(), ["a", ("b", "c")], "text 1 is a pair; embedding takes single texts"),
        (fake_network(task="reranking"), ["a"], "text 0 is a single text; reranking takes pairs"),
        (fake_network(task="reranking"), [("a", "b")] * 20, "1 pair is too few to judge; give at least 10"),
        (fake_network(), ["a"], "1 text is too few to judge; give at least 10"),
        (fake_network(task="classification"), [f"text {number % 9}" for number in range(50)], "9 texts are too few"),
        (fake_network(name="random:bert-base"), ["a"], "random:bert-base has random weights"),
    ],
)
def test_texts_that_cannot_be_judged(
    texts: Callable[[Sequence[Text]], Path], network: Network, several: Sequence[Text], message: str
) -> None:
    """Texts of another kind, too few, and models whose outputs mean nothing."""
    with pytest.raises(PinstripeError, match=message):
        read_inputs(network, texts=texts(several))

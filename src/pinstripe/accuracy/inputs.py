"""The texts on which outputs are compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from pinstripe.accuracy.accuracy import Source
from pinstripe.accuracy.pairs import ScoredPair, read_pairs
from pinstripe.accuracy.sample import sample_texts
from pinstripe.errors import TextError, UsageError
from pinstripe.models import Network, Task, Text, check_texts, load_tokenizer
from pinstripe.texts import read_texts

__all__ = ["Inputs", "Rated", "check_judgeable", "read_inputs"]

T = TypeVar("T")

_RANDOM: Final = "random:"
_SAMPLE: Final = "sample"
_LEAST: Final = 10
"""Texts or pairs below which there is no verdict: of 10 numbers without any relation, 5 % reach a rank correlation of
0.65."""
_MASK_WITHIN: Final = 50
"""Words at the begin of a text of which one is masked, so that the mask is not cut off with what is too long."""


@dataclass(frozen=True, slots=True)
class Rated:
    """What people said of some of the inputs.

    Attributes:
        scores: float64 [pairs].
        first: Which of the inputs is the first text of each pair; for reranking, the pair.
        second: Which is the second; None for reranking.
        source: Where they come from.
    """

    scores: NDArray[np.float64]
    first: NDArray[np.intp]
    second: NDArray[np.intp] | None
    source: Source


@dataclass(frozen=True, slots=True)
class Inputs:
    """Texts that a model is run on.

    Attributes:
        texts: Texts or pairs of texts, each once.
        source: Where they come from; None where they are those of the rated pairs.
        rated: What people said of pairs among them; None without.
    """

    texts: tuple[Text, ...]
    source: Source | None
    rated: Rated | None = None


def check_judgeable(model: str) -> None:
    """Raise if a model's outputs mean nothing, so that their accuracy cannot be judged.

    Args:
        model: As the user named it.

    Raises:
        UsageError: It has random weights.
    """
    if model.startswith(_RANDOM):
        raise UsageError(
            f"{model} has random weights and its outputs no meaning, so accuracy cannot be judged; name a trained model"
        )


def read_inputs(
    network: Network, *, texts: Path | None = None, pairs: Path | None = None, limit: int | None = None
) -> Inputs:
    """Return the texts of files; those that come with pinstripe where none is named.

    In a text for fill-mask that has no mask, the middle one of its first 50 words is masked.

    Args:
        network: The model that they are for.
        texts: A file of texts; see `TextFile`.
        pairs: A file of pairs that people have rated; see `read_pairs`. Its texts are compared, too.
        limit: Most texts, and most pairs, that are taken, evenly spread over the file; None for all.

    Raises:
        UsageError: The model cannot be judged, a file cannot be read, its texts are not for the task, or there are
            fewer than 10.
    """
    check_judgeable(network.name)
    rated = None if pairs is None else _rated(network.task, pairs, limit)
    chosen: list[Text] = []
    source = None
    if texts is not None or rated is None:
        every, digest = sample_texts(network.task) if texts is None else read_texts(texts)
        check_texts(network.task, every)
        chosen = list(dict.fromkeys(_masked(network, _spread(every, limit))))
        name = _SAMPLE if texts is None else str(texts)
        source = Source(name=name, sha256=digest, used=len(chosen), total=len(every))
    if rated is None and len(chosen) < _LEAST:
        noun = "pair" if network.task == "reranking" else "text"
        raise TextError(f"{_too_few(len(chosen), noun)} to judge; give at least {_LEAST}, each another one")
    if rated is None:
        return Inputs(tuple(chosen), source)
    together, found = _joined(network.task, chosen, *rated)
    return Inputs(together, source, found)


def _too_few(count: int, noun: str) -> str:
    return f"1 {noun} is too few" if count == 1 else f"{count} {noun}s are too few"


def _rated(task: Task, path: Path, limit: int | None) -> tuple[list[ScoredPair], Source]:
    if task not in {"embedding", "reranking"}:
        raise UsageError(f"--pairs says how alike texts are, and the model is for {task}; use --texts")
    every, digest = read_pairs(path)
    chosen = _spread(every, limit)
    if len(chosen) < _LEAST:
        raise TextError(f"{_too_few(len(chosen), 'pair')} for a rank correlation; give at least {_LEAST} in {path}")
    if len({pair.score for pair in chosen}) == 1:
        raise TextError(f"all pairs of {path} have the score {chosen[0].score:g}, so that they have no order")
    return chosen, Source(name=str(path), sha256=digest, used=len(chosen), total=len(every))


def _joined(
    task: Task, texts: Sequence[Text], pairs: Sequence[ScoredPair], source: Source
) -> tuple[tuple[Text, ...], Rated]:
    """Return the texts and those of the pairs, each once, and which of them the pairs are."""
    sides: list[list[Text]] = [[pair.texts for pair in pairs]]
    if task == "embedding":
        sides = [[pair.texts[side] for pair in pairs] for side in (0, 1)]
    together = tuple(dict.fromkeys([*texts, *(text for side in sides for text in side)]))
    place = {text: index for index, text in enumerate(together)}
    first, *second = (np.array([place[text] for text in side], dtype=np.intp) for side in sides)
    scores = np.array([pair.score for pair in pairs])
    return together, Rated(scores, first, second[0] if second else None, source)


def _spread(every: list[T], limit: int | None) -> list[T]:
    """Return as many as allowed, evenly spread: files are often sorted by topic or length."""
    count = len(every) if limit is None else min(len(every), limit)
    return [every[number * len(every) // count] for number in range(count)]


def _masked(network: Network, texts: list[Text]) -> list[Text]:
    if network.task != "fill-mask" or network.mask_token_id is None:
        return texts
    mask = load_tokenizer(network).token_text(network.mask_token_id)
    return [_with_mask(text, mask) if isinstance(text, str) else text for text in texts]


def _with_mask(text: str, mask: str) -> str:
    if mask in text:
        return text
    words = text.split(" ")
    if len(words) == 1:  # such as Chinese and Japanese are written: a character instead
        middle = min(len(text), _MASK_WITHIN) // 2
        return f"{text[:middle]}{mask}{text[middle + 1 :]}"
    words[min(len(words), _MASK_WITHIN) // 2] = mask
    return " ".join(words)

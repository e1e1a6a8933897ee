"""What people read: plain results, one a text, made of a head's arrays."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import BadTextError, ModelError, UsageError
from pinstripe.models.entities import Entity, group_entities, join_words
from pinstripe.models.network import Network, Task
from pinstripe.models.spans import Span, better_span, likeliest_span
from pinstripe.models.text import Text, check_several, check_text
from pinstripe.models.tokenizer import Tokenizer
from pinstripe.models.tokens import EncodedText, TokenSources

__all__ = [
    "Answer",
    "Answers",
    "Candidate",
    "Classification",
    "Filling",
    "Span",
    "TokenClassification",
    "better_answer",
    "check_texts",
    "make_answers",
    "needs_offsets",
]


class Classification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The classes of a text.

    Attributes:
        label: The class with the highest score.
        score: Its score, as the model's activation gives it: 0 to 1 for softmax and sigmoid.
        scores: All scores by label, in the model's order.
    """

    label: str
    score: float
    scores: dict[str, float]


class TokenClassification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The classes of the tokens of a text.

    Attributes:
        tokens: Every token of the text with its likeliest label, in order; special tokens and a prompt's left out.
        entities: What the network's aggregation strategy makes of them, without what is labelled `O`: `none` the tokens
            as they are; `simple` neighbours of one kind as one, see `group_entities`; `first`, `average` and `max`
            likewise of whole words, see `join_words`.
    """

    tokens: tuple[Entity, ...]
    entities: tuple[Entity, ...]


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token that may stand in the place of a mask.

    Attributes:
        token: How it reads, such as `paris` or `##ing`.
        token_id: Its id.
        score: Its share of the softmax over the vocabulary, 0 to 1.
    """

    token: str
    token_id: int
    score: float


class Filling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may stand in the place of one mask token.

    Attributes:
        start: First character of the mask token in the text.
        end: The one behind its last.
        candidates: The likeliest tokens, best first.
    """

    start: int
    end: int
    candidates: tuple[Candidate, ...]


Answer: TypeAlias = NDArray[np.float32] | float | Classification | TokenClassification | tuple[Filling, ...] | Span
"""By task: an embedding's vector [D]; the score of a reranker; `Classification`; `TokenClassification`; a filling for
each mask token, in order; the `Span` that answers a question."""
Answers: TypeAlias = Callable[[dict[str, NDArray[Any]], Sequence[EncodedText], Sequence[Text]], list[Answer]]
"""Takes a head's arrays, and the rows and the texts of the batch that they are of; returns an answer for each text."""

_OFFSETS: frozenset[Task] = frozenset({"token-classification", "fill-mask", "question-answering"})


def needs_offsets(task: Task) -> bool:
    """Return whether `Tokenizer.encode` has to be called with `offsets` for `make_answers`."""
    return task in _OFFSETS


def check_texts(task: Task, texts: Sequence[Text]) -> None:
    """Raise if a text is not valid, or a pair where the task takes single texts, or the other way round.

    Raises:
        UsageError: The message names the text's index.
    """
    check_several(texts)
    wanted = {
        "question-answering": "pairs of a question and a context",
        "reranking": "pairs of a query and a passage (a model that scores single texts is one for classification)",
    }.get(task, "single texts")
    pairs = task in {"question-answering", "reranking"}
    for index, text in enumerate(texts):
        check_text(text, index)
        if task != "classification" and isinstance(text, tuple) != pairs:
            raise BadTextError(index, f"is a {'pair' if not pairs else 'single text'}; {task} takes {wanted}")


def better_answer(one: Answer | None, other: Answer) -> Answer:
    """Return the answer to a text of which several rows were made; see `Tokenizer.encode_windows`.

    Args:
        one: The answer of the rows so far; None for none yet.
        other: That of one more row.
    """
    return better_span(one, other) if isinstance(one, Span) and isinstance(other, Span) else other


def make_answers(network: Network, tokenizer: Tokenizer, *, most_answer_tokens: int = 15) -> Answers:
    """Return the function from a head's arrays to plain results.

    Args:
        network: The model.
        tokenizer: Its tokenizer.
        most_answer_tokens: Longest answer to a question, in tokens; at least 1.

    Raises:
        ModelError: A classifier's labels are not distinct, or a reranker has several scores.
    """
    if network.task == "classification" and len(set(network.labels)) < len(network.labels):
        raise ModelError(f"{network.name} gives two classes one label; rename them in id2label of its config.json")
    if network.task == "reranking" and len(network.labels) != 1:
        raise ModelError(f"{network.name} has {len(network.labels)} scores a text, a reranker one; use classification")

    def answers(outputs: dict[str, NDArray[Any]], rows: Sequence[EncodedText], texts: Sequence[Text]) -> list[Answer]:
        match network.task:
            case "embedding":
                return list(outputs["embedding"])
            case "reranking":
                return [float(score) for score in _labelled(outputs, network)[:, 0]]
            case "classification":
                return [_classification(scores, network.labels) for scores in _labelled(outputs, network)]
            case "token-classification":
                scores = _labelled(outputs, network)
                return [_tokens(*each, network, tokenizer) for each in zip(scores, rows, texts, strict=True)]
            case "question-answering":
                each_row = zip(outputs["start"], outputs["end"], rows, texts, strict=True)
                return [
                    likeliest_span(starts, ends, _sources(row), text[1], most_answer_tokens)
                    for starts, ends, row, text in each_row
                ]
            case "fill-mask":
                return list(_fillings(outputs, rows, tokenizer))

    return answers


def _labelled(outputs: dict[str, NDArray[Any]], network: Network) -> NDArray[np.float32]:
    scores: NDArray[np.float32] = outputs["scores"]
    if scores.shape[-1] != len(network.labels):
        raise ModelError(
            f"{network.name} gives {scores.shape[-1]} scores for its {len(network.labels)} labels; correct id2label in "
            "its config.json"
        )
    return scores


def _classification(scores: NDArray[np.float32], labels: tuple[str, ...]) -> Classification:
    best = int(scores.argmax())
    return Classification(
        label=labels[best], score=float(scores[best]), scores=dict(zip(labels, scores.tolist(), strict=True))
    )


def _tokens(
    scores: NDArray[np.float32], row: EncodedText, text: Text, network: Network, tokenizer: Tokenizer
) -> TokenClassification:
    single, sources = _single(text), _sources(row)
    (own,) = np.nonzero(sources.sequences >= 0)
    scores, offsets = scores[own], sources.offsets[own].tolist()
    tokens = tuple(
        Entity(label=network.labels[best], score=score, text=single[start:end], start=start, end=end)
        for best, score, (start, end) in zip(scores.argmax(axis=1), scores.max(axis=1).tolist(), offsets, strict=True)
    )
    if network.aggregation == "none":
        return TokenClassification(tokens=tokens, entities=tuple(token for token in tokens if token.label != "O"))
    parts = tokens
    if network.aggregation != "simple":
        inner = tokenizer.inside_words(row, single)[own].tolist()
        parts = join_words(
            single, tokens, scores=scores, inner=inner, labels=network.labels, strategy=network.aggregation
        )
    return TokenClassification(tokens=tokens, entities=group_entities(single, parts))


def _fillings(
    outputs: dict[str, NDArray[Any]], rows: Sequence[EncodedText], tokenizer: Tokenizer
) -> list[tuple[Filling, ...]]:
    found: list[list[Filling]] = [[] for _ in rows]
    each_mask = zip(outputs["row"], outputs["position"], outputs["token_ids"], outputs["scores"], strict=True)
    for row, position, token_ids, scores in each_mask:
        sources = _sources(rows[row])
        if sources.sequences[position] < 0:
            continue  # in the prompt
        start, end = sources.offsets[position].tolist()
        candidates = tuple(
            Candidate(token=tokenizer.token_text(token_id), token_id=token_id, score=score)
            for token_id, score in zip(token_ids.tolist(), scores.tolist(), strict=True)
        )
        found[row].append(Filling(start=start, end=end, candidates=candidates))
    return [tuple(fillings) for fillings in found]


def _single(text: Text) -> str:
    if isinstance(text, tuple):
        raise UsageError("a pair was given where a single text is taken; see check_texts")
    return text


def _sources(row: EncodedText) -> TokenSources:
    if row.sources is None:
        raise UsageError("the texts were encoded without offsets; call Tokenizer.encode with offsets=True")
    return row.sources

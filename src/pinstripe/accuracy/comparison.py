"""Answers beside answers: how far apart, by the task's own measure."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.accuracy.statistics import cosines, first_percentile, spearman
from pinstripe.errors import UsageError
from pinstripe.models import Answer, Classification, Filling, Span, Task, TokenClassification

__all__ = ["Comparison", "CosineSummary", "compare"]


class CosineSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cosines between two embeddings of each text, -1 to 1.

    Attributes:
        min: The smallest.
        p1: The smallest that at least 1 % of them do not exceed; with up to 100 texts that is the smallest.
        mean: Their mean.
    """

    min: float
    p1: float
    mean: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two sets of answers to the same texts. What does not apply to the task is None.

    Attributes:
        n: Texts, or pairs of texts, that were compared.
        cosine: Of embeddings.
        largest_difference: Largest difference between two numbers in the same place: elements of embeddings, scores of
            a reranker.
        label_agreement: Share of the likeliest labels that are the same, 0 to 1: of texts for classification, of tokens
            for token classification.
        largest_probability_difference: Largest difference between two scores of a class; for token classification,
            between those of the two likeliest labels of a token.
        rank_correlation: Spearman's, between the scores of a reranker; None too where all scores are equal.
        answer_agreement: Share of the answers that are the same, 0 to 1: spans for question answering, the likeliest
            token of each mask for fill-mask.
        answer_f1: Mean F1 of the characters that two spans have in common, 0 to 1, for question answering.
    """

    n: int
    cosine: CosineSummary | None = None
    largest_difference: float | None = None
    label_agreement: float | None = None
    largest_probability_difference: float | None = None
    rank_correlation: float | None = None
    answer_agreement: float | None = None
    answer_f1: float | None = None


def compare(task: Task, reference: Sequence[Answer], candidate: Sequence[Answer]) -> Comparison:
    """Compare the answers to the same texts, which have to be finite numbers.

    Args:
        task: What they are of.
        reference: At least one.
        candidate: As many, in the same order.

    Raises:
        UsageError: No text has a token to compare.
    """
    first, second = cast("Sequence[Any]", reference), cast("Sequence[Any]", candidate)
    match task:
        case "embedding":
            return _embeddings(np.stack(first), np.stack(second))
        case "reranking":
            return _scores(np.array(first, np.float64), np.array(second, np.float64))
        case "classification":
            return _classes(first, second)
        case "token-classification":
            return _tokens(first, second)
        case "question-answering":
            return _spans(first, second)
        case "fill-mask":
            return _fillings(first, second)


def _embeddings(first: NDArray[np.float32], second: NDArray[np.float32]) -> Comparison:
    values = cosines(first, second)
    return Comparison(
        n=len(values),
        cosine=CosineSummary(min=float(values.min()), p1=first_percentile(values), mean=float(values.mean())),
        largest_difference=float(np.abs(first - second).max()),
    )


def _scores(first: NDArray[np.float64], second: NDArray[np.float64]) -> Comparison:
    return Comparison(
        n=len(first),
        largest_difference=float(np.abs(first - second).max()),
        rank_correlation=spearman(first, second),
    )


def _classes(first: Sequence[Classification], second: Sequence[Classification]) -> Comparison:
    both = list(zip(first, second, strict=True))
    return Comparison(
        n=len(both),
        label_agreement=_share([one.label == other.label for one, other in both]),
        largest_probability_difference=max(
            abs(score - other.scores[label]) for one, other in both for label, score in one.scores.items()
        ),
    )


def _tokens(first: Sequence[TokenClassification], second: Sequence[TokenClassification]) -> Comparison:
    both = [
        tokens
        for one, other in zip(first, second, strict=True)
        for tokens in zip(one.tokens, other.tokens, strict=True)
    ]
    return Comparison(
        n=len(first),
        label_agreement=_share([one.label == other.label for one, other in both]),
        largest_probability_difference=max((abs(one.score - other.score) for one, other in both), default=0.0),
    )


def _spans(first: Sequence[Span], second: Sequence[Span]) -> Comparison:
    both = list(zip(first, second, strict=True))
    return Comparison(
        n=len(both),
        answer_agreement=_share([(one.start, one.end) == (other.start, other.end) for one, other in both]),
        answer_f1=float(np.mean([_f1(one, other) for one, other in both])),
    )


def _f1(one: Span, other: Span) -> float:
    lengths = one.end - one.start + other.end - other.start
    common = max(0, min(one.end, other.end) - max(one.start, other.start))
    return 2 * common / lengths if lengths else 1.0


def _fillings(first: Sequence[tuple[Filling, ...]], second: Sequence[tuple[Filling, ...]]) -> Comparison:
    both = [
        (one.candidates[0].token_id, other.candidates[0].token_id)
        for masks in zip(first, second, strict=True)
        for one, other in zip(*masks, strict=True)
    ]
    return Comparison(n=len(first), answer_agreement=_share([one == other for one, other in both]))


def _share(same: Sequence[bool]) -> float:
    """Return the share that is true."""
    if not same:
        raise UsageError("no token was left to compare; give texts whose masks or words the model does not cut off")
    return sum(same) / len(same)

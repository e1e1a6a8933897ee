"""Answers beside answers."""

import numpy as np
import pytest

from pinstripe.accuracy import compare
from pinstripe.models import Candidate, Classification, Entity, Filling, Span, TokenClassification


def _classes(**scores: float) -> Classification:
    best = max(scores, key=lambda label: scores[label])
    return Classification(label=best, score=scores[best], scores=scores)


def _tokens(*labelled: tuple[str, float]) -> TokenClassification:
    tokens = tuple(Entity(label=label, score=score, text="a", start=0, end=1) for label, score in labelled)
    return TokenClassification(tokens=tokens, entities=())


def _span(start: int, end: int) -> Span:
    return Span(text="", score=0.5, start=start, end=end, no_answer=0.0)


def _filling(*token_ids: int) -> Filling:
    candidates = tuple(Candidate(token=str(one), token_id=one, score=0.1) for one in token_ids)
    return Filling(start=0, end=6, candidates=candidates)


def test_embeddings() -> None:
    """Cosines of 1, 0.8 and 0.6, by the triangle of 3, 4 and 5."""
    reference = [np.array([1, 0], np.float32)] * 3
    candidate = [np.array(one, np.float32) for one in ([1, 0], [0.8, 0.6], [0.6, 0.8])]

    found = compare("embedding", reference, candidate)

    assert found.n == 3
    assert found.cosine is not None
    assert (found.cosine.min, found.cosine.p1, found.cosine.mean) == pytest.approx((0.6, 0.6, 0.8))
    assert found.largest_difference == pytest.approx(0.8)
    assert found.label_agreement is None


def test_classes() -> None:
    """One label of two is another; the largest difference is that of any class, not of the best one."""
    reference = [_classes(a=0.5, b=0.3, c=0.2), _classes(a=0.6, b=0.4, c=0.0)]
    candidate = [_classes(a=0.5, b=0.2, c=0.3), _classes(a=0.45, b=0.55, c=0.0)]

    found = compare("classification", reference, candidate)

    assert found.label_agreement == 0.5
    assert found.largest_probability_difference == pytest.approx(0.15)
    assert found.cosine is None


def test_token_classes_count_by_token() -> None:
    """Three of four tokens agree, though one text of two does not."""
    reference = [_tokens(("O", 0.9), ("B-PER", 0.8), ("I-PER", 0.5)), _tokens(("O", 1.0))]
    candidate = [_tokens(("O", 0.9), ("B-PER", 0.6), ("O", 0.4)), _tokens(("O", 1.0))]

    found = compare("token-classification", reference, candidate)

    assert (found.n, found.label_agreement) == (2, 0.75)
    assert found.largest_probability_difference == pytest.approx(0.2)


def test_scores_of_a_reranker() -> None:
    """Only their order counts: d² = 1 + 1 of four ranks makes 1 - 6*2 / (4*15) = 0.8."""
    found = compare("reranking", [0.1, 0.2, 0.3, 0.9], [1.0, 3.0, 2.0, 4.0])

    assert found.rank_correlation == pytest.approx(0.8)
    assert found.largest_difference == pytest.approx(3.1)


def test_equal_scores_have_no_order() -> None:
    """A reranker that says the same of everything has no rank correlation."""
    assert compare("reranking", [0.1, 0.2], [0.5, 0.5]).rank_correlation is None


def test_spans() -> None:
    """Exactly the same counts as agreement; F1 is 2*5 / (10 + 5) where one is half of the other, and 0 apart."""
    reference = [_span(3, 8), _span(0, 10), _span(0, 4), _span(0, 0)]
    candidate = [_span(3, 8), _span(5, 10), _span(6, 9), _span(0, 0)]

    found = compare("question-answering", reference, candidate)

    assert found.answer_agreement == 0.5
    assert found.answer_f1 == pytest.approx((1 + 2 / 3 + 0 + 1) / 4)


def test_fillings_agree_by_their_best() -> None:
    """Of two masks in one text and one in another, one has another best token; later places do not count."""
    reference = [(_filling(1, 2), _filling(3, 4)), (_filling(5, 6),)]
    candidate = [(_filling(1, 9), _filling(4, 3)), (_filling(5, 7),)]

    assert compare("fill-mask", reference, candidate).answer_agreement == pytest.approx(2 / 3)

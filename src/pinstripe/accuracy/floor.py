"""The least accuracy with which a faster engine or precision may be used."""

from typing import Final

import msgspec

from pinstripe.accuracy.comparison import Comparison

__all__ = [
    "LEAST_AGREEMENT",
    "LEAST_COSINE_MEAN",
    "LEAST_COSINE_P1",
    "LEAST_RANK_CORRELATION",
    "MOST_SPEARMAN_LOSS",
    "Verdict",
    "judge",
]

LEAST_COSINE_MEAN: Final = 0.99
LEAST_COSINE_P1: Final = 0.97
MOST_SPEARMAN_LOSS: Final = 0.005
LEAST_AGREEMENT: Final = 0.99
LEAST_RANK_CORRELATION: Final = 0.99


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether the floor holds.

    Attributes:
        passed: Whether it does.
        reasons: What is below it, with the numbers, a sentence each; empty if it holds.
    """

    passed: bool
    reasons: tuple[str, ...]


def judge(
    comparison: Comparison,
    *,
    batch_invariance: Comparison | None = None,
    spearman: float | None = None,
    reference_spearman: float | None = None,
) -> Verdict:
    """Return whether the floor holds: for a comparison, and for a text alone against the same text among others.

    Embeddings need a mean cosine of 0.99 and a 1st percentile of 0.97; where people have rated pairs, it is enough that
    Spearman's correlation with them falls by at most 0.005. Labels and answers have to be the same for 99 %, and the
    scores of a reranker to have a rank correlation of 0.99. What is not a number, or undefined, is below any floor.

    Args:
        comparison: With the reference.
        batch_invariance: Of texts alone with the same texts among others; None if it was not measured. Ratings cannot
            stand in for its cosines.
        spearman: Correlation of the similarities with people's scores.
        reference_spearman: The same of the reference; None if there are no scores.
    """
    reasons = _below(comparison)
    if comparison.cosine is not None and reference_spearman is not None:
        loss = _spearman_loss(spearman, reference_spearman)
        reasons = [*reasons, *loss] if reasons and loss else []
    if batch_invariance is not None:
        reasons += [f"alone and among longer texts: {reason}" for reason in _below(batch_invariance)]
    return Verdict(passed=not reasons, reasons=tuple(reasons))


def _below(comparison: Comparison) -> list[str]:
    if (cosine := comparison.cosine) is not None:
        limbs = [("mean cosine", cosine.mean, LEAST_COSINE_MEAN), ("p1 of cosines", cosine.p1, LEAST_COSINE_P1)]
    elif comparison.label_agreement is not None:
        limbs = [("label agreement", comparison.label_agreement, LEAST_AGREEMENT)]
    elif comparison.answer_agreement is not None:
        limbs = [("answer agreement", comparison.answer_agreement, LEAST_AGREEMENT)]
    elif comparison.rank_correlation is not None:
        limbs = [("rank correlation", comparison.rank_correlation, LEAST_RANK_CORRELATION)]
    else:
        return ["rank correlation is undefined, as all scores are equal"]
    return [f"{name} {value:.5f} is below {least}" for name, value, least in limbs if not value >= least]


def _spearman_loss(spearman: float | None, reference: float) -> list[str]:
    if spearman is None:
        return ["Spearman with people's scores is undefined, as all similarities are equal"]
    if not reference - spearman <= MOST_SPEARMAN_LOSS:
        loss = reference - spearman
        return [f"Spearman with people's scores falls by {loss:.5f}, more than {MOST_SPEARMAN_LOSS}"]
    return []

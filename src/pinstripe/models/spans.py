"""The part of a context that answers a question."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.models.activation import softmax
from pinstripe.models.tokens import TokenSources

__all__ = ["Span", "better_span", "likeliest_span"]


class Span(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a context that answers a question.

    Attributes:
        text: That part, as it stands in the context; empty if there is no context.
        score: Share of its first token in the softmax of the starts, times that of its last token in that of the ends,
            over the context's tokens and the first token of all, which stands for no answer; 0 to 1. Of the best
            window, where a context has several.
        start: Its first character in the context.
        end: The one behind its last.
        no_answer: The same share for no answer, in the window where it is least; a model that was trained with
            questions that have none (SQuAD 2.0) says so where this is larger than `score`.
    """

    text: str
    score: float
    start: int
    end: int
    no_answer: float


def likeliest_span(
    starts: NDArray[np.float32],
    ends: NDArray[np.float32],
    sources: TokenSources,
    context: str,
    most_tokens: int,
) -> Span:
    """Return the likeliest span, as transformers' pipeline found it until version 4 (not widened to whole words).

    Args:
        starts: float32 [tokens or more] logits; padding behind the tokens is not read.
        ends: Likewise.
        sources: Of the question and the context, or a window of it.
        context: The whole context.
        most_tokens: Longest span; at least 1.
    """
    (places,) = np.nonzero(sources.sequences == 1)
    if not len(places):
        return Span(text="", score=0.0, start=0, end=0, no_answer=1.0)
    judged = np.concatenate(([0], places))
    first_shares, last_shares = softmax(starts[judged]), softmax(ends[judged])
    # The context's tokens lie side by side, so that distances in this square are distances in tokens.
    scores = np.tril(np.triu(np.outer(first_shares[1:], last_shares[1:])), most_tokens - 1)
    first, last = np.unravel_index(scores.argmax(), scores.shape)
    start, end = int(sources.offsets[places[first], 0]), int(sources.offsets[places[last], 1])
    return Span(
        text=context[start:end],
        score=float(scores[first, last]),
        start=start,
        end=end,
        no_answer=float(first_shares[0] * last_shares[0]),
    )


def better_span(one: Span, other: Span) -> Span:
    """Return the answer of two windows of one context: the span with the higher score."""
    best = other if other.score > one.score else one
    return msgspec.structs.replace(best, no_answer=min(one.no_answer, other.no_answer))

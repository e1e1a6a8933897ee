"""Labelled tokens to entities."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.models.network import Aggregation

__all__ = ["Entity", "group_entities", "join_words"]


class Entity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a text with a label: a token, or several.

    Attributes:
        label: Its label; of grouped tokens, what follows the first `-` of it, if there is one.
        score: Softmax over the labels, 0 to 1; of several tokens, their mean.
        text: That part, as it stands in the text.
        start: Its first character in the text.
        end: The one behind its last.
    """

    label: str
    score: float
    text: str
    start: int
    end: int


def group_entities(text: str, tokens: Sequence[Entity]) -> tuple[Entity, ...]:
    """Return neighbouring tokens of one kind as one entity; those labelled `O` belong to none.

    A token goes on with the entity before it if both labels are the same but for a prefix `B-` or `I-`, and its own is
    not `B-`: what transformers calls the aggregation strategy `simple`.

    Args:
        text: What the tokens are of.
        tokens: All tokens, in order.
    """
    groups: list[list[Entity]] = []
    for token in tokens:
        kind = _kind(token.label)
        if groups and not token.label.startswith("B-") and _kind(groups[-1][-1].label) == kind:
            groups[-1].append(token)
        else:
            groups.append([token])
    entities = (_joined(text, group) for group in groups)
    return tuple(entity for entity in entities if entity.label != "O")


def join_words(
    text: str,
    tokens: Sequence[Entity],
    *,
    scores: NDArray[np.float32],
    inner: Sequence[bool],
    labels: Sequence[str],
    strategy: Aggregation,
) -> tuple[Entity, ...]:
    """Return the tokens of each word as one, so that no word has two labels.

    Args:
        text: What the tokens are of.
        tokens: All tokens, in order.
        scores: float32 [tokens, labels], the softmax of each token.
        inner: Of each token, whether it goes on with the word of the token before.
        labels: Names of the labels.
        strategy: `first` takes the scores of a word's first token, `max` those of the token with the highest score,
            `average` the mean of all.
    """
    begins = [number for number, goes_on in enumerate(inner) if number == 0 or not goes_on]
    words = []
    for first, stop in zip(begins, [*begins[1:], len(tokens)], strict=True):
        judged = _of_a_word(scores[first:stop], strategy)
        best = int(judged.argmax())
        start, end = tokens[first].start, tokens[stop - 1].end
        words.append(Entity(label=labels[best], score=float(judged[best]), text=text[start:end], start=start, end=end))
    return tuple(words)


def _of_a_word(scores: NDArray[np.float32], strategy: Aggregation) -> NDArray[np.float32]:
    if strategy == "average":
        mean: NDArray[np.float32] = scores.mean(axis=0)
        return mean
    chosen: NDArray[np.float32] = scores[scores.max(axis=1).argmax() if strategy == "max" else 0]
    return chosen


def _kind(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label


def _joined(text: str, group: list[Entity]) -> Entity:
    start, end = group[0].start, group[-1].end
    return Entity(
        label=group[0].label.split("-", 1)[-1],
        score=sum(token.score for token in group) / len(group),
        text=text[start:end],
        start=start,
        end=end,
    )

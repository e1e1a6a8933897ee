"""Labelled tokens to entities."""

from collections.abc import Sequence

import msgspec

__all__ = ["Entity", "group_entities"]


class Entity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a text with a label: a token, or several.

    Attributes:
        label: Its label; of grouped tokens, without the prefix `B-` or `I-`.
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
    return tuple(_joined(text, group) for group in groups if group[0].label != "O")


def _kind(label: str) -> str:
    return label[2:] if label.startswith(("B-", "I-")) else label


def _joined(text: str, group: list[Entity]) -> Entity:
    start, end = group[0].start, group[-1].end
    return Entity(
        label=_kind(group[0].label),
        score=sum(token.score for token in group) / len(group),
        text=text[start:end],
        start=start,
        end=end,
    )

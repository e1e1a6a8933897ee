"""Whether a text's answer depends on its neighbours in the batch."""

from collections.abc import Sequence
from itertools import cycle
from typing import Final

from pinstripe.accuracy.comparison import Comparison, compare
from pinstripe.accuracy.running import OnProgress, Progress, predict
from pinstripe.api import AsyncModel
from pinstripe.models import Answer, Text

__all__ = ["measure_invariance"]

_SUBJECTS: Final = 96
_SUBJECTS_A_BATCH: Final = 14
_NEIGHBOUR_CHARACTERS: Final = 2000
"""Some 400 tokens of English, where most texts have 10 to 100; the model's limit cuts it."""


async def measure_invariance(model: AsyncModel, texts: Sequence[Text], on_progress: OnProgress) -> Comparison:
    """Compare answers to texts that run alone with those to the same texts, padded beside two much longer ones.

    Up to 96 texts are taken, evenly spread over all lengths; up to 14 share a batch.

    Args:
        model: Open, with the batching `ONE_BATCH`.
        texts: At least one.
        on_progress: Called after each batch.

    Raises:
        WorkerError: A batch could not be run, or gave something that is not a finite number.
    """
    by_length = sorted(texts, key=lambda text: len("".join(text)))
    count = min(len(texts), _SUBJECTS)
    subjects = [by_length[number * len(texts) // count] for number in range(count)]
    neighbours = [_long_text(texts), _long_text(texts[::-1])]
    alone: list[Answer] = []
    padded: list[Answer] = []
    for start in range(0, count, _SUBJECTS_A_BATCH):
        group = subjects[start : start + _SUBJECTS_A_BATCH]
        for subject in group:
            alone += await predict(model, [subject])
        padded += (await predict(model, [*group, *neighbours]))[: len(group)]
        on_progress(Progress("texts alone and among longer ones", len(padded), count))
    return compare(model.network.task, alone, padded)


def _long_text(texts: Sequence[Text]) -> Text:
    """Return texts joined to a long one; of pairs, the first of the first and all second ones."""
    parts: list[str] = []
    for text in cycle(texts):
        parts.append(text if isinstance(text, str) else text[1])
        if sum(map(len, parts)) > _NEIGHBOUR_CHARACTERS:
            break
    joined = " ".join(parts)
    return joined if isinstance(texts[0], str) else (texts[0][0], joined)

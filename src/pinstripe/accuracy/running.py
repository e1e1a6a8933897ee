"""Running a model over texts, a batch at a time."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from pinstripe.api import AsyncModel
from pinstripe.configuration import BatchRule
from pinstripe.engines import EngineReport
from pinstripe.errors import WorkerError
from pinstripe.models import Answer, Classification, Span, Text, TokenClassification

__all__ = ["ONE_BATCH", "OnProgress", "Progress", "count_cut", "ignore", "predict", "predict_all", "read_report"]

ONE_BATCH: Final = BatchRule(order="arrival")
"""Makes one batch of what `predict` gets, so that it is known which texts are neighbours."""
_BATCH_TEXTS: Final = 16


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a measurement is.

    Attributes:
        what: What is running, in a few words.
        done: Texts it is done with.
        total: Texts it has in all.
    """

    what: str
    done: int
    total: int


OnProgress: TypeAlias = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Show nothing."""


async def predict_all(model: AsyncModel, texts: Sequence[Text], what: str, on_progress: OnProgress) -> list[Answer]:
    """Return the answers to texts, run in batches of near-equal length as `embed` does.

    Args:
        model: Open, with the batching `ONE_BATCH`.
        texts: At least one.
        what: For `on_progress`.
        on_progress: Called after each batch.

    Raises:
        WorkerError: A batch could not be run, or gave something that is not a finite number.
    """
    order = sorted(range(len(texts)), key=lambda index: len("".join(texts[index])), reverse=True)
    answers: dict[int, Answer] = {}
    for start in range(0, len(order), _BATCH_TEXTS):
        batch = order[start : start + _BATCH_TEXTS]
        answers |= zip(batch, await predict(model, [texts[index] for index in batch]), strict=True)
        on_progress(Progress(what, len(answers), len(texts)))
    return [answers[index] for index in range(len(texts))]


async def predict(model: AsyncModel, texts: Sequence[Text]) -> list[Answer]:
    """Return the answers to texts, run as one batch.

    Raises:
        WorkerError: It could not be run, or gave something that is not a finite number.
    """
    answers = await model.predict(texts)
    for text, answer in zip(texts, answers, strict=True):
        if not all(np.isfinite(number).all() for number in _numbers(answer)):
            ran = model.configuration
            raise WorkerError(
                f"{ran.engine} {ran.precision} gives values that are no finite numbers, such as for the text "
                f"{_shortened(text)!r}; do not use it for this model"
            )
    return answers


async def count_cut(model: AsyncModel, texts: Sequence[Text]) -> int:
    """Return how many texts have more tokens than the model takes, so that it sees only their begin."""
    batches = await asyncio.to_thread(model.batch_texts, texts)
    rows = [row for batch in batches for row in zip(batch.indices.tolist(), batch.rows, strict=True)]
    return len({index for index, row in rows if row.cut})


async def read_report(model: AsyncModel) -> EngineReport:
    """Return what the engine says of itself, once it is known that all that was asked for is in effect.

    Raises:
        WorkerError: It does not, or ended meanwhile.
    """
    evidence = await model.evidence()
    if problems := [problem for one in evidence for problem in one.problems]:
        raise WorkerError(f"what was asked did not take effect: {'; '.join(problems)}")
    report = evidence[0].engine
    if report.precision != model.configuration.precision:
        raise WorkerError(
            f"{report.engine} computes in {report.precision}, not in {model.configuration.precision} as asked; "
            "choose another precision or engine"
        )
    return report


def _numbers(answer: Answer) -> Iterable[Any]:
    """Yield what has to be finite of an answer."""
    match answer:
        case Classification():
            yield list(answer.scores.values())
        case TokenClassification():
            yield [token.score for token in answer.tokens]
        case Span():
            yield [answer.score, answer.no_answer]
        case tuple():
            for filling in answer:
                yield [candidate.score for candidate in filling.candidates]
        case _:
            yield answer


def _shortened(text: Text) -> str:
    words = text if isinstance(text, str) else text[0]
    return words if len(words) <= 60 else f"{words[:59]}…"  # noqa: PLR2004 - enough to find it

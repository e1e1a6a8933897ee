"""Some lines of a file of texts, worked on together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.api import TextBatch
from pinstripe.bulk.job import BulkJob
from pinstripe.bulk.journal import Checkpoint, SkippedLine
from pinstripe.bulk.prefix import prefix_digest
from pinstripe.bulk.rows import Rows
from pinstripe.bulk.survey import characters, fault
from pinstripe.errors import TextError
from pinstripe.models import Answer, Task, Text, better_answer
from pinstripe.texts import BadLine, TextLine

__all__ = ["Chunk", "ChunkBatch", "read_chunks"]

_LEAST_TEXTS: Final = 2048
"""Enough that each text finds company of near-equal length; what is lost when the process is killed is a few chunks."""
_TEXTS_AN_INSTANCE: Final = 256
"""Where there are many instances, the chunks in memory have to hold batches for all of them."""
_MOST_CHARACTERS: Final = 8 << 20


@dataclass(slots=True, eq=False)
class Chunk:
    """Texts that follow each other, with their results as these come in.

    Attributes:
        number: Which chunk, from 0.
        lines: The lines that hold the texts.
        checkpoint: Where the work stands when this chunk is written, but for the rows.
        last: Whether the file ends with it.
        missing: Results that are still to come: one a text, or for a long context one for each of its windows.
        vectors: float32 [texts, width], results of one width; None before the first, and for others.
        answers: Results of any other kind, by text.
    """

    number: int
    lines: list[TextLine]
    checkpoint: Checkpoint
    last: bool
    missing: int = field(init=False)
    vectors: NDArray[np.float32] | None = None
    answers: dict[int, Answer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.missing = len(self.lines)

    @property
    def texts(self) -> list[Text]:
        """Its texts."""
        return [line.text for line in self.lines]

    def keep_vectors(self, indices: NDArray[np.intp], part: NDArray[np.float32]) -> None:
        """Note results of some of its texts, [texts, width]."""
        if self.vectors is None:
            self.vectors = np.empty((len(self.lines), part.shape[1]), dtype=np.float32)
        self.vectors[indices] = part
        self.missing -= len(indices)

    def keep_answers(self, indices: NDArray[np.intp], answers: list[Answer]) -> None:
        """Note results of some of its texts."""
        for index, answer in zip(indices.tolist(), answers, strict=True):
            self.answers[index] = better_answer(self.answers.get(index), answer)
        self.missing -= len(indices)

    def leave_out(self, index: int, reason: str) -> None:
        """Skip one of its texts, which the tokenizer refused."""
        line = self.lines.pop(index)
        skipped = (*self.checkpoint.skipped, SkippedLine(line=line.number, reason=reason))
        self.checkpoint = msgspec.structs.replace(self.checkpoint, skipped=skipped)

    def rows(self) -> Rows:
        """Return all results, in the order of the texts."""
        answers = [self.answers[index] for index in sorted(self.answers)]
        return Rows([line.number for line in self.lines], [line.id for line in self.lines], self.vectors, answers)


@dataclass(frozen=True, slots=True)
class ChunkBatch(TextBatch):
    """A batch of texts of a chunk."""

    chunk: Chunk


def read_chunks(job: BulkJob, task: Task, instances: int, start: Checkpoint, size_bytes: int) -> Iterator[Chunk]:
    """Yield the file's texts from a checkpoint on.

    Args:
        job: What to read.
        task: The model's.
        instances: Number of instances that will work on them.
        start: Where to begin.
        size_bytes: Where to end: the size that the file had when it was surveyed.

    Raises:
        TextError: The file cannot be read, has changed since, or a line is bad and to be refused.
    """
    most_texts = max(_LEAST_TEXTS, _TEXTS_AN_INSTANCE * instances)
    with job.file.open() as file, job.source.open("rb") as raw:
        file.seek(start.offset)
        raw.seek(start.offset)
        digest = prefix_digest(job.source, start.offset)
        lines = job.file.lines(file, number=start.line)
        done = start
        for number in count():
            if done.offset >= size_bytes:
                return
            part = _gather(job, task, lines, most_texts, size_bytes)
            if part.last is None or part.last.end > size_bytes:
                raise TextError(f"{job.source} has changed while it was read; what was done before is kept")
            digest.update(raw.read(part.last.end - done.offset))
            done = Checkpoint(
                line=part.last.number + 1,
                offset=part.last.end,
                digest=digest.hexdigest(),
                characters=done.characters + part.characters,
                skipped=tuple(part.skipped),
            )
            yield Chunk(number, part.lines, done, last=done.offset >= size_bytes)


@dataclass(slots=True)
class _Part:
    lines: list[TextLine] = field(default_factory=list)
    skipped: list[SkippedLine] = field(default_factory=list)
    characters: int = 0
    last: TextLine | BadLine | None = None


def _gather(job: BulkJob, task: Task, lines: Iterator[TextLine | BadLine], most_texts: int, size_bytes: int) -> _Part:
    """Take lines until there are enough for a chunk, or the file's end is reached."""
    part = _Part()
    for line in lines:
        part.last = line
        if (reason := fault(line, task)) is not None:
            if job.bad_lines == "refuse":
                raise TextError(f"line {line.number} of {job.source} is bad: {reason}; mend it, or skip bad lines")
            part.skipped.append(SkippedLine(line=line.number, reason=reason))
        elif isinstance(line, TextLine):
            part.lines.append(line)
            part.characters += characters(line.text)
        is_full = max(len(part.lines), len(part.skipped)) >= most_texts or part.characters >= _MOST_CHARACTERS
        if is_full or line.end >= size_bytes:
            break
    return part

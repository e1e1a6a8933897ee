"""Some lines of a file of texts, worked on together."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.api import TextBatch
from pinstripe.bulk.job import BulkJob, characters
from pinstripe.bulk.journal import Checkpoint, SkippedLine
from pinstripe.bulk.prefix import prefix_digest
from pinstripe.bulk.rows import Rows
from pinstripe.errors import TextError, UsageError
from pinstripe.models import Answer, Task, Text, check_texts
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
        missing: Texts without a result.
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
        self.answers.update(zip(indices.tolist(), answers, strict=True))
        self.missing -= len(indices)

    def rows(self) -> Rows:
        """Return all results, in the order of the texts."""
        answers = [self.answers[index] for index in sorted(self.answers)]
        return Rows([line.number for line in self.lines], [line.id for line in self.lines], self.vectors, answers)


@dataclass(frozen=True, slots=True)
class ChunkBatch(TextBatch):
    """A batch of texts of a chunk."""

    chunk: Chunk


def read_chunks(job: BulkJob, task: Task, instances: int, start: Checkpoint) -> Iterator[Chunk]:
    """Yield the file's texts from a checkpoint on.

    Args:
        job: What to read.
        task: The model's.
        instances: Number of instances that will work on them.
        start: Where to begin.

    Raises:
        TextError: The file cannot be read, or a line is bad and to be refused.
    """
    with job.file.open() as file, job.source.open("rb") as raw:
        file.seek(start.offset)
        raw.seek(start.offset)
        digest = prefix_digest(job.source, start.offset)
        lines: list[TextLine] = []
        skipped: list[SkippedLine] = []
        number, size, total = 0, 0, start.characters
        most_texts = max(_LEAST_TEXTS, _TEXTS_AN_INSTANCE * instances)

        def chunk(line: TextLine | BadLine) -> Chunk:
            digest.update(raw.read(line.end - raw.tell()))
            checkpoint = Checkpoint(
                line=line.number + 1,
                offset=line.end,
                digest=digest.hexdigest(),
                characters=total,
                skipped=tuple(skipped),
            )
            return Chunk(number, lines, checkpoint, last=line.end >= os.fstat(raw.fileno()).st_size)

        line = None
        for line in job.file.lines(file, number=start.line):
            if (reason := _fault(line, task)) is not None:
                if job.bad_lines == "refuse":
                    raise TextError(f"line {line.number} of {job.source} is bad: {reason}; mend it, or skip bad lines")
                skipped.append(SkippedLine(line=line.number, reason=reason))
            elif isinstance(line, TextLine):
                lines.append(line)
                size += characters(line.text)
                total += characters(line.text)
            if len(lines) >= most_texts or size >= _MOST_CHARACTERS or len(skipped) >= most_texts:
                yield chunk(line)
                number, size, lines, skipped = number + 1, 0, [], []
        if line is not None and (lines or skipped):
            yield chunk(line)


def _fault(line: TextLine | BadLine, task: Task) -> str | None:
    if isinstance(line, BadLine):
        return line.reason
    try:
        check_texts(task, [line.text])
    except UsageError as error:
        return str(error).replace("text 0", "it")
    return None

"""A first look at a file of texts: what is in it, and what is wrong with it."""

import threading
from dataclasses import dataclass
from typing import Final

from pinstripe.bulk.job import BulkJob
from pinstripe.errors import TextError, UsageError
from pinstripe.models import Task, Text, check_texts
from pinstripe.texts import BadLine, TextLine

__all__ = ["Survey", "characters", "fault", "survey_texts"]

_NAMED: Final = 3
"""Bad lines that a message names."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What is in a file of texts.

    Attributes:
        texts: Lines that hold a text.
        characters: Characters of all texts.
        size_bytes: Size of the file; what is appended later is not read.
    """

    texts: int
    characters: int
    size_bytes: int


def survey_texts(job: BulkJob, task: Task, stop: threading.Event) -> Survey:
    """Read through the file once, some microseconds a line, so that what is wrong is known before hours of work.

    Args:
        job: Which file, and what to do with bad lines.
        task: The model's.
        stop: Set by whoever does not wait for the answer any more.

    Raises:
        TextError: The file cannot be read or holds no text, or lines are bad and to be refused; the message names them.
    """
    texts = count = bad_count = end = 0
    bad: list[str] = []
    with job.file.open() as file:
        for line in job.file.lines(file):
            end = line.end
            if (reason := fault(line, task)) is not None:
                bad_count += 1
                if len(bad) < _NAMED:
                    bad.append(f"line {line.number}: {reason}")
            elif isinstance(line, TextLine):
                texts += 1
                count += characters(line.text)
            if stop.is_set():
                break
    if bad_count and job.bad_lines == "refuse":
        more = f"; and {bad_count - len(bad)} more" if bad_count > len(bad) else ""
        lines = f"{bad_count} bad line{'' if bad_count == 1 else 's'}"
        raise TextError(f"{job.source} has {lines} ({'; '.join(bad)}{more}); mend them, or use --bad-lines skip")
    if not texts:
        raise TextError(f"{job.source} holds no text; write one on each line")
    return Survey(texts, count, end)


def fault(line: TextLine | BadLine, task: Task) -> str | None:
    """Return what is wrong with a line for a model of a task; None if nothing is."""
    if isinstance(line, BadLine):
        return line.reason
    try:
        check_texts(task, [line.text])
    except UsageError as error:
        return str(error).replace("text 0", "it")
    return None


def characters(text: Text) -> int:
    """Return the number of characters of a text or pair."""
    return len(text) if isinstance(text, str) else sum(map(len, text))

"""What to do with a file of texts, and a first look at the file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pinstripe.errors import TextError
from pinstripe.texts import BadLine, TextFile

__all__ = ["BadLines", "BulkJob", "Survey", "characters", "survey"]

BadLines = Literal["refuse", "skip"]

_NAMED: Final = 3
"""Bad lines that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkJob:
    """A file of texts, and where the results go.

    Attributes:
        source: The file of texts; see `TextFile`.
        output: The file to make; its suffix says the format.
        field: Name of the field that holds the text.
        prompt: Name of the model's prompt; None for its default.
        bad_lines: `refuse` the file for any line that holds no text, or `skip` such lines.
        force: Whether an output that exists is replaced, and unfinished work for something else thrown away.
    """

    source: Path
    output: Path
    field: str = "text"
    prompt: str | None = None
    bad_lines: BadLines = "refuse"
    force: bool = False

    @property
    def file(self) -> TextFile:
        """The file of texts."""
        return TextFile(self.source, field=self.field)


@dataclass(frozen=True, slots=True)
class Survey:
    """What is in a file of texts.

    Attributes:
        texts: Lines that hold a text.
        bad: Lines that do not.
        characters: Characters of all texts.
    """

    texts: int
    bad: int
    characters: int


def survey(job: BulkJob) -> Survey:
    """Read through the file once, some microseconds a line, so that what is wrong is known before hours of work.

    Raises:
        TextError: The file cannot be read or holds no text, or lines are bad and to be refused; the message names them.
    """
    texts = count = 0
    bad: list[BadLine] = []
    bad_count = 0
    with job.file.open() as file:
        for line in job.file.lines(file):
            if isinstance(line, BadLine):
                bad_count += 1
                if len(bad) < _NAMED:
                    bad.append(line)
            else:
                texts += 1
                count += characters(line.text)
    if bad_count and job.bad_lines == "refuse":
        named = "; ".join(f"line {line.number}: {line.reason}" for line in bad)
        more = f"; and {bad_count - len(bad)} more" if bad_count > len(bad) else ""
        raise TextError(f"{job.source} has {bad_count} bad lines ({named}{more}); mend them, or use --bad-lines skip")
    if not texts:
        raise TextError(f"{job.source} holds no text; write one on each line")
    return Survey(texts, bad_count, count)


def characters(text: str | tuple[str, str]) -> int:
    """Return the number of characters of a text or pair."""
    return len(text) if isinstance(text, str) else sum(map(len, text))

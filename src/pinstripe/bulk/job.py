"""What to do with a file of texts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pinstripe.texts import TextFile

__all__ = ["BadLines", "BulkJob"]

BadLines = Literal["refuse", "skip"]


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

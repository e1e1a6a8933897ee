"""Going on with a run that was interrupted."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from pinstripe import __version__
from pinstripe.bench.record import Record
from pinstripe.bench.run import Session
from pinstripe.configuration import TextSet, Workload
from pinstripe.errors import UsageError

__all__ = ["check_resumable"]

_NAMES_OF_A_MODEL: Final = frozenset({"name", "directory", "revision"})
"""Where a model came from may change; what it is may not."""
_MOST_SHOWN: Final = 60
_DIGITS_SHOWN: Final = 8


def check_resumable(records: Sequence[Record], session: Session, workloads: Sequence[Workload], path: Path) -> None:
    """Check that new measurements may be pooled and compared with those of a file.

    A measurement that failed is a result and stays one; who wants it repeated begins a new run. What goes on has rounds
    of its own: at most one pair of a comparison has one half from before the interruption and one from after it.

    Args:
        records: What the file holds.
        session: What all new records will share.
        workloads: What will be asked; a file of texts may have another name, but not other texts.
        path: The file, for messages.

    Raises:
        UsageError: The file holds several runs, or was measured with another model, machine, software, texts or limits.
    """
    runs = len({record.run for record in records})
    if runs > 1:
        raise UsageError(f"{path} holds {runs} runs, of which none can be told to go on; begin a new file")
    if records and session.peak != (records[0].peak is not None):
        given = "with" if records[0].peak else "without"
        raise UsageError(f"{path} was measured {given} --peak; go on {given} it, or begin a new file")
    texts = next((workload.texts for workload in workloads if workload.texts), None)
    for record in records:
        for what, change in _changes(record, session, texts):
            raise UsageError(
                f"{path} cannot be resumed: {what} changed since ({change}), so that old and new measurements "
                "could not be compared; begin a new file"
            )


def _changes(record: Record, session: Session, texts: TextSet | None) -> Iterator[tuple[str, str]]:
    """Yield what differs, and how."""
    if record.pinstripe != __version__:
        yield "pinstripe", f"{record.pinstripe}, now {__version__}"
    measured = record.workload.texts
    if measured and texts and measured.sha256 != texts.sha256:
        yield "the texts", f"{_named(measured)}, now {_named(texts)}"
    pairs = (
        ("the model", record.network, session.network),
        ("the machine", record.machine, session.machine),
        ("the software", record.host, session.host),
        ("how long is measured", record.limits, session.limits),
    )
    for what, then, now in pairs:
        for field in then.__struct_fields__:
            if not (what == "the model" and field in _NAMES_OF_A_MODEL):
                yield from ((what, change) for change in _change(field, getattr(then, field), getattr(now, field)))


def _named(texts: TextSet) -> str:
    return f"{texts.texts} of {texts.file} with SHA-256 {texts.sha256[:_DIGITS_SHOWN]}"


def _change(name: str, then: Any, now: Any) -> Iterator[str]:
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted(then.keys() | now.keys()):
            yield from _change(f"{name}: {key}", then.get(key), now.get(key))
    elif then != now:
        yield f"{name} {_shown(then)}, now {_shown(now)}"


def _shown(value: Any) -> str:
    text = str(msgspec.to_builtins(value))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"

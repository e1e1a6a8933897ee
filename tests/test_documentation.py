"""What the documents promise can be followed."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.main import get_command

from pinstripe.bench import Record, Result, Trial
from pinstripe.bench.noise import NoiseFloor
from pinstripe.cli.main import app
from pinstripe.configuration import Plan
from pinstripe.diagnosis import Finding, Observations
from pinstripe.load import LoadReport, Peak
from pinstripe.placement import Placement
from pinstripe.runtime import GroupResult

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
REFERENCE = (ROOT / "docs" / "reference.md").read_text()
COMMANDS: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
# What is printed under names of their own, and named in the reference by the words around them.
FIELDS = (Record, Trial, Result, Observations, Finding, NoiseFloor, Placement, GroupResult, Plan, LoadReport, Peak)


def _anchors(document: Path) -> set[str]:
    """Return the headings' anchors, by GitHub's rule."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _structs(struct: type[msgspec.Struct]) -> set[type[msgspec.Struct]]:
    """Return a struct with all that are in its fields, however deep."""
    found: set[type[msgspec.Struct]] = set()
    waiting: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(struct)]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, msgspec.inspect.StructType) and kind.cls not in found:
            found.add(kind.cls)
            waiting += [field.type for field in kind.fields]
        for name in ("item_type", "item_types", "types", "key_type", "value_type"):
            inner = getattr(kind, name, ())
            waiting += inner if isinstance(inner, tuple) else [inner]
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link names a file, and a heading in it, that exist."""
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name) if name else document

        assert path.exists(), target
        assert not anchor or anchor in _anchors(path), target


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_is_in_the_reference(command: str) -> None:
    """A command has its section, and each option its line there, short names included."""
    section = REFERENCE.partition(f"### `pinstripe {command}`\n")[2].partition("\n##")[0]
    names = [name for one in COMMANDS[command].params for name in one.opts if name.startswith("-")]

    assert section
    assert [name for name in names if not re.search(rf"`{name}[ `]", section)] == []


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_no_option_is_in_the_reference_that_does_not_exist(command: str) -> None:
    """An option that has gone, goes from its command's table too."""
    section = REFERENCE.partition(f"### `pinstripe {command}`\n")[2].partition("\n##")[0]
    rows = re.findall(r"^\| (`-.*?`) \|", section, re.MULTILINE)
    written = {name for row in rows for name in re.findall(r"`(--?[\w-]+)", row)}
    names = {name for one in COMMANDS[command].params for name in (*one.opts, *one.secondary_opts)}

    assert written <= names


@pytest.mark.parametrize("struct", FIELDS, ids=lambda struct: struct.__name__)
def test_every_field_of_what_is_written_is_in_the_reference(struct: type[msgspec.Struct]) -> None:
    """Who reads records or JSON finds each field in code font, at whatever depth it lies."""
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`[^`\n]+`", REFERENCE))))
    missing = {
        f"{one.__name__}.{name}" for one in _structs(struct) for name in one.__struct_fields__ if name not in words
    }

    assert missing == set()


def test_decisions_are_numbered_without_gaps() -> None:
    """A decision is found by its number."""
    numbers = [int(path.name[:3]) for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))]

    assert numbers[0] == 1
    assert all(later == earlier + 1 for earlier, later in pairwise(numbers))

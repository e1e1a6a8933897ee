"""What the documents promise can be followed."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _anchors(document: Path) -> set[str]:
    """Return the headings' anchors, by GitHub's rule."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


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


def test_every_option_of_bench_is_in_the_reference() -> None:
    """A new option has its line in the reference."""
    reference = (ROOT / "docs" / "reference.md").read_text()
    source = (ROOT / "src" / "pinstripe" / "cli" / "bench.py").read_text()
    names = re.findall(r"^    (\w+): (?:Annotated|\w+Option|Reserve|Bind)", source, re.MULTILINE)

    assert len(names) > 20
    assert [name for name in names if name != "model" and f"`--{name.replace('_', '-')}" not in reference] == []

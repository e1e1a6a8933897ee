"""Groups of instances in one line."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.cli.group_options import read_alternatives, read_groups
from pinstripe.configuration import InstanceGroup
from pinstripe.errors import UsageError
from pinstripe.testing.machines import c5_metal
from pinstripe.testing.trees import write_tree

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TIMES = "\N{MULTIPLICATION SIGN}"
SMALL = InstanceGroup(instances=2, cores=1, max_tokens=32)
MIDDLE = InstanceGroup(instances=1, cores=4, max_tokens=128)
LARGE = InstanceGroup(instances=1, cores=8)


@pytest.mark.parametrize(
    "text",
    [
        "<=32: 2x1, <=128: 1x4, rest: 1x8",
        f"≤32: 2{TIMES}1, ≤128: 1{TIMES}4, rest: 1{TIMES}8",
        "<=32:2x1,33-128:1x4,>128:1x8",
        "1-32: 2x1, 33 - 128: 1 x 4, > 128: 1x8",
        " <= 32 : 2x1 ,≤ 128:1x4,  rest:1x8 ",
    ],
)
def test_forms_of_the_same_groups(text: str) -> None:
    """ASCII or not, ends or ranges, with spaces or without."""
    assert read_groups(text) == (SMALL, MIDDLE, LARGE)


def test_one_group_of_all_lengths() -> None:
    """The rest may be everything."""
    assert read_groups("rest: 1x8") == read_groups(">0: 1x8") == (LARGE,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<=32: 2x1, 64-128: 1x4, rest: 1x8", "lengths 33 to 63 belong to no group"),
        ("<=32: 2x1, 34-128: 1x4, rest: 1x8", "length 33 belongs to no group"),
        ("<=32: 2x1, >64: 1x8", "lengths 33 to 64 belong to no group"),
        ("33-128: 1x4, rest: 1x8", "lengths 1 to 32 belong to no group"),
        ("<=32: 2x1, 20-128: 1x4, rest: 1x8", "lengths 20 to 32 belong to 20-128 and to a group before it"),
        ("<=32: 2x1, 10-20: 1x4, rest: 1x8", "lengths 10 to 20 belong to 10-20 and to a group before it"),
        ("<=32: 2x1, >20: 1x8", "lengths 21 to 32 belong to >20 and to a group before it"),
        ("<=32: 2x1, <=128: 1x4", "lengths above 128 belong to no group; end with one for the rest"),
        ("<=128: 1x4, <=32: 2x1, rest: 1x8", "no length is left for <=32: lengths 1 to 128 belong to groups before it"),
        ("<=32: 2x1, <=32: 1x4, rest: 1x8", "no length is left for <=32: lengths 1 to 32 belong"),
        ("rest: 1x8, <=32: 2x1", "no length is left for <=32: all lengths belong to groups before it"),
        ("<=32: 2x1, rest: 1x4, rest: 1x8", "no length is left for rest: all lengths belong"),
        ("128-33: 1x4, rest: 1x8", "128-33 is no range of lengths"),
        ("0-3: 1x4, rest: 1x8", "0-3 is no range of lengths; they begin at 1"),
        ("<=0: 1x4, rest: 1x8", "no length is left for <=0"),
        ("<=32: 0x1, rest: 1x8", "group 1 has 0x1"),
        ("<=32: 1x0, rest: 1x8", "group 1 has 1x0"),
        ("", "'' is not understood; write such as"),
        ("<=32: 2x1,", "'' is not understood"),
        ("2x1", "'2x1' is not understood"),
        ("<=32", "'<=32' is not understood"),
        ("<=32: 2", "'<=32: 2' is not understood"),
        ("<32: 2x1, rest: 1x1", "'<32: 2x1' is not understood"),
        ("<=32: 2x1x1, rest: 1x1", "'<=32: 2x1x1' is not understood"),
        ("<=٣: 1x1, rest: 1x1", "is not understood"),
        ("<=-3: 1x1, rest: 1x1", "is not understood"),
        (f"<={'9' * 5000}: 1x1, rest: 1x1", "is not understood"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    """Gaps, overlaps, a wrong order and slips: one line that names the lengths concerned."""
    with pytest.raises(UsageError) as caught:
        read_groups(text)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_alternatives() -> None:
    """Semicolons separate what a grid measures one after the other."""
    assert read_alternatives("<=32: 2x1, <=128: 1x4, rest: 1x8; rest: 1x8") == [(SMALL, MIDDLE, LARGE), (LARGE,)]
    with pytest.raises(UsageError, match="names the same groups twice"):
        read_alternatives("rest: 1x8; >0: 1x8")
    with pytest.raises(UsageError, match="'' is not understood"):
        read_alternatives("rest: 1x8;")


@given(st.text(alphabet=f"<=≤>-:;, x{TIMES}rest0123456789", max_size=40))
def test_any_line_is_read_or_refused(text: str) -> None:
    """Whatever is written ends in groups whose last is open, or in one line."""
    last: int | None = None
    with suppress(UsageError):
        last = read_groups(text)[-1].max_tokens

    assert last is None


def test_places_of_groups(pinstripe: Run, tmp_path: Path) -> None:
    """`place` shows where the instances of groups would be: here two of 12 cores and one that has a node to itself."""
    write_tree(c5_metal(), tmp_path / "copy")
    shown = pinstripe("place", "--root", str(tmp_path / "copy"), "--groups", "<=32: 2x12, rest: 1x24")
    assert shown.stdout.splitlines() == [
        "instance 0: CPUs 24-35, memory from node 1",
        "instance 1: CPUs 36-47, memory from node 1",
        "instance 2: CPUs 0-23, memory from node 0",
    ]


def test_places_of_groups_and_equal_instances(pinstripe: Run) -> None:
    """They exclude each other, and that is said."""
    refused = pinstripe("place", "--groups", "rest: 1x1", "--instances", "1")
    assert refused.returncode == 2
    assert "leave out --instances" in refused.stderr

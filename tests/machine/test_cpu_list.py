"""CPU lists and masks as text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinstripe.errors import MachineError
from pinstripe.machine import format_cpu_list, parse_cpu_list, parse_cpu_mask

cpu_sets = st.sets(st.integers(0, 300), max_size=60)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,8", (0, 1, 2, 3, 8)),
        ("0-7\n\0", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("8,0-1,1", (0, 1, 8)),
        (" 4 , 6-6 ", (4, 6)),
        ("\n", ()),
        ("", ()),
        ("65535", (65535,)),
    ],
)
def test_parse_list(text: str, cpus: tuple[int, ...]) -> None:
    """Lists are read as numactl and the kernel write them, NUL bytes and blanks around included."""
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize(
    "text",
    ["0-99999999999", "65536", "3-1", "0,,1", "1,", "a", "-1", "1-", "0x3", "1_0", "\u0663", "0-3\0004", "0 1", "+1"],
)
def test_parse_list_refuses(text: str) -> None:
    """Absurd ranges and other forms are refused by one line that shows them."""
    with pytest.raises(MachineError) as raised:
        parse_cpu_list(text)
    assert "\n" not in str(raised.value)
    assert repr(text) in str(raised.value)


def test_parse_list_is_bounded() -> None:
    """A list that repeats a huge range many times is refused instead of filling the memory."""
    with pytest.raises(MachineError, match="repeats"):
        parse_cpu_list(",".join(["0-65535"] * 1000))


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("00000000,0000000f\n", (0, 1, 2, 3)),
        ("8000,00000080,00000000\n\0", (39, 79)),
        ("ff\n", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("0\n", ()),
    ],
)
def test_parse_mask(text: str, cpus: tuple[int, ...]) -> None:
    """Masks are read in words of 32 bits, the most significant one first."""
    assert parse_cpu_mask(text) == cpus


@pytest.mark.parametrize("text", ["", "\n", "0x3", "f,f", "0-3", "g", ",".join(["ffffffff"] * 2049)])
def test_parse_mask_refuses(text: str) -> None:
    """Other forms, shortened words and masks beyond any machine are refused on one line."""
    with pytest.raises(MachineError) as raised:
        parse_cpu_mask(text)
    assert "\n" not in str(raised.value)


@settings(deadline=None)
@given(cpu_sets)
def test_list_round_trip(cpus: set[int]) -> None:
    """What is formatted is read back."""
    assert parse_cpu_list(format_cpu_list(cpus)) == tuple(sorted(cpus))


@settings(deadline=None)
@given(cpu_sets)
def test_format_is_shortest(cpus: set[int]) -> None:
    """No two ranges touch: each run of neighbouring CPUs is one item."""
    items = [item for item in format_cpu_list(cpus).split(",") if item]
    assert len(items) == len([cpu for cpu in cpus if cpu - 1 not in cpus])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9)), min_size=1, max_size=20))
def test_list_agrees_with_naive_reading(ranges: list[tuple[int, int]]) -> None:
    """Any order, overlap and repetition of ranges gives the union of their numbers."""
    text = ",".join(f"{first}-{first + more}" for first, more in ranges)
    naive = [cpu for cpu in range(100) if any(first <= cpu <= first + more for first, more in ranges)]
    assert parse_cpu_list(text) == tuple(naive)


@settings(deadline=None)
@given(cpu_sets)
def test_mask_agrees_with_arithmetic(cpus: set[int]) -> None:
    """A mask is the sum of its CPUs' powers of two, written in hexadecimal words."""
    digits = f"{sum(2**cpu for cpu in cpus):0320x}"
    text = ",".join(digits[start : start + 8] for start in range(0, 320, 8))
    assert parse_cpu_mask(text) == tuple(sorted(cpus))

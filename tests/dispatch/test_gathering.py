"""Which texts share a batch."""

from collections.abc import Callable

import pytest

from pinstripe.dispatch.entry import Entry
from pinstripe.dispatch.gathering import gather_in_turn, gather_near
from pinstripe.dispatch.queue import Shelf


def _shelf(*lengths: int, texts: int = 0) -> Shelf:
    shelf = Shelf()
    for number, tokens in enumerate(lengths):
        shelf.add(Entry(number, tokens, arrival_ns=number, due_ns=number + 100, texts=texts))
    return shelf


def _linear(fixed: float) -> Callable[[int, int], float]:
    return lambda texts, tokens: fixed + texts * tokens


def _near(shelf: Shelf, *, tokens: int = 1000, most: int = 100, fixed: float = 10.0) -> list[int]:
    batch = gather_near(shelf, shelf.first, tokens=tokens, most=most, predict_ns=_linear(fixed))
    return [entry.tokens for entry in batch]


def test_nearest_lengths_come_first() -> None:
    """Of 20, 90, 19, 22 and 21 with the first, those within the budget of 4 x 21 are 21, 19, and not 22 (4 x 22)."""
    assert _near(_shelf(20, 90, 19, 22, 21), tokens=84) == [20, 21, 19]


def test_padding_that_costs_more_than_a_batch_is_refused() -> None:
    """A text of 50 beside one of 20 makes 2 x 50 + 10 = 110 of 30: 80 more, and alone it would take 60."""
    assert _near(_shelf(20, 50)) == [20]


def test_padding_that_costs_less_than_a_batch_is_accepted() -> None:
    """A text of 24 beside one of 20 makes 58 of 30: 28 more, and alone it would take 34."""
    assert _near(_shelf(20, 24)) == [20, 24]


def test_no_more_than_the_share() -> None:
    """What is left is for the other idle instances."""
    assert _near(_shelf(*[8] * 10), most=4) == [8] * 4


def test_longer_than_the_budget_is_alone() -> None:
    """A text beyond the budget runs nevertheless."""
    assert _near(_shelf(600, 600), tokens=512) == [600]


def test_ready_batches_stay_as_they_are() -> None:
    """They take nobody in, and join nobody."""
    shelf = _shelf(8, 8, texts=4)
    assert len(gather_near(shelf, shelf.first, tokens=1000, most=9, predict_ns=_linear(1.0))) == 1
    shelf.add(Entry(9, 8, arrival_ns=9, due_ns=0))
    assert [
        entry.number for entry in gather_near(shelf, shelf.first, tokens=1000, most=9, predict_ns=_linear(1.0))
    ] == [9]


@pytest.mark.parametrize(("tokens", "expected"), [(100, [20]), (180, [20, 90]), (400, [20, 90, 19, 22])])
def test_in_turn_is_by_arrival_with_padding_counted(tokens: int, expected: list[int]) -> None:
    """20 and 90 compute 180 tokens, with 19 and 22 after them 4 x 90; a fifth, 21, would make 450."""
    batch = gather_in_turn(_shelf(20, 90, 19, 22, 21), tokens=tokens, most=100)
    assert [entry.tokens for entry in batch] == expected

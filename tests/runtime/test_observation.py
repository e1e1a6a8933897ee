"""Probing a process never ends it."""

from typing import NoReturn

import pytest

from pinstripe.errors import ExecutionError
from pinstripe.runtime import observation
from pinstripe.runtime.huge_pages_probe import observe_huge_pages
from pinstripe.runtime.observation import observe_process


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AttributeError("undefined symbol:\n mallctl"), "AttributeError: undefined symbol: mallctl"),
        (ValueError(), "ValueError: "),
        (ExecutionError("it is linked statically"), "it is linked statically"),
    ],
)
def test_whatever_a_probe_raises_is_its_reason(error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attribute stays empty, the reason is kept on one line, and the other probes are asked all the same."""

    def probe() -> NoReturn:
        raise error

    monkeypatch.setattr(observation, "observe_malloc", probe)
    found = observe_process(openmp=False)
    assert (found.malloc, found.unread["malloc"]) == (None, reason)
    assert found.huge_pages == observe_huge_pages()

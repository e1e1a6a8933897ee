"""Words to workloads."""

from pathlib import Path

from pinstripe.cli.options import choice, split_list
from pinstripe.configuration import Order, Scenario, TextSet, Workload
from pinstripe.errors import UsageError
from pinstripe.models import Text
from pinstripe.texts import read_texts

__all__ = ["read_workloads"]

_USUAL_LENGTH = "128"
_USUAL_BATCH = "1"


def read_workloads(
    scenario: str,
    *,
    batch: str | None,
    seq: str | None,
    texts: Path | None,
    order: str | None,
    token_budget: str | None,
) -> tuple[list[Workload], list[Text]]:
    """Return the workloads that options ask for, and the texts of their file; none with fixed lengths.

    Args:
        scenario: How batches arrive.
        batch: Batch sizes, a list; None for 1, or for no bound where there is a token budget.
        seq: Sequence lengths, a list; None for 128 unless there are texts.
        texts: A file of texts.
        order: Orders of the texts, a list.
        token_budget: Token budgets, a list.

    Raises:
        UsageError: The options contradict each other, are not understood or out of range, or the file has no texts.
    """
    arrival = choice(scenario, Scenario, "--scenario")
    if texts is None:
        _check_unused("--order", order)
        _check_unused("--token-budget", token_budget)
        lengths = split_list(seq or _USUAL_LENGTH, "--seq", int)
        sizes = split_list(batch or _USUAL_BATCH, "--batch", int)
        return _distinct(
            [Workload(scenario=arrival, batch=size, sequence_tokens=length) for length in lengths for size in sizes]
        ), []
    if seq is not None:
        raise UsageError(f"--seq {seq} gives all texts one length, --texts keeps their own; leave out one of them")
    orders = [choice(text, Order, "--order") for text in split_list(order or "sorted", "--order", str)]
    budgets: list[int | None] = [None]
    if token_budget is not None:
        budgets = [*split_list(token_budget, "--token-budget", int)]
    bounds: list[int | None] = [None]
    if batch is not None or token_budget is None:
        bounds = [*split_list(batch or _USUAL_BATCH, "--batch", int)]
    content, digest = read_texts(texts)
    return _distinct(
        [
            Workload(
                scenario=arrival,
                batch=size,
                texts=TextSet(file=str(texts), sha256=digest, texts=len(content), order=one_order, token_budget=budget),
            )
            for one_order in orders
            for budget in budgets
            for size in bounds
        ]
    ), content


def _check_unused(option: str, value: str | None) -> None:
    if value is not None:
        raise UsageError(f"{option} {value} is about real texts; name their file with --texts, or leave it out")


def _distinct(workloads: list[Workload]) -> list[Workload]:
    return list(dict.fromkeys(workloads))

"""Words to workloads."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pinstripe.cli.options import choice, split_list
from pinstripe.configuration import (
    Arrivals,
    DispatchRule,
    Order,
    Policy,
    Process,
    Scenario,
    TextSet,
    Trace,
    Workload,
)
from pinstripe.errors import UsageError
from pinstripe.load import read_trace
from pinstripe.models import Text
from pinstripe.texts import read_texts

__all__ = ["WorkloadWords", "Workloads", "read_workloads"]

T = TypeVar("T")

_USUAL_LENGTH: Final = 128
_USUAL_BATCH: Final = 1
_USUAL_QUERY: Final = 8
_DISPATCHED: Final = frozenset({"server", "multi-stream"})
_USUAL_P99_MS: Final = 100.0
_HOUR_MS: Final = 3_600_000
_MOST_TOKENS: Final = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadWords:
    """The options of `bench` that say what is asked of a model, as they were given; see there. None for not at all."""

    scenario: str
    batch: str | None = None
    seq: str | None = None
    texts: Path | None = None
    order: str | None = None
    token_budget: str | None = None
    policy: str | None = None
    patience: str | None = None
    rate: str | None = None
    arrivals: str | None = None
    trace: Path | None = None
    clients: str | None = None
    texts_per_request: str | None = None
    seed: int | None = None
    find_peak: bool = False
    p99_ms: str | None = None


@dataclass(frozen=True, slots=True)
class Workloads:
    """What is asked, with what was read from files for it.

    Attributes:
        workloads: Each once.
        texts: Those of their file; none with fixed lengths.
        times: When the requests of the trace arrive; None without one.
    """

    workloads: list[Workload]
    texts: list[Text]
    times: NDArray[np.int64] | None


def read_workloads(words: WorkloadWords) -> Workloads:
    """Return the workloads that options ask for.

    Raises:
        UsageError: The options contradict each other, are not understood or out of range, or a file is no good.
    """
    scenario = choice(words.scenario, Scenario, "--scenario")
    for option, value, where in _meaningless(words, scenario):
        named = option if value is True else f"{option} {value}"
        raise UsageError(f"{named} is about {where}, or leave it out")
    times = None
    asked: list[dict[str, Any]]
    if scenario == "server":
        times, trace = (None, None) if words.trace is None else read_trace(words.trace)
        asked = [{"arrivals": one, "dispatch": rule} for one, rule in product(_arrivals(words, trace), _rules(words))]
    elif scenario == "multi-stream":
        sizes = _values(words.batch, "--batch", int, _USUAL_QUERY)
        asked = [{"batch": size, "dispatch": rule} for size, rule in product(sizes, _rules(words))]
    else:
        # A budget alone is bound enough.
        usual = _USUAL_BATCH if words.token_budget is None else None
        asked = [{"batch": size} for size in _values(words.batch, "--batch", int, usual)]
    texts, shapes = _shapes(words, dispatched=scenario in _DISPATCHED)
    workloads = [Workload(scenario=scenario, **shape, **one) for shape, one in product(shapes, asked)]
    return Workloads(list(dict.fromkeys(workloads)), texts, times)


def _meaningless(words: WorkloadWords, scenario: Scenario) -> Iterator[tuple[str, object, str]]:
    """Yield options that say nothing here, with their values, and what they are about."""
    arriving = "arriving requests; use --scenario server"
    dispatched = "texts that are dispatched; use --scenario server or multi-stream"
    real = "real texts; name their file with --texts"
    batches = "batches that are made beforehand; use another scenario"
    server, free = scenario == "server", scenario in _DISPATCHED
    rows = (
        ("--rate", words.rate, server, arriving),
        ("--arrivals", words.arrivals, server, arriving),
        ("--trace", words.trace, server, arriving),
        ("--clients", words.clients, server, arriving),
        ("--texts-per-request", words.texts_per_request, server, arriving),
        ("--seed", words.seed, server, arriving),
        ("--find-peak", words.find_peak or None, server, arriving),
        ("--p99-ms", words.p99_ms, words.find_peak, "the highest rate that keeps it; use --find-peak"),
        ("--policy", words.policy, free, dispatched),
        ("--patience", words.patience, free, dispatched),
        ("--batch", words.batch, not server, batches),
        ("--order", words.order, not free, batches),
        ("--order", words.order, words.texts is not None, real),
        ("--token-budget", words.token_budget, free or words.texts is not None, real),
    )
    yield from ((option, value, where) for option, value, used, where in rows if value is not None and not used)
    if words.seq is not None and words.texts is not None:
        raise UsageError(
            f"--seq {words.seq} gives all texts one length, --texts keeps their own; leave out one of them"
        )


def _shapes(words: WorkloadWords, *, dispatched: bool) -> tuple[list[Text], list[dict[str, Any]]]:
    """Return the texts of the file, and lengths, or ways through these texts, as fields of workloads."""
    if words.texts is None:
        return [], [{"sequence_tokens": length} for length in _values(words.seq, "--seq", int, _USUAL_LENGTH)]
    orders = [choice(text, Order, "--order") for text in _values(words.order, "--order", str, "sorted")]
    budgets = _values(words.token_budget, "--token-budget", int, None)
    texts, digest = read_texts(words.texts)
    given = TextSet(file=str(words.texts), sha256=digest, texts=len(texts), order="arrival")
    if dispatched:
        return texts, [{"texts": given}]
    ways = product(orders, budgets)
    return texts, [{"texts": replace(given, order=order, token_budget=budget)} for order, budget in ways]


def _arrivals(words: WorkloadWords, trace: Trace | None) -> list[Arrivals]:
    """Return when requests may arrive: at every rate, with every number of clients, of every number of texts."""
    process = _process(words)
    choices = product(
        _values(words.rate, "--rate", float, None),
        _values(words.clients, "--clients", int, None),
        _values(words.p99_ms, "--p99-ms", float, _USUAL_P99_MS) if words.find_peak else [None],
        _values(words.texts_per_request, "--texts-per-request", int, 1),
    )
    return [
        Arrivals(
            process=process,
            rate_per_s=rate,
            seed=words.seed or 0,
            trace=trace,
            clients=clients,
            p99_ms=p99_ms,
            texts=texts,
        )
        for rate, clients, p99_ms, texts in choices
    ]


def _process(words: WorkloadWords) -> Process:
    given = {
        "--trace": words.trace,
        "--clients": words.clients,
        "--find-peak": words.find_peak,
        "--rate": words.rate,
    }
    named = [option for option, value in given.items() if value]
    if not named:
        raise UsageError("nothing says how many requests arrive; name --rate, --clients, --trace, or --find-peak")
    if len(named) > 1 and named != ["--trace", "--rate"]:
        raise UsageError(f"{named[0]} and {named[1]} both say how many requests arrive; leave one of them out")
    process: Process = choice(words.arrivals or "poisson", Process, "--arrivals")
    if words.clients is None and words.trace is None:
        return process
    of_option: Process = "trace" if words.clients is None else "closed"
    if words.arrivals not in {None, of_option}:
        raise UsageError(f"--arrivals {process} and {named[0]} both say when requests arrive; leave one of them out")
    return of_option


def _rules(words: WorkloadWords) -> list[DispatchRule]:
    """Return every policy with every budget and patience."""
    usual = DispatchRule()
    policies = [choice(text, Policy, "--policy") for text in _values(words.policy, "--policy", str, str(usual.policy))]
    budgets = _values(words.token_budget, "--token-budget", int, usual.tokens)
    patiences: list[float | None] = [usual.patience_ms]
    if words.patience is not None:
        patiences = [*split_list(words.patience, "--patience", float)]
    for budget in budgets:
        if not 1 <= budget <= _MOST_TOKENS:
            raise UsageError(f"a budget of {budget} tokens is out of range; use 1 to {_MOST_TOKENS}")
    for patience in patiences:
        if patience is not None and not 1 <= patience <= _HOUR_MS:
            raise UsageError(f"--patience {patience:g} is out of range; use 1 to {_HOUR_MS} milliseconds")
    return [
        DispatchRule(policy=policy, tokens=budget, patience_ms=patience)
        for policy, budget, patience in product(policies, budgets, patiences)
    ]


def _values(text: str | None, option: str, parse: Callable[[str], T], usual: T) -> list[T]:
    return [usual] if text is None else split_list(text, option, parse)

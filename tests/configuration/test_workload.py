"""What can be asked of a configuration."""

from typing import Any

import msgspec
import pytest

from pinstripe.configuration import Arrivals, BatchRule, DispatchRule, TextSet, Trace, Workload
from pinstripe.errors import ConfigurationError

TEXTS = TextSet(file="data/a.jsonl", sha256="00", texts=3, token_budget=4096)
AS_THEY_COME = TextSet(file="data/a.jsonl", sha256="00", texts=3, order="arrival")
RATE = Arrivals(rate_per_s=50)
RULE = DispatchRule(policy="fifo")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"batch": 1}, "name one of them"),
        ({"batch": 1, "sequence_tokens": 8, "texts": TEXTS}, "name one of them"),
        ({"sequence_tokens": 8}, "name a batch size"),
        ({"texts": msgspec.structs.replace(TEXTS, token_budget=None)}, "name a batch size"),
        ({"batch": 0, "texts": TEXTS}, "batch 0 is out of range"),
        ({"batch": 4097, "sequence_tokens": 8}, "batch 4097 is out of range"),
        ({"batch": 1, "sequence_tokens": 1}, "length 1 is out of range"),
        ({"batch": 1, "sequence_tokens": 8, "arrivals": RATE}, "arrivals go with the server scenario"),
        ({"batch": 1, "sequence_tokens": 8, "dispatch": RULE}, "a dispatch rule goes with server and multi-stream"),
        ({"scenario": "server", "sequence_tokens": 8, "dispatch": RULE}, "arrivals go with the server scenario"),
        ({"scenario": "server", "sequence_tokens": 8, "arrivals": RATE}, "a dispatch rule goes with server"),
        (
            {"scenario": "server", "sequence_tokens": 8, "arrivals": RATE, "dispatch": RULE, "batch": 1},
            "batch 1 says nothing of the server scenario",
        ),
        ({"scenario": "server", "texts": TEXTS, "arrivals": RATE, "dispatch": RULE}, "leave order and budget"),
        ({"scenario": "multi-stream", "sequence_tokens": 8, "dispatch": RULE}, "name a batch size"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], says: str) -> None:
    """A workload has one shape or texts, never both or neither, and numbers in their ranges."""
    with pytest.raises(ConfigurationError, match=says):
        Workload(**{"scenario": "offline", **fields})


def test_texts_need_a_text_and_a_positive_budget() -> None:
    """An empty file or a budget of 0 tokens cannot be measured."""
    with pytest.raises(ConfigurationError, match=r"a\.jsonl holds no text"):
        msgspec.structs.replace(TEXTS, texts=0).__post_init__()
    with pytest.raises(ConfigurationError, match="budget of 0 tokens"):
        TextSet(file="a", sha256="", texts=1, token_budget=0)


def test_workload_of_an_older_record_is_read_and_written_alike() -> None:
    """One shape is written as it was before there were texts."""
    line = b'{"scenario":"offline","batch":2,"sequence_tokens":16}'
    workload = msgspec.json.decode(line, type=Workload)

    assert workload == Workload(scenario="offline", batch=2, sequence_tokens=16)
    assert msgspec.json.encode(workload) == line


def test_texts_are_named_in_tables() -> None:
    """The name says the file, the order, and what bounds a batch."""
    bounded = Workload(scenario="offline", texts=TEXTS, batch=32)

    assert bounded.label == "offline, a.jsonl (3 texts), sorted, batch 32, up to 4096 tokens"
    assert Workload(scenario="offline", texts=TEXTS).shape == "a.jsonl, sorted, batch up to 4096 tokens"
    assert bounded.rule == BatchRule(order="sorted", texts=32, tokens=4096)


def test_one_shape_has_no_rule_and_texts_no_shard() -> None:
    """What does not apply is an error and not a guess."""
    with pytest.raises(ConfigurationError):
        _ = Workload(scenario="offline", batch=2, sequence_tokens=16).rule
    with pytest.raises(ConfigurationError):
        Workload(scenario="offline", texts=TEXTS, batch=2).shard(1)


def test_policies_under_the_same_arrivals_are_one_subject() -> None:
    """They are compared with each other, whatever the file's name; other rates, and other traces, are not."""
    fifo = Workload(scenario="server", texts=AS_THEY_COME, arrivals=RATE, dispatch=RULE)
    smart = Workload(
        scenario="server",
        texts=msgspec.structs.replace(AS_THEY_COME, file="b.jsonl"),
        arrivals=RATE,
        dispatch=DispatchRule(tokens=256, patience_ms=100),
    )
    faster = msgspec.structs.replace(fifo, arrivals=Arrivals(rate_per_s=60))
    traces = [
        msgspec.structs.replace(
            fifo, arrivals=Arrivals(process="trace", trace=Trace(file="t.txt", sha256=digest, requests=1))
        )
        for digest in ("1", "2")
    ]

    assert fifo.subject == smart.subject
    assert fifo.label == "server, poisson 50/s, a.jsonl (3 texts), fifo"
    assert smart.label == "server, poisson 50/s, b.jsonl (3 texts), smart, 256 tokens a core, patience 100 ms"
    assert faster.subject != fifo.subject
    assert traces[0].title == traces[1].title == "server, trace t.txt, a.jsonl (3 texts)"
    assert traces[0].subject != traces[1].subject


def test_queries_and_clients_are_named_in_tables() -> None:
    """The names of multi-stream and of a closed loop say how many texts are asked for at a time."""
    queries = Workload(scenario="multi-stream", texts=AS_THEY_COME, batch=8, dispatch=RULE)
    clients = Workload(
        scenario="server", sequence_tokens=16, arrivals=Arrivals(process="closed", clients=2, texts=4), dispatch=RULE
    )

    assert queries.label == "multi-stream, queries of 8, a.jsonl (3 texts), fifo"
    assert clients.label == "server, closed 2 clients of 4 texts, 16 tokens, fifo"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "need a rate"),
        ({"rate_per_s": 0}, "a rate of 0 requests a second is out of range"),
        ({"rate_per_s": 5, "p99_ms": 5}, "leave it or the rate out"),
        ({"process": "closed", "clients": 1, "p99_ms": 5}, "leave it or the rate out"),
        ({"p99_ms": 0}, "a p99 of 0 ms is out of range"),
        ({"process": "closed"}, "a number of clients goes with a closed loop"),
        ({"process": "trace"}, "a file of times goes with trace arrivals"),
    ],
)
def test_arrivals_that_make_no_sense_are_refused(fields: dict[str, Any], says: str) -> None:
    """One of a rate, a bound to find it by, a trace, or clients."""
    with pytest.raises(ConfigurationError, match=says):
        Arrivals(**fields)


def test_a_subject_goes_by_content_and_by_all_digits() -> None:
    """A trace that was renamed is the same; rates that differ in the eighth digit are not."""

    def subject(arrivals: Arrivals) -> str:
        return Workload(scenario="server", sequence_tokens=16, arrivals=arrivals, dispatch=RULE).subject

    old, new = (
        Arrivals(process="trace", trace=Trace(file=name, sha256="ab", requests=1)) for name in ("t.txt", "u.txt")
    )

    assert subject(old) == subject(new)
    assert subject(Arrivals(rate_per_s=1234.5678)) != subject(Arrivals(rate_per_s=1234.5681))
    assert subject(Arrivals(rate_per_s=50)) == subject(Arrivals(rate_per_s=50.0))

"""What can be asked of a configuration."""

from typing import Any

import msgspec
import pytest

from pinstripe.configuration import BatchRule, TextSet, Workload
from pinstripe.errors import ConfigurationError

TEXTS = TextSet(file="data/a.jsonl", sha256="00", texts=3, token_budget=4096)


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
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], says: str) -> None:
    """A workload has one shape or texts, never both or neither, and numbers in their ranges."""
    with pytest.raises(ConfigurationError, match=says):
        Workload(scenario="offline", **fields)


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

"""Trials as people read them."""

import io
from pathlib import Path

from msgspec.structs import replace
from rich.console import Console

from pinstripe.bench import FORMAT, read_records, summarize
from pinstripe.cli.table import print_trials

GOLDEN = Path(__file__).parents[1] / "bench" / "golden" / f"format-{FORMAT}.jsonl"


def test_tables_stand_in_the_order_in_which_they_were_asked_for() -> None:
    """Sequence lengths 16, 128 and 64 give three tables in this order, each with its own rows."""
    record = read_records(GOLDEN)[0]
    lengths = (16, 128, 64)
    records = [
        replace(record, workload=replace(record.workload, sequence_tokens=length), configuration=configuration)
        for configuration in (record.configuration, replace(record.configuration, options={"optimization": "basic"}))
        for length in lengths
    ]
    printed = io.StringIO()
    print_trials(summarize(records), Console(file=printed, width=200))
    titles = [line for line in printed.getvalue().splitlines() if line.startswith(record.workload.scenario)]

    assert [f"x {length} tokens" in title for length, title in zip(lengths, titles, strict=True)] == [True] * 3


def test_a_column_that_says_nothing_of_a_table_is_left_out_of_it() -> None:
    """Padding in one of two tables: the other has no column for it."""
    record = read_records(GOLDEN)[0]
    assert record.measurement is not None
    tokens = record.measurement.tokens
    records = [
        replace(
            record,
            workload=replace(record.workload, sequence_tokens=length),
            measurement=replace(record.measurement, padded_tokens=tokens * factor),
        )
        for length, factor in ((16, 1), (128, 2))
    ]
    printed = io.StringIO()
    print_trials(summarize(records), Console(file=printed, width=200))
    headers = [line for line in printed.getvalue().splitlines() if line.startswith("configuration")]

    assert ["padding" in header for header in headers] == [False, True]

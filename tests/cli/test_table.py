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

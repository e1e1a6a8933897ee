"""Records on their way to standard output."""

from collections.abc import Sequence

from pinstripe.bench import Record, summarize
from pinstripe.cli.console import print_json, standard_output
from pinstripe.cli.table import print_trials

__all__ = ["print_runs"]


def print_runs(records: Sequence[Record], *, as_json: bool) -> None:
    """Print the trials of each run: as tables, or as one JSON object with key `trials`."""
    runs: dict[str, list[Record]] = {}
    for record in records:
        runs.setdefault(record.run, []).append(record)
    if as_json:
        print_json({"trials": [trial for run in runs.values() for trial in summarize(run)]})
        return
    console = standard_output()
    # Where nobody is there to widen the window, a table is not cut to its default of 80 columns.
    console = console if console.is_terminal else standard_output(width=160)
    for run in runs.values():
        first = run[0]
        cpu = first.machine.model_name or "an unknown CPU"
        console.print(f"{first.network.name} on {cpu}, {first.created}")
        print_trials(summarize(run), console)

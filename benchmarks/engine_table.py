"""Records of `bench` over engines and precisions, as the tables of docs/engines.md: a row for each way to compute.

pinstripe bench MODEL --engine all --precision float32,bfloat16,int8 --instances 1,2 --scenario offline --seq 16,128 \
        --output records/engines.jsonl
python benchmarks/engine_table.py records/engines.jsonl
"""

from pathlib import Path
from typing import Annotated

import typer

from pinstripe.bench import Trial, read_records, summarize


def _way(trial: Trial) -> str:
    """Return engine, precision and options, without the shape."""
    configuration = trial.configuration
    options = [f"{name}={value}" for name, value in configuration.options.items()]
    return " ".join([configuration.engine, configuration.precision, *options])


def _column(trial: Trial) -> str:
    configuration, workload = trial.configuration, trial.workload
    return f"{configuration.instances}x{configuration.cores}, {workload.batch} x {workload.sequence_tokens}"


def table(trials: list[Trial]) -> list[str]:
    """Return the lines of a Markdown table of samples a second; a cell is empty where there is none."""
    columns = list(dict.fromkeys(map(_column, trials)))
    rows: dict[str, dict[str, str]] = {}
    for trial in trials:
        rate = f"{trial.result.samples_per_s:,.3g}" if trial.result else "failed"
        rows.setdefault(_way(trial), {})[_column(trial)] = rate
    lines = [f"| texts/s | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    return lines + [
        f"| `{way}` | {' | '.join(cells.get(column, '') for column in columns)} |" for way, cells in rows.items()
    ]


def main(records: Annotated[list[Path], typer.Argument(help="Files that bench wrote.")]) -> None:
    """Print a table for each file; columns are instances x cores, batch x tokens."""
    for path in records:
        found = read_records(path)
        print(f"{found[0].network.name}, {found[0].machine.model_name}, {found[0].created[:10]}\n")
        print("\n".join(table(summarize(found))))
        print()


if __name__ == "__main__":
    typer.run(main)

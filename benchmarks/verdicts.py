"""How often comparisons err: of a configuration with itself, and with one that is really 5 % slower.

    python benchmarks/verdicts.py                                        100 of each, 16 rounds (about an hour)
    python benchmarks/verdicts.py --comparisons 10 --rounds 6            a quick look

The engine is the fake one, whose cost is known; pool, rounds, windows and statistics are those of `pinstripe bench`.
A and B, and a C whose forward passes take 5 % longer, are measured in turn, in fresh processes each time. Several
comparisons share a process (workloads that differ in their sequence length, which the fake's cost does not depend on),
as starting processes would take most of the time; each has windows of its own.
"""

import argparse
import asyncio
import sys
import uuid
from collections import Counter
from collections.abc import Sequence

from pinstripe.bench import DECIDING_PAIRS, Grid, Host, Limits, Ratio, Session, paired_ratio, run_grid
from pinstripe.configuration import Configuration, Workload
from pinstripe.engines import Artefact
from pinstripe.machine import read_machine
from pinstripe.pool import set_up
from pinstripe.testing.fake_engine import fake_network

SLOWDOWN = 1.05
WARMUP_S = 0.05
AT_ONCE = 10
"""Comparisons that share a process."""


async def compare(
    comparisons: int, rounds: int, min_time: float, options: dict[str, float]
) -> tuple[list[Ratio], list[Ratio]]:
    """Return the ratios of B to A, and those of the slower C to A."""
    network, machine = fake_network(), read_machine()
    artefact = Artefact(format="none", path="", origin="model")
    limits = Limits(min_s=min_time, min_forwards=3, warmup_max_s=WARMUP_S)
    host = Host(kernel="", python="", libraries={})
    session = Session(run=uuid.uuid4().hex, network=network, machine=machine, host=host, limits=limits)
    factors = (1, 1, SLOWDOWN)
    setups = [
        set_up(
            Configuration(engine="fake", cores=1, options={**options, "fixed_us": options["fixed_us"] * factor}),
            machine,
            network,
            lambda _: artefact,
        )
        for factor in factors
    ]
    workloads = tuple(
        Workload(scenario="offline", batch=1, sequence_tokens=tokens) for tokens in range(16, 16 + comparisons)
    )
    grid = Grid(rows=tuple((setup, workloads) for setup in setups), skipped=())
    rates: dict[tuple[int, int | None], list[float]] = {}
    turns: Counter[tuple[int, int | None]] = Counter()
    async for record in run_grid(grid, session, repeats=rounds, on_step=lambda *_: None):
        if record.measurement is None:
            raise SystemExit(f"a measurement failed: {record.failure and record.failure.message}")
        tokens = record.workload.sequence_tokens
        # Rows have their turns in order, rotated by one in each round.
        arm = (turns[record.repeat, tokens] + record.repeat) % len(factors)
        turns[record.repeat, tokens] += 1
        rates.setdefault((arm, tokens), []).append(record.measurement.samples_per_s)
    lengths = [workload.sequence_tokens for workload in workloads]
    same = [paired_ratio(rates[1, tokens], rates[0, tokens]) for tokens in lengths]
    slower = [paired_ratio(rates[2, tokens], rates[0, tokens]) for tokens in lengths]
    return same, slower


def say(same: Sequence[Ratio], slower: Sequence[Ratio]) -> str:
    """Return the counts so far in words."""
    differ = sum(ratio.verdict != "undecided" for ratio in same)
    found = sum(ratio.verdict == "slower" for ratio in slower)
    widths = sorted(100 * ((ratio.high or 0) - (ratio.low or 0)) / 2 for ratio in same)
    return (
        f"A/A: {differ} of {len(same)} called different; {100 * (SLOWDOWN - 1):.0f} % slower: {found} of {len(slower)} "
        f"found; half the interval's width of A/A: {widths[len(widths) // 2]:.2f} % (median)"
    )


def main() -> None:
    """Read the command line and print the counts, while they grow and in the end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--comparisons", type=int, default=100, help="of each kind")
    parser.add_argument("--rounds", type=int, default=DECIDING_PAIRS)
    parser.add_argument("--min-time", type=float, default=0.25, help="seconds of a window")
    parser.add_argument("--cost-us", type=float, default=2000, help="of a forward pass")
    parser.add_argument("--sleep", action="store_true", help="sleep meanwhile; otherwise a CPU is kept busy")
    asked = parser.parse_args()
    options = {"fixed_us": asked.cost_us, "busy": not asked.sleep}
    same: list[Ratio] = []
    slower: list[Ratio] = []
    while len(same) < asked.comparisons:
        count = min(AT_ONCE, asked.comparisons - len(same))
        more = asyncio.run(compare(count, asked.rounds, asked.min_time, options))
        same += more[0]
        slower += more[1]
        print(say(same, slower), file=sys.stderr)
    print(say(same, slower))


if __name__ == "__main__":
    main()

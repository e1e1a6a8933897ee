"""What was found, as Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

import typer

__all__ = ["print_peaks", "print_rates", "print_real"]


def print_peaks(results: Iterable[dict[str, Any]]) -> None:
    """Print the highest rate at p99 <= 100 ms of the best shape of each family."""
    typer.echo("\n| machine | variant | texts | " + "family | best shape | texts/s at p99 ≤ 100 ms | of best uniform |")
    typer.echo("|---|---|---|---|---|--:|--:|")
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for result in results:
        groups.setdefault((result["machine"], result["variant"], result["mix"]), []).append(result)
    for (machine, variant, mix), own in groups.items():
        best = max(one["peak"] for one in own if one["family"].startswith("uniform"))
        for one in own:
            typer.echo(
                f"| {machine} | {variant} | {mix} | {one['family']} | {one['shape']} | {one['peak']:.0f} | "
                f"{one['peak'] / best:.2f} |"
            )


def print_rates(results: Iterable[dict[str, Any]]) -> None:
    """Print the p99 of each length class at shares of the best uniform arm's highest rate."""
    typer.echo("\n| machine | variant | texts | family | shape | rate | answered | p99 ms by class |")
    typer.echo("|---|---|---|---|---|--:|--:|---|")
    for one in results:
        for at in one["rates"]:
            p99 = _classes(one["bounds"], at["p99_ms"])
            typer.echo(
                f"| {one['machine']} | {one['variant']} | {one['mix']} | {one['family']} | {one['shape']} | "
                f"{at['rate']:.0f} ({at['share']:.0%}) | {at['completed']:.0f} | {p99} |"
            )


def print_real(results: Sequence[dict[str, Any]]) -> None:
    """Print medians of the rounds, and the ratio to `uniform, fifo` at the same rate."""
    typer.echo("\n| texts | rate | arm | answered | p99 ms by class (least to most of the rounds) | p99 to fifo's |")
    typer.echo("|---|--:|---|--:|---|---|")
    fifo = {(one["mix"], one["share"]): one for one in results if one["arm"].startswith("uniform, fifo")}
    for one in sorted(results, key=lambda one: (one["mix"], one["share"])):
        base = fifo[one["mix"], one["share"]]
        spans = [
            f"{middle:.1f} ({min(values):.1f} to {max(values):.1f})"
            for middle, values in zip(
                one["p99_ms"], zip(*(run["p99_ms"] for run in one["runs"]), strict=True), strict=True
            )
        ]
        ratios = [f"{own / other:.2f}" for own, other in zip(one["p99_ms"], base["p99_ms"], strict=True)]
        typer.echo(
            f"| {one['mix']} | {one['rate']:.0f} ({one['share']:.0%}) | {one['arm']} | "
            f"{one['completed'] / base['completed']:.2f} of fifo's | {', '.join(spans)} | {', '.join(ratios)} |"
        )


def _classes(bounds: Sequence[int], values: Sequence[float]) -> str:
    names = [*(f"≤{bound}" for bound in bounds), "rest"] if bounds else ["all"]
    return ", ".join(f"{name} {value:.0f}" for name, value in zip(names, values, strict=True))

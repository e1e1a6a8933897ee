"""What was found, as pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import matplotlib.pyplot as plt

__all__ = ["plot_peaks", "plot_rates", "plot_real"]

mpl.use("Agg")
mpl.rcParams["svg.hashsalt"] = "pinstripe"  # so that the same picture is the same file
_COLOURS: Final = {
    "one process": "#999999",
    "uniform, fifo": "#d55e00",
    "uniform, shortest-first": "#e69f00",
    "uniform, smart": "#56b4e9",
    "classes, smart": "#0072b2",
}
"""Okabe and Ito's, which colour-blind people can tell apart."""
_TOP_MS: Final = 1000


def plot_peaks(results: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw the highest rate at p99 <= 100 ms of each family, as published, for each machine and mix."""
    published = [one for one in results if one["variant"] == "as published"]
    machines = list(dict.fromkeys(one["machine"] for one in published))
    mixes = list(dict.fromkeys(one["mix"] for one in published))
    figure, axes = plt.subplots(1, len(machines), figsize=(5 * len(machines), 3.6), squeeze=False)
    for axis, machine in zip(axes[0], machines, strict=True):
        for number, family in enumerate(_COLOURS):
            own = {one["mix"]: one for one in published if one["machine"] == machine and one["family"] == family}
            places = [index + 0.16 * (number - 2) for index, mix in enumerate(mixes) if mix in own]
            bars = axis.bar(places, [own[mix]["peak"] for mix in mixes if mix in own], 0.15, color=_COLOURS[family])
            axis.bar_label(bars, fmt="%.0f", fontsize=7)
            bars.set_label(family)
        axis.set_xticks(range(len(mixes)), mixes)
        axis.set_title(f"{machine} cores, simulated")
        axis.set_ylabel("texts/s at p99 ≤ 100 ms")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][-1].legend(fontsize=7, frameon=False)
    _save(figure, folder / "dispatching-peaks.svg")


def plot_rates(results: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw the p99 of each length class by the rate, for the mix of queries and documents, as published."""
    chosen = [one for one in results if one["variant"] == "as published" and one["mix"] == "search"]
    machines = list(dict.fromkeys(one["machine"] for one in chosen))
    figure, axes = plt.subplots(2, len(machines), figsize=(5 * len(machines), 6), squeeze=False, sharex="col")
    for column, machine in enumerate(machines):
        for row, title in enumerate(("queries", "documents")):
            axis = axes[row][column]
            for one in (one for one in chosen if one["machine"] == machine):
                axis.plot(
                    [at["rate"] for at in one["rates"]],
                    [min(_TOP_MS, at["p99_ms"][row]) for at in one["rates"]],
                    marker="o",
                    markersize=3,
                    color=_COLOURS[one["family"]],
                    label=f"{one['family']}: {one['shape']}",
                )
            axis.set_yscale("log")
            axis.set_ylim(top=_TOP_MS)
            axis.set_ylabel(f"p99 of {title}, ms")
            axis.spines[["top", "right"]].set_visible(False)
        axes[0][column].set_title(f"{machine} cores, simulated")
        axes[0][column].legend(fontsize=7, frameon=False)
        axes[1][column].set_xlabel("texts/s offered")
    _save(figure, folder / "dispatching-rates.svg")


def plot_real(results: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw the p99 of each length class by the rate as measured: the median of the rounds, and their span."""
    chosen = [one for one in results if one["mix"] == "search"]
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6))
    for index, (axis, title) in enumerate(zip(axes, ("queries", "documents"), strict=True)):
        for arm in dict.fromkeys(one["arm"] for one in chosen):
            own = sorted((one for one in chosen if one["arm"] == arm), key=lambda one: float(one["share"]))
            middles = [one["p99_ms"][index] for one in own]
            spans = [[run["p99_ms"][index] for run in one["runs"]] for one in own]
            below = [middle - min(values) for middle, values in zip(middles, spans, strict=True)]
            above = [max(values) - middle for middle, values in zip(middles, spans, strict=True)]
            colour = _COLOURS[arm.partition(":")[0]]
            axis.errorbar(
                [one["rate"] for one in own], middles, (below, above), marker="o", capsize=3, color=colour, label=arm
            )
        axis.set_yscale("log")
        axis.set_xlabel("texts/s offered")
        axis.set_ylabel(f"p99 of {title}, ms")
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=8, frameon=False)  # clear of the lines
    _save(figure, folder / "dispatching-real.svg")


def _save(figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)

"""Options that say what is asked of a model that is measured; lists span the grid."""

from pathlib import Path
from typing import Annotated, Final

import typer

__all__ = [
    "ArrivalsOption",
    "BatchOption",
    "ClientsOption",
    "FindPeakOption",
    "OrderOption",
    "P99Option",
    "PatienceOption",
    "PolicyOption",
    "RateOption",
    "ScenarioOption",
    "SeedOption",
    "SeqOption",
    "TextsOption",
    "TextsPerRequestOption",
    "TokenBudgetOption",
    "TraceOption",
]

_ARRIVING: Final = "Arriving requests (--scenario server; lists span the grid)"

ScenarioOption = Annotated[
    str,
    typer.Option(
        help="single-stream: one batch at a time, split over the instances. offline: every instance runs batches of "
        "its own. server: requests arrive at a rate. multi-stream: one query of several texts at a time, dispatched."
    ),
]
BatchOption = Annotated[
    str | None,
    typer.Option(
        help="Batch sizes; with --texts the most texts in a batch; in multi-stream the texts of a query.",
        show_default="1, in multi-stream 8",
    ),
]
SeqOption = Annotated[str | None, typer.Option(help="Sequence lengths in tokens.", show_default="128")]
TextsOption = Annotated[
    Path | None,
    typer.Option(
        help="Measure the texts of this file, with their real lengths: a JSON object with a field text on each "
        "line of a .jsonl file, else a text on each line.",
        metavar="FILE",
    ),
]
OrderOption = Annotated[
    str | None,
    typer.Option(
        help="sorted: texts of near-equal length in a batch, long ones first. arrival: as they come.",
        show_default="sorted",
    ),
]
TokenBudgetOption = Annotated[
    str | None,
    typer.Option(
        help="Most tokens in a batch of texts, padding included; where texts are dispatched, for each core of the "
        "instance.",
        metavar="TOKENS",
        show_default="512 a core where texts are dispatched",
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        help="How texts are dispatched, in server and multi-stream: smart, fifo, shortest-first.",
        show_default="smart",
    ),
]
PatienceOption = Annotated[
    str | None,
    typer.Option(
        help="Milliseconds after which a text waits no longer for an instance that suits it, or behind shorter ones.",
        metavar="MS",
        show_default="six times what the text takes by itself, at least 50",
    ),
]
RateOption = Annotated[str | None, typer.Option(help="Requests a second.", rich_help_panel=_ARRIVING)]
ArrivalsOption = Annotated[
    str | None,
    typer.Option(
        help="poisson: at random, as from many who do not know of each other. constant: evenly spaced.",
        show_default="poisson",
        rich_help_panel=_ARRIVING,
    ),
]
TraceOption = Annotated[
    Path | None,
    typer.Option(
        help="Requests arrive at the times in this file, one in seconds on each line; with --rate stretched to it.",
        metavar="FILE",
        rich_help_panel=_ARRIVING,
    ),
]
ClientsOption = Annotated[
    str | None,
    typer.Option(
        help="Instead of a rate: clients, each of which sends its next request when it has its answer.",
        rich_help_panel=_ARRIVING,
    ),
]
TextsPerRequestOption = Annotated[
    str | None, typer.Option(help="Texts in each request.", show_default="1", rich_help_panel=_ARRIVING)
]
SeedOption = Annotated[
    int | None,
    typer.Option(min=0, help="Of the random times.", show_default="0", rich_help_panel=_ARRIVING),
]
FindPeakOption = Annotated[
    bool,
    typer.Option(
        "--find-peak",
        help="Instead of --rate: find the highest that keeps --p99-ms.",
        rich_help_panel=_ARRIVING,
    ),
]
P99Option = Annotated[
    str | None,
    typer.Option(
        "--p99-ms",
        help="With --find-peak: most milliseconds of the 99th percentile.",
        metavar="MS",
        show_default="100",
        rich_help_panel=_ARRIVING,
    ),
]

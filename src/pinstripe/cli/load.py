"""`pinstripe load`: requests to a server, as they arrive in life."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from pinstripe.cli.options import Json, choice
from pinstripe.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pinstripe.configuration import Arrivals

__all__ = ["load"]

_USUAL_S: Final = 30.0
_USUAL_REQUESTS: Final = 3000
_LEAST_REQUESTS: Final = 299
_USUAL_KEY: Final = "PINSTRIPE_API_KEY"


def load(
    url: Annotated[
        str, typer.Argument(help="Where a server answers; without a path /v1/embeddings and /embed are tried.")
    ],
    *,
    rate: Annotated[
        float | None, typer.Option(help="Requests a second, sent whether or not those before are answered.")
    ] = None,
    clients: Annotated[
        int | None, typer.Option(help="In place of a rate, clients that wait for each answer: a closed loop.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="In place of a rate, a file with a time on each line: seconds, ISO 8601, or a JSON object with a "
            "field time. With --rate it is stretched to that.",
            metavar="FILE",
        ),
    ] = None,
    find_peak: Annotated[
        bool, typer.Option("--find-peak", help="Find the highest rate at which --p99-ms holds.")
    ] = False,
    p99_ms: Annotated[
        float | None, typer.Option(min=0.001, max=3_600_000, help="Most milliseconds that 99 % of requests may take.")
    ] = None,
    arrivals: Annotated[
        str | None,
        typer.Option(
            help="poisson: at random, as people come. constant: evenly.", metavar="PROCESS", show_default="poisson"
        ),
    ] = None,
    duration: Annotated[
        float | None, typer.Option(min=0.1, max=86400, help="Seconds to send for.", show_default="30")
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(min=1, help="Requests to send; with --find-peak at each rate.", show_default="3000 at each rate"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Of the random times.")] = 0,
    warmup: Annotated[int, typer.Option(min=0, max=100_000, help="Requests before, which do not count.")] = 20,
    texts: Annotated[
        Path | None,
        typer.Option(
            help="File of texts: JSON objects in a .jsonl file, else a text on each line.",
            metavar="FILE",
            show_default="12 English sentences",
        ),
    ] = None,
    texts_per_request: Annotated[int, typer.Option(min=1, max=4096, help="Texts in each request.")] = 1,
    timeout: Annotated[
        float, typer.Option(min=0.001, max=3600, help="Seconds after which a request has failed.")
    ] = 30.0,
    api: Annotated[
        str | None,
        typer.Option(help="openai or tei: the form of requests and answers.", show_default="by the address"),
    ] = None,
    model: Annotated[str, typer.Option(help="What openai requests call the model.")] = "default",
    api_key_env: Annotated[
        str, typer.Option(help="Environment variable that holds a key (Authorization: Bearer).", metavar="NAME")
    ] = _USUAL_KEY,
    proxy: Annotated[bool, typer.Option("--proxy", help="Use the proxies that the environment names.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to make, with the raw times of every request as JSON lines."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Send requests to an embedding server as they arrive in life, and say what became of them.

    Latencies count from the time at which a request was due, so a server that stalls is not spared. What the
    generator itself did is measured too, and a run in which it mattered is called invalid.

    Example: pinstripe load http://127.0.0.1:8080 --rate 100 --texts queries.jsonl

    Example: pinstripe load http://127.0.0.1:8080/embed --find-peak --p99-ms 100
    """
    from pinstripe.cli.loading import LoadJob, run_job  # noqa: PLC0415
    from pinstripe.load import ApiName, endpoints  # noqa: PLC0415

    if find_peak != (p99_ms is not None):
        raise UsageError("--find-peak looks for the highest rate that keeps a bound, --p99-ms; name both, or neither")
    if find_peak and duration is not None:
        raise UsageError("--find-peak runs each rate for a number of requests; name --requests in place of --duration")
    if find_peak and requests is not None and requests < _LEAST_REQUESTS:
        raise UsageError(f"--requests {requests} says nothing of a 99th percentile; use {_LEAST_REQUESTS} or more")
    if find_peak:
        requests = requests or _USUAL_REQUESTS
    elif duration is None and requests is None and trace is None:
        duration = _USUAL_S
    asked, times = _read_arrivals(
        rate=rate, clients=clients, trace=trace, p99_ms=p99_ms, process=arrivals, seed=seed, texts=texts_per_request
    )
    contents = None if texts is None else _read_texts(texts)
    job = LoadJob(
        endpoints=endpoints(url, None if api is None else choice(api, ApiName, "--api")),
        arrivals=asked,
        times=times,
        duration_s=duration,
        requests=requests,
        warmup=warmup,
        texts=contents,
        timeout_s=timeout,
        model=model,
        api_key=_read_key(api_key_env),
        proxies=proxy,
        output=output,
    )
    run_job(job, as_json=as_json)


def _read_arrivals(
    *,
    rate: float | None,
    clients: int | None,
    trace: Path | None,
    p99_ms: float | None,
    process: str | None,
    seed: int,
    texts: int,
) -> "tuple[Arrivals, NDArray[np.int64] | None]":
    """Return when requests arrive, and the times of a trace.

    Raises:
        UsageError: The options do not say that, or contradict each other.
    """
    from pinstripe.configuration import Arrivals  # noqa: PLC0415
    from pinstripe.load import read_trace  # noqa: PLC0415

    ways = {"--rate": rate, "--clients": clients, "--trace": trace, "--find-peak": p99_ms}
    named = [way for way, value in ways.items() if value is not None]
    if named == ["--rate", "--trace"]:
        named = ["--trace"]  # stretched to the rate
    if not named:
        raise UsageError(
            "it is not said how requests arrive; name --rate 100, --clients 8, --trace FILE or --find-peak"
        )
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} both say how requests arrive; name one of them")
    if process is not None and named[0] in {"--clients", "--trace"}:
        raise UsageError(f"--arrivals {process} goes with --rate and --find-peak; leave it out with {named[0]}")
    if clients is not None:
        return Arrivals(process="closed", clients=clients, texts=texts), None
    if trace is not None:
        times, description = read_trace(trace)
        return Arrivals(process="trace", rate_per_s=rate, trace=description, texts=texts), times
    spread = choice(process or "poisson", Literal["poisson", "constant"], "--arrivals")
    return Arrivals(process=spread, rate_per_s=rate, p99_ms=p99_ms, seed=seed, texts=texts), None


def _read_texts(path: Path) -> list[str]:
    """Return the texts of a file.

    Raises:
        UsageError: It cannot be read, or holds a pair, which has no embedding.
    """
    from pinstripe.texts import read_texts  # noqa: PLC0415

    texts = []
    for number, text in enumerate(read_texts(path)[0], start=1):
        if not isinstance(text, str):
            raise UsageError(
                f"line {number} of {path} holds a pair of texts, which has no embedding; leave text_pair out"
            )
        texts.append(text)
    return texts


def _read_key(name: str) -> str | None:
    """Return the key that an environment variable holds; None if it is the usual one and not set.

    Raises:
        UsageError: Another is not set, or it holds what cannot be a key; which is not shown.
    """
    key = os.environ.get(name)
    if not key:
        if name == _USUAL_KEY:
            return None
        raise UsageError(f"the environment variable {name} is not set; put the key there, or leave --api-key-env out")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError(f"what {name} holds cannot be a key: a blank, a line end or a foreign sign is in it")
    return key

"""Running a load over HTTP, and stopping it in order."""

import asyncio
import gc
import resource
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import typer
from msgspec.structs import replace
from numpy.typing import NDArray

from pinstripe.cli.console import print_json, standard_error, standard_output
from pinstripe.cli.load_progress import LoadProgress
from pinstripe.cli.load_report import print_peak, print_report
from pinstripe.cli.raw_times import RawTimes
from pinstripe.configuration import Arrivals
from pinstripe.errors import ExecutionError, RequestError, UsageError
from pinstripe.load import (
    SAMPLE_TEXTS,
    Endpoint,
    HttpTarget,
    LoadReport,
    LoadRun,
    Peak,
    find_peak,
    judge,
    new_fine_loop,
    run_closed_loop,
    run_load,
    schedule,
)

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["LoadJob", "run_job"]

_INTERRUPTED: Final = 130
_CAP: Final = 10_000
_OTHER_FILES: Final = 64
_WARMUP_CLIENTS: Final = 4
_PROBE_CLIENTS: Final = 8
_PROBE_S: Final = 2.0
_PROBE_REQUESTS: Final = 400
_DAY_S: Final = 86_400
_MOST_FAILED: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadJob:
    """What `pinstripe load` was asked for.

    Attributes:
        endpoints: What the address may mean, the likeliest first.
        arrivals: When requests arrive.
        times: Those of a trace.
        duration_s: Seconds to send for; None for no such end.
        requests: To send, with a bound of the p99 at each rate; None for no such end.
        warmup: Requests before, which do not count.
        texts: To send; None for a few sentences.
        timeout_s: After which a request has failed.
        model: What requests call the model.
        api_key: Bearer token, or None.
        proxies: Whether to use those of the environment.
        output: File for the raw times, or None.
    """

    endpoints: list[Endpoint]
    arrivals: Arrivals
    times: NDArray[np.int64] | None
    duration_s: float | None
    requests: int | None
    warmup: int
    texts: list[str] | None
    timeout_s: float
    model: str
    api_key: str | None
    proxies: bool
    output: Path | None


class LoadOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints.

    Attributes:
        url: Where requests went.
        api: Their form, `openai` or `tei`.
        width: Numbers in an embedding.
        texts: Number of different texts.
        arrivals: When requests arrived.
        report: What the run says; None for a search.
        peak: What a search found; None for a run.
        stopped: Whether it was stopped from outside.
    """

    url: str
    api: str
    width: int
    texts: int
    arrivals: Arrivals
    report: LoadReport | None
    peak: Peak | None
    stopped: bool


def run_job(job: LoadJob, *, as_json: bool) -> None:
    """Run it, and print what became of it.

    Raises:
        ExecutionError: The server does not answer as it should, or nothing was measured.
        Exit: With 130 if it was stopped, or 1 if the run is not valid, more than 1 % of its requests failed, or no peak
            was found.
    """
    with RawTimes(job.output) as raw, asyncio.Runner(loop_factory=new_fine_loop) as runner:
        outcome = runner.run(_run(job, raw, standard_error()))
    if as_json:
        print_json(outcome)
    elif outcome.peak is not None:
        print_peak(outcome.peak, standard_output())
    elif outcome.report is not None:
        print_report(outcome.report, outcome.arrivals, standard_output())
    if outcome.stopped:
        raise typer.Exit(_INTERRUPTED)
    report, peak = outcome.report, outcome.peak
    if report is not None and not (report.valid and report.answered >= (1 - _MOST_FAILED) * report.requests):
        raise typer.Exit(1)
    if peak is not None and not (peak.rate_per_s and peak.limit == "server"):
        raise typer.Exit(1)


async def _run(job: LoadJob, raw: RawTimes, screen: "Console") -> LoadOutcome:
    if job.arrivals.rate_per_s is not None or job.times is not None:
        _check_times(job)
    async with AsyncExitStack() as stack:
        target, width = await _connect(job, stack)
        texts = "" if job.texts is not None else f"{len(SAMPLE_TEXTS)} built-in English sentences; --texts brings yours"
        _say(screen, f"{target.endpoint.url} ({target.endpoint.api}), {width} numbers an embedding")
        if texts:
            _say(screen, texts)
        progress = stack.enter_context(LoadProgress(screen))
        gc.freeze()  # what is there stays there; looking through it takes time in which nothing is sent
        load = _Load(job, target, raw, progress, _stop_on_signals())
        await load.warm_up()
        report, peak = None, None
        if job.arrivals.p99_ms is not None:
            peak = await load.find_peak(job.arrivals.p99_ms)
        else:
            report = await load.run_once()
    return LoadOutcome(
        url=target.endpoint.url,
        api=target.endpoint.api,
        width=width,
        texts=len(job.texts or SAMPLE_TEXTS),
        arrivals=job.arrivals,
        report=report,
        peak=peak,
        stopped=load.stop.is_set(),
    )


def _check_times(job: LoadJob) -> None:
    """Say at once what cannot be.

    Raises:
        ConfigurationError: There is no such schedule.
        UsageError: A trace takes more than a day, which hardly anyone wants: dates far apart, or milliseconds.
    """
    due_ns = schedule(job.arrivals, job.duration_s, job.times, requests=job.requests)
    if job.times is not None and job.duration_s is None and due_ns[-1] > _DAY_S * 1e9:
        raise UsageError(
            f"the trace spans {due_ns[-1] / 1e9:,.0f} s, more than a day; name the seconds to send of it by --duration"
        )


class _Load:
    """What is sent to a server that answers."""

    def __init__(
        self, job: LoadJob, target: HttpTarget, raw: RawTimes, progress: LoadProgress, stop: asyncio.Event
    ) -> None:
        self.stop = stop
        self._job = job
        self._target = target
        self._raw = raw
        self._progress = progress

    async def warm_up(self) -> None:
        """Send requests that do not count."""
        if self._job.warmup:
            self._progress.begin("warming up", requests=self._job.warmup)
            await self._closed(_WARMUP_CLIENTS, requests=self._job.warmup)

    async def run_once(self) -> LoadReport:
        """Return what one run says."""
        arrivals = self._job.arrivals
        self._progress.begin(arrivals.label, requests=self._job.requests, seconds=self._job.duration_s)
        if arrivals.clients is not None:
            run = await self._closed(arrivals.clients, seconds=self._job.duration_s, requests=self._job.requests)
        else:
            run = await self._open(arrivals)
        if not run.scheduled_ns:
            raise ExecutionError("it was stopped before a request was sent")
        self._raw.add(run, arrivals)
        return judge(run)

    async def find_peak(self, p99_ms: float) -> Peak:
        """Return the highest rate that holds."""
        self._progress.begin("looking where to begin", requests=_PROBE_REQUESTS)
        probe = await self._closed(_PROBE_CLIENTS, seconds=_PROBE_S, requests=_PROBE_REQUESTS)
        report = judge(probe) if probe.scheduled_ns else None
        if report is None or not report.answered:
            kinds = ", ".join(report.failures) if report else "it was stopped"
            raise ExecutionError(f"no request of a first try was answered: {kinds}")

        async def run_at(rate_per_s: float, seed: int) -> LoadRun:
            arrivals = replace(self._job.arrivals, p99_ms=None, rate_per_s=rate_per_s, seed=seed)
            self._progress.begin(f"{rate_per_s:.1f}/s", requests=self._job.requests)
            run = await self._open(arrivals, p99_ms)
            self._raw.add(run, arrivals)
            return run

        return await find_peak(run_at, p99_ms, start_per_s=report.completed_per_s, seed=self._job.arrivals.seed)

    async def _open(self, arrivals: Arrivals, p99_ms: float | None = None) -> LoadRun:
        return await run_load(
            self._target,
            schedule(arrivals, self._job.duration_s, self._job.times, requests=self._job.requests),
            timeout_s=self._job.timeout_s,
            cap=_cap(),
            p99_ms=p99_ms,
            stop=self.stop,
            on_sent=self._progress.show,
        )

    async def _closed(self, clients: int, *, seconds: float | None = None, requests: int | None = None) -> LoadRun:
        return await run_closed_loop(
            self._target,
            min(clients, _cap()),
            seconds=seconds,
            requests=requests,
            timeout_s=self._job.timeout_s,
            stop=self.stop,
            on_sent=self._progress.show,
        )


async def _connect(job: LoadJob, stack: AsyncExitStack) -> tuple[HttpTarget, int]:
    """Return the first endpoint that answers as it should, and the width of its embeddings.

    Raises:
        ExecutionError: None does.
    """
    for last, endpoint in enumerate(job.endpoints, start=1 - len(job.endpoints)):
        target = await stack.enter_async_context(
            HttpTarget(
                endpoint,
                job.texts or SAMPLE_TEXTS,
                texts_per_request=job.arrivals.texts,
                model=job.model,
                api_key=job.api_key,
                proxies=job.proxies,
            )
        )
        try:
            return target, await target.check(job.timeout_s)
        except RequestError as error:
            if last < 0 and error.kind.startswith(("HTTP 404", "HTTP 405")):
                continue
            raise ExecutionError(f"{endpoint.url}: {error.kind}; {_advice(error.kind, job)}") from error
    raise ExecutionError("there is no address")


def _advice(kind: str, job: LoadJob) -> str:
    """Return what may help against a failure."""
    advice = {
        "connection refused": "is the server running, and is this its port?",
        "connection closed": "look into the server's log",
        "timeout": "is it ready? --timeout is how long is waited for it",
        "host not found": "check the address",
        "HTTP 401": "give its key in the environment variable PINSTRIPE_API_KEY, or in another by --api-key-env",
        "HTTP 403": "give its key in the environment variable PINSTRIPE_API_KEY, or in another by --api-key-env",
        "HTTP 404": "name the path at which it answers, or a --model that it has",
        "HTTP 429": "it wants fewer requests",
        "wrong answer": f"does it speak {' or '.join(one.api for one in job.endpoints)}? --api says which",
    }
    return next((text for begin, text in advice.items() if kind.startswith(begin)), "look into the server's log")


def _stop_on_signals() -> asyncio.Event:
    """Return what Ctrl-C, SIGTERM and SIGHUP set, unless they are ignored; a second one ends all at once."""
    stop, loop, task = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task()

    def on_signal() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            loop.add_signal_handler(number, on_signal)
    return stop


def _cap() -> int:
    """Return how many requests may be under way: 10,000, or what the limit of open files leaves room for."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CAP + _OTHER_FILES
    limit = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return max(1, limit - _OTHER_FILES)


def _say(screen: "Console", text: str) -> None:
    screen.print(text, soft_wrap=True)

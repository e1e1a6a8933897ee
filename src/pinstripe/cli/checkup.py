"""Measuring of a machine what cannot be read: neighbours, noise, and the peak of matrix products."""

import asyncio
import platform
import threading
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pinstripe.api import artefact_finder, run_stoppable
from pinstripe.bench import Host, Limits, Session
from pinstripe.bench.noise import NoiseFloor, measure_noise
from pinstripe.cli.console import standard_error
from pinstripe.cli.interrupting import run_to_the_end
from pinstripe.configuration import Configuration, Workload
from pinstripe.diagnosis import Activity, Observations
from pinstripe.diagnosis.activity import watch
from pinstripe.errors import PinstripeError
from pinstripe.machine import Machine
from pinstripe.models import Overrides, resolve
from pinstripe.peak import Peak, PeakPrecision, machine_place, measure_peak
from pinstripe.pool import Setup, set_up

__all__ = ["check_up"]

_WATCH_S: Final = 3.0
_ROUNDS: Final = 6  # from here on the interval is a bootstrap's
_MODEL: Final = "random:minilm-l6"
_WORKLOAD: Final = Workload(scenario="single-stream", batch=1, sequence_tokens=128)
_LIMITS: Final = Limits(min_s=1.0, min_forwards=10, max_s=10.0)
_PRECISIONS: Final[tuple[PeakPrecision, ...]] = ("float32", "bfloat16")
_PREFERRED: Final = "torch-eager"  # needs no export


def check_up(seen: Observations) -> tuple[Observations, dict[str, Any]]:
    """Measure this machine for some minutes, with a progress bar.

    Returns:
        The observations with what was measured, and the details: `noise` with its `noise_reason` where there is none,
        and `peak_probes`.

    Raises:
        KeyboardInterrupt: Ctrl-C, SIGTERM or SIGHUP.
    """
    screen = standard_error()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    try:
        with Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal) as progress:
            task = progress.add_task("watching the neighbours", total=1 + 2 * _ROUNDS + len(_PRECISIONS))

            def step(description: str) -> None:
                progress.update(task, advance=1, description=description)

            return run_to_the_end(_check_up(seen, step))
    except KeyboardInterrupt:
        screen.print("stopped; nothing was kept, as doctor writes no records")
        raise


async def _check_up(seen: Observations, step: Callable[[str], None]) -> tuple[Observations, dict[str, Any]]:
    activity = await _activity()
    noise, reason = await _noise(seen, step)
    peaks = await _peaks(seen.machine, step)
    measured = replace(
        seen,
        activity=activity,
        noise_percent=noise.floor_percent if noise else None,
        peaks={peak.precision: peak.gflops for peak in peaks},
    )
    return measured, {"noise": noise, "noise_reason": reason, "peak_probes": peaks}


async def _activity() -> Activity:
    """Watch for a while, in another thread: that can be ended at any time."""
    ended = threading.Event()
    try:
        return await asyncio.to_thread(watch, _WATCH_S, ended.wait)
    finally:
        ended.set()


async def _noise(seen: Observations, step: Callable[[str], None]) -> tuple[NoiseFloor | None, str | None]:
    """Return the noise floor, or the reason why there is none."""
    ready = sorted((name for name, needed in (seen.engines or {}).items() if all(needed.values())), key=_preference)
    if not ready:
        return None, "no engine is installed"

    def show(repeat: int, setup: Setup, workload: Workload) -> None:
        step(f"noise: round {repeat + 1} of {_ROUNDS}, {setup.configuration.label}, {workload.label}")

    host = Host(kernel=platform.release(), python=platform.python_version(), libraries={})
    try:
        network = resolve(_MODEL, revision=None, overrides=Overrides(), file=None)
        setup = await run_stoppable(
            lambda stop: set_up(Configuration(engine=ready[0]), seen.machine, network, artefact_finder(network, stop))
        )
        session = Session(run="", network=network, machine=seen.machine, host=host, limits=_LIMITS)
        return await measure_noise(session, setup, _WORKLOAD, rounds=_ROUNDS, on_step=show), None
    except PinstripeError as error:
        return None, str(error)


def _preference(name: str) -> tuple[bool, str]:
    return name != _PREFERRED, name


async def _peaks(machine: Machine, step: Callable[[str], None]) -> list[Peak]:
    peaks = []
    for precision in _PRECISIONS:
        step(f"peak of matrix products, {precision}")
        peaks.append(await measure_peak([machine_place(machine)], precision, machine.isa))
    return peaks

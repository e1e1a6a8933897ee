"""All that the diagnosis rests on."""

import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import msgspec

from pinstripe.diagnosis.activity import Activity, read_load, watch
from pinstripe.diagnosis.refusals import Refusals, list_refusals
from pinstripe.engines import engine, engine_names
from pinstripe.knobs import read_host
from pinstripe.machine import (
    Counters,
    Machine,
    Memory,
    Power,
    read_counters,
    read_idle_ns,
    read_machine,
    read_memory,
    read_offline,
    read_power,
)
from pinstripe.machine.tree import Tree
from pinstripe.runtime import InstalledLibrary

__all__ = ["Engines", "Observations", "observe", "ready_engines"]

Engines = dict[str, dict[str, str | None]]
"""By engine: the version of each distribution that it needs, None where that is not installed."""


class Observations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was read of a machine. None is what was not looked at, as on a copy of another machine's files.

    Attributes:
        machine: Topology and limits.
        power: How the clocks are governed.
        memory: How much there is, and is free.
        offline: CPUs that are present and switched off.
        counters: Throttling and steal since the system or the control group was started.
        idle_ns: Time since the system was started in which the allowed CPUs had nothing to do, summed over CPUs; None
            where unknown.
        load: The host's load average of the last minute; None where unknown.
        activity: Who used our CPUs in a short sample.
        libraries: Allocators and OpenMP runtimes on disk.
        engines: What is installed for each engine.
        refused_knobs: Values that cannot be had here, and why, of the knobs that concern an engine that is installed.
        noise_percent: Half the width of the interval in which a configuration compares with itself, in per cent.
        peaks: Measured 10^9 floating-point operations a second for large matrix products, by precision; None where it
            could not be measured.
    """

    machine: Machine
    power: Power = Power()
    memory: Memory = Memory()
    offline: tuple[int, ...] = ()
    counters: Counters | None = None
    idle_ns: int | None = None
    load: float | None = None
    activity: Activity | None = None
    libraries: tuple[InstalledLibrary, ...] | None = None
    engines: Engines | None = None
    refused_knobs: Refusals | None = None
    noise_percent: float | None = None
    peaks: dict[str, float | None] | None = None


def observe(
    root: Path = Path("/"), *, watch_s: float = 0.5, sleep: Callable[[float], None] = time.sleep
) -> Observations:
    """Read a machine. No program is run, and no engine's library is imported.

    Args:
        root: As for `read_machine`. What only the running system shows (its activity, and what is installed on it) is
            looked at for `/` alone.
        watch_s: How long to watch the running system's CPUs, above 0.
        sleep: How to wait meanwhile.

    Raises:
        MachineError: As for `read_machine`.
    """
    is_live = Tree(root).is_live
    machine = read_machine(root)
    engines = _installed_engines() if is_live else None
    host = read_host(machine) if is_live else None
    return Observations(
        machine=machine,
        power=read_power(root),
        memory=read_memory(root),
        offline=read_offline(root),
        counters=read_counters(root),
        idle_ns=read_idle_ns(root),
        load=read_load(root),
        activity=watch(watch_s, sleep) if is_live else None,
        libraries=None if host is None else host.libraries,
        engines=engines,
        refused_knobs=None if host is None or engines is None else list_refusals(host, ready_engines(engines)),
    )


def ready_engines(engines: Engines) -> list[str]:
    """Return the engines of which everything is installed."""
    return [name for name, needed in engines.items() if all(needed.values())]


def _installed_engines() -> Engines:
    names = [name for name in engine_names() if name != "fake"]
    return {name: {needed: _version(needed) for needed in engine(name).distributions} for name in names}


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None

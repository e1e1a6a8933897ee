"""Words to configurations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from msgspec.structs import replace

from pinstripe.cli.engine_options import python_of, read_engines, read_pythons, read_ways
from pinstripe.cli.group_options import read_alternatives
from pinstripe.cli.knob_options import read_knobs, read_values
from pinstripe.cli.options import choice, split_list
from pinstripe.configuration import Configuration, Pin, Threads
from pinstripe.engines import Precision
from pinstripe.errors import UsageError
from pinstripe.knobs import Host, read_host
from pinstripe.machine import Machine
from pinstripe.placement import CoreKindWish, SmtUse, Strategy, Wish, place

__all__ = ["ConfigurationWords", "read_configurations"]

_PER_CORE: Final = "per-core"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationWords:
    """The options of `bench` that say how a model runs, as they were given; see there."""

    engine: str
    precision: str
    instances: str | None
    cores: str | None
    groups: str | None
    baseline: str | None
    pin: str
    threads: str
    strategy: str
    smt: str
    core_kind: str
    reserve: int
    bind: str | None
    memory: str
    knobs: Mapping[str, str | None]
    file: str | None
    option: Sequence[str]
    calibration: str | None
    python: Sequence[str]


def read_configurations(words: ConfigurationWords, machine: Machine) -> list[Configuration]:
    """Return the configurations that options ask for: the baseline, then each engine in each way in each shape.

    Raises:
        UsageError: The options contradict each other, or are not understood.
    """
    host = read_host(machine)
    pythons = read_pythons(words.python)
    engines = read_engines(words.engine, pythons)
    shapes = _shapes(words, machine, host)
    ways = read_ways(
        engines,
        precisions=[choice(text, Precision, "--precision") for text in split_list(words.precision, "--precision", str)],
        options=words.option,
        file=words.file,
        calibration=words.calibration,
        pythons=pythons,
    )
    knobs = read_knobs(words.knobs, {(way["engine"], way["precision"]): None for way in ways}, host)
    return _baseline(words.baseline, pythons) + [
        replace(shape, **way, knobs=turned)
        for way in ways
        for turned in knobs[way["engine"], way["precision"]]
        for shape in shapes
    ]


def _shapes(words: ConfigurationWords, machine: Machine, host: Host) -> list[Configuration]:
    """Return configurations without an engine: every size of the instances with every memory policy."""
    smts = [choice(text, SmtUse, "--smt") for text in split_list(words.smt, "--smt", str)]
    wish = Wish(
        cores=1,
        strategy=choice(words.strategy, Strategy, "--strategy"),
        smt=smts[0],
        core_kind=choice(words.core_kind, CoreKindWish, "--core-kind"),
        reserve=words.reserve,
    )
    first = Configuration(
        engine="",
        pin=choice(words.pin, Pin, "--pin"),
        threads=choice(words.threads, Threads, "--threads"),
        strategy=wish.strategy,
        core_kind=wish.core_kind,
        reserve=words.reserve,
        bind=words.bind,
    )
    if words.bind is not None and words.instances is not None:
        raise UsageError(f"--bind {words.bind!r} says how many instances there are; leave --instances out")

    def number(text: str) -> int:
        if text == _PER_CORE:
            return len(place(machine, wish).instances)
        if not text.isdecimal():
            raise UsageError(f"--instances {text!r} is not understood; use numbers, or {_PER_CORE}")
        return int(text)

    sizes: list[dict[str, Any]] = []
    if words.groups is None or words.instances or words.cores:
        counts = split_list(words.instances or "1", "--instances", number)
        cores: list[int | None] = [None] if words.cores is None else [*split_list(words.cores, "--cores", int)]
        sizes += [{"instances": count, "cores": size} for count, size in product(counts, cores)]
    if words.groups is not None:
        sizes += [{"groups": groups} for groups in read_alternatives(words.groups)]
    memories = read_values("memory_policy", words.memory, host)
    return [
        replace(first, **size, smt=threads, memory_policy=memory)
        for size, threads, memory in product(sizes, smts, memories)
    ]


def _baseline(engine: str | None, pythons: Mapping[str | None, str]) -> list[Configuration]:
    if engine is None:
        return []
    return [Configuration(engine=engine, pin="none", threads="framework", python=python_of(engine, pythons))]

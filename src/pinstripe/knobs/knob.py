"""What a knob is: something that is set when a worker starts, and read back from it when it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

import msgspec

from pinstripe.engines import Engine, EngineReport, OptionValue, Precision
from pinstripe.knobs.host import Host
from pinstripe.runtime import HugePages, MemoryPolicyEffect, ProcessEvidence, ProcessObservation

__all__ = ["AUTO", "Context", "Effective", "Knob", "KnobEffect", "Seen", "Setting"]

AUTO: Final = "auto"
"""The value that asks for nothing: what is in effect anyway is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """For what a value is meant.

    Attributes:
        host: What the host has.
        engine: The engine; None for no particular one.
        cpus: CPUs of the instance, one for each compute thread; None where it is not bound.
        threads: Compute threads of the instance, also where it is not bound; None if they are not known.
        precision: What the engine computes in; None for no particular one.
        chosen: All knobs that are asked for, by name.
    """

    host: Host
    engine: Engine | None = None
    cpus: tuple[int, ...] | None = None
    threads: int | None = None
    precision: Precision | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a value changes in how a worker starts. Nothing of it touches this process.

    Attributes:
        environment: Variables of the worker; None removes one that it would inherit.
        preload: Libraries that are loaded before all others, absolute paths.
        unload: Entries of the inherited LD_PRELOAD that the worker must not get.
        huge_pages: See `StartRequest`.
        options: Options of the engine, by name.
    """

    environment: Mapping[str, str | None] = field(default_factory=dict)
    preload: tuple[str, ...] = ()
    unload: tuple[str, ...] = ()
    huge_pages: HugePages = "inherit"
    options: Mapping[str, OptionValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was found out about a worker that has run.

    Attributes:
        engine: The engine.
        report: What it says of itself.
        process: What the kernel says of the process.
        observation: What the process found out about itself.
        memory: Its memory policy.
        chosen: All knobs that were asked for, by name.
        cpus: CPUs of the instance; None where it is not bound.
        cores: Sets of sibling CPUs of the machine's cores.
    """

    engine: Engine
    report: EngineReport
    process: ProcessEvidence
    observation: ProcessObservation
    memory: MemoryPolicyEffect
    cpus: tuple[int, ...] | None
    cores: tuple[tuple[int, ...], ...]
    chosen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Effective:
    """What is in effect.

    Attributes:
        value: In the words of the knob, so that it can be compared with what was asked for; `unknown` where it cannot
            be told, and other words for what the knob has no value for.
        why: What shows it, for people, such as `memory map shows glibc`.
    """

    value: str
    why: str


class KnobEffect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A knob in a running worker.

    Attributes:
        knob: Its name.
        requested: What was asked for; `auto` for nothing.
        effective: What is in effect.
        why: What shows it.
    """

    knob: str
    requested: str
    effective: str
    why: str

    @property
    def problem(self) -> str | None:
        """A sentence on the difference between the two; None where there is none."""
        if self.requested in {AUTO, self.effective}:
            return None
        return f"{self.knob}: asked {self.requested}, {self.why}"


class Knob(Protocol):
    """Something that is set when a worker starts."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """What it does, one line for people."""
    accepts: ClassVar[str]
    """Its values in words, such as `0 to 10000 (milliseconds), or infinite`."""
    default: ClassVar[str]
    """`auto`, or the value that holds where none is named."""

    def values(self) -> tuple[str, ...]:
        """Return its values; of numbers those worth a try. Without `auto`."""
        ...

    def is_value(self, text: str) -> bool:
        """Return whether a text is one of its values; only canonical forms are (`8`, not `08`)."""
        ...

    def stranger(self, engine: Engine) -> str | None:
        """Return why the knob does not concern an engine, such as `has no OpenMP threads`; None if it does."""
        ...

    def refusal(self, value: str, context: Context) -> str | None:
        """Return why a value cannot be had there and what to do, such as the package to install; None if it can.

        Not called for `auto`, nor for engines that it does not concern.
        """
        ...

    def setting(self, value: str, context: Context) -> Setting:
        """Return what a value changes; called for those that are not refused, and not for `auto`."""
        ...

    def effective(self, seen: Seen) -> Effective:
        """Return what is in effect in a worker whose engine it concerns."""
        ...

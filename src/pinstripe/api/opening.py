"""From the name of a model, or a plan, to everything that is needed to start it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from pinstripe.api.artefacts import artefact_finder
from pinstripe.api.defaults import default_configuration
from pinstripe.api.wanted import Wanted
from pinstripe.configuration import BatchRule, Configuration, DispatchRule, Plan, read_plan
from pinstripe.engines import Artefact
from pinstripe.errors import UsageError
from pinstripe.machine import Machine, read_machine, read_memory
from pinstripe.models import Network, Overrides, Tokenizer, load_tokenizer, resolve
from pinstripe.pool import Setup, set_up

__all__ = ["Opening", "Prepared"]

_PLAN_SUFFIX = ".toml"
_TOKENS_A_CORE = 1024
"""Most tokens of a batch for each core of an instance where nobody says it. Fewer cost more batches; with more, what
passes from one layer to the next no longer fits into a core's caches. MiniLM on one core computes 1 % fewer tokens a
second at 512, 3 to 7 % fewer at 4096 and up to 19 % fewer at 8192 (`benchmarks/token_budget.py`)."""


_NOTHING_SAID: Final = Wanted()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model that can be started.

    Attributes:
        network: The model.
        setup: How its instances are started.
        batching: How texts are put into batches: a rule for each group of instances, or one without groups.
        dispatch: How batches are given to groups of instances.
        notes: What was decided on the way, and what was not taken, a sentence each.
        truncate: Whether texts that are too long are cut; else they are errors.
    """

    network: Network
    setup: Setup
    batching: tuple[BatchRule, ...]
    dispatch: DispatchRule
    notes: tuple[str, ...]
    truncate: bool

    def load_tokenizer(self) -> Tokenizer:
        """Return the model's tokenizer.

        Raises:
            ModelError: It has none, or it is damaged.
        """
        return load_tokenizer(self.network)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is asked for: a model, or a plan, and how it should run.

    Attributes:
        model: Directory, hub id, `package:NAME`, or a plan's file (`.toml`), which says everything else but `batching`.
        wanted: What was said of how it runs.
        configuration: Everything about how it runs, instead.
        batching: How texts are put into batches; None for what the plan says, else sorted batches of up to 1024 tokens
            for each core of an instance; with groups, of one whose class they are in.
        revision: Revision of a hub model.
        overrides: What the user says of the model against its files.
        truncate: See `Prepared`.
    """

    model: str
    wanted: Wanted = _NOTHING_SAID
    configuration: Configuration | None = None
    batching: BatchRule | None = None
    revision: str | None = None
    overrides: Overrides | None = None
    truncate: bool = True

    def prepare(self, stop: threading.Event | None = None) -> Prepared:
        """Find the model, place its instances, make the file that they load; may take minutes the first time.

        Args:
            stop: Ends the making when another thread sets it; None if none will.

        Raises:
            PinstripeError: It cannot be had so; the message says what can.
        """
        if self.model.endswith(_PLAN_SUFFIX):
            plan = self._plan()
            rules = (self.batching or plan.batching, plan.dispatch)
            model = self._path_in(plan.model)
            return self._prepared(model, plan.revision, plan.overrides, rules, choose=self._as_in(plan), stop=stop)
        if self.configuration is not None and self.wanted != _NOTHING_SAID:
            raise UsageError(
                "a configuration says engine, precision, instances and cores; leave these out, or leave it out"
            )
        overrides = self.overrides or Overrides()
        return self._prepared(
            self.model, self.revision, overrides, (self.batching, None), choose=self._choose, stop=stop
        )

    def _plan(self) -> Plan:
        others = (self.configuration, self.revision, self.overrides)
        if self.wanted != _NOTHING_SAID or any(one is not None for one in others):
            raise UsageError(f"{self.model} is a plan and says how the model runs; edit it, or name the model instead")
        return read_plan(Path(self.model))

    def _path_in(self, plan_path: str) -> str:
        """Return a path of the plan; one that begins with a dot begins where the plan lies."""
        is_relative = plan_path.startswith(("./", "../"))
        return str(Path(self.model).parent / plan_path) if is_relative else plan_path

    def _as_in(self, plan: Plan) -> "Chooser":
        calibration = plan.configuration.calibration
        configuration = replace(plan.configuration, calibration=calibration and self._path_in(calibration))
        return lambda *_: (configuration, ())

    def _choose(
        self, machine: Machine, network: Network, make: Callable[[Configuration], Artefact]
    ) -> tuple[Configuration, tuple[str, ...]]:
        if self.configuration is not None:
            return self.configuration, ()
        return default_configuration(
            machine,
            network,
            make,
            memory_bytes=read_memory().available_bytes,
            wanted=self.wanted,
        )

    def _prepared(
        self,
        model: str,
        revision: str | None,
        overrides: Overrides,
        rules: tuple[BatchRule | None, DispatchRule | None],
        *,
        choose: "Chooser",
        stop: threading.Event | None,
    ) -> Prepared:
        machine = read_machine()
        network = resolve(model, revision=revision, overrides=overrides)
        make = artefact_finder(network, stop)
        configuration, notes = choose(machine, network, make)
        setup = set_up(configuration, machine, network, make)
        warnings = setup.placement.warnings if setup.placement else ()
        batching, dispatch = rules
        return Prepared(
            network=network,
            setup=setup,
            batching=_batching(setup, batching),
            dispatch=dispatch or DispatchRule(),
            notes=(*notes, *warnings),
            truncate=self.truncate,
        )


def _batching(setup: Setup, said: BatchRule | None) -> tuple[BatchRule, ...]:
    """Return the rule of each group of instances; they are numbered in the order of the groups."""
    threads = iter([spec.load.threads or 1 for spec in setup.specs])
    counts = [group.instances for group in setup.configuration.groups] or [setup.configuration.instances]
    most = [max(islice(threads, count)) for count in counts]
    return tuple(said or BatchRule(tokens=_TOKENS_A_CORE * number) for number in most)


Chooser = Callable[[Machine, Network, Callable[[Configuration], Artefact]], tuple[Configuration, tuple[str, ...]]]

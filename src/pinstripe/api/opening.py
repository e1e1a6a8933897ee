"""From the name of a model, or a plan, to everything that is needed to start it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pinstripe.api.defaults import default_configuration
from pinstripe.configuration import BatchRule, Configuration, Plan, read_plan
from pinstripe.engines import Artefact, engine, prepare
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


@dataclass(frozen=True, slots=True)
class Prepared:
    """A model that can be started.

    Attributes:
        network: The model.
        setup: How its instances are started.
        batching: How texts are put into batches.
        notes: What was decided on the way, and what was not taken, a sentence each.
    """

    network: Network
    setup: Setup
    batching: BatchRule
    notes: tuple[str, ...]

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
        engine: Name of the engine; None for the fastest that is installed.
        instances: Number of instances; None for one a core.
        cores: Cores of each instance; None for an equal share.
        configuration: Everything about how it runs, instead of the three before.
        batching: How texts are put into batches; None for what the plan says, else sorted batches of up to 1024 tokens
            for each core of an instance.
        revision: Revision of a hub model.
        overrides: What the user says of the model against its files.
    """

    model: str
    engine: str | None = None
    instances: int | None = None
    cores: int | None = None
    configuration: Configuration | None = None
    batching: BatchRule | None = None
    revision: str | None = None
    overrides: Overrides | None = None

    def prepare(self) -> Prepared:
        """Find the model, place its instances, make the file that they load; may take minutes the first time.

        Raises:
            PinstripeError: It cannot be had so; the message says what can.
        """
        if self.model.endswith(_PLAN_SUFFIX):
            plan = self._plan()
            return _prepare(
                self._model_of(plan), plan.revision, plan.overrides, self.batching or plan.batching, _as_in(plan)
            )
        named = (self.engine, self.instances, self.cores)
        if self.configuration is not None and any(one is not None for one in named):
            raise UsageError("a configuration says engine, instances and cores; leave these out, or leave it out")
        return _prepare(self.model, self.revision, self.overrides or Overrides(), self.batching, self._choose)

    def _plan(self) -> Plan:
        others = (self.engine, self.instances, self.cores, self.configuration, self.revision, self.overrides)
        if any(one is not None for one in others):
            raise UsageError(f"{self.model} is a plan and says how the model runs; edit it, or name the model instead")
        return read_plan(Path(self.model))

    def _model_of(self, plan: Plan) -> str:
        """Return the plan's model; a path that begins with a dot begins where the plan lies."""
        is_relative = plan.model.startswith(("./", "../"))
        return str(Path(self.model).parent / plan.model) if is_relative else plan.model

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
            engine_name=self.engine,
            instances=self.instances,
            cores=self.cores,
        )


Chooser = Callable[[Machine, Network, Callable[[Configuration], Artefact]], tuple[Configuration, tuple[str, ...]]]


def _as_in(plan: Plan) -> Chooser:
    return lambda *_: (plan.configuration, ())


def _prepare(
    model: str, revision: str | None, overrides: Overrides, batching: BatchRule | None, choose: Chooser
) -> Prepared:
    machine = read_machine()
    network = resolve(model, revision=revision, overrides=overrides)
    make = partial(_artefact, network)
    configuration, notes = choose(machine, network, make)
    setup = set_up(configuration, machine, network, make)
    warnings = setup.placement.warnings if setup.placement else ()
    threads = max(spec.load.threads or 1 for spec in setup.specs)
    return Prepared(network, setup, batching or BatchRule(tokens=_TOKENS_A_CORE * threads), (*notes, *warnings))


def _artefact(network: Network, configuration: Configuration) -> Artefact:
    return prepare(engine(configuration.engine), network, file=configuration.file)

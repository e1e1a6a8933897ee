"""How a model runs: everything that is chosen before a worker starts."""

from typing import Final, Literal

import msgspec

from pinstripe.configuration.groups import InstanceGroup, check_groups, groups_label, instance_sizes
from pinstripe.engines import OptionValue, Precision, shown
from pinstripe.errors import ConfigurationError
from pinstripe.knobs import AUTO, OF_PLACEMENT, check_knobs, knob_names
from pinstripe.placement import CoreKindWish, SmtUse, Strategy, Wish
from pinstripe.runtime import MemoryPolicy

__all__ = ["Configuration", "Pin", "Threads"]

Pin = Literal["cores", "none"]
Threads = Literal["auto", "framework"]
_USUAL_INSTANCES: Final = 1


class Configuration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Engine, precision, placement shape and knobs.

    Attributes:
        engine: Name of the engine.
        precision: Precision of the computation.
        instances: Copies of the model, at least 1; with `bind`, one a part; with `groups`, always those of all groups.
        cores: Physical cores of each instance, at least 1; None for an equal share of all usable cores.
        groups: Instances of different sizes instead, numbered in this order; see `check_groups`.
        pin: `cores` binds each instance to its own cores; `none` leaves placing to the kernel.
        threads: `auto` runs one compute thread on each CPU of an instance; `framework` leaves the number to the
            framework, which is what people have today. The latter is a baseline only: it needs `pin="none"`.
        strategy: See `Wish`.
        smt: See `Wish`.
        core_kind: See `Wish`.
        reserve: See `Wish`.
        bind: See `Wish`.
        memory_policy: Where the memory of an instance comes from.
        file: Exported file to use, relative to the model's directory; None to let pinstripe choose.
        calibration: File of texts from which a `static` quantization takes its scales; None for any other.
        python: Interpreter of the environment that the engine is installed in; None for this one's.
        options: Options of the engine, by name.
        knobs: What else is set when a worker starts, by name; those that are not named are left as they are.
    """

    engine: str
    precision: Precision = "float32"
    instances: int = _USUAL_INSTANCES
    cores: int | None = None
    groups: tuple[InstanceGroup, ...] = ()
    pin: Pin = "cores"
    threads: Threads = "auto"
    strategy: Strategy = "close"
    smt: SmtUse = "one"
    core_kind: CoreKindWish = "performance"
    reserve: int = 0
    bind: str | None = None
    memory_policy: MemoryPolicy = "auto"
    file: str | None = None
    calibration: str | None = None
    python: str | None = None
    options: dict[str, OptionValue] = {}
    knobs: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Refuse combinations that cannot run as they read.

        Raises:
            ConfigurationError: The fields contradict each other.
        """
        if self.instances < 1:
            raise ConfigurationError(f"{self.instances} instances were asked for; ask for at least 1")
        if self.groups:
            self._check_groups()
            msgspec.structs.force_setattr(self, "instances", self._grouped)
        if self.calibration is not None and self.precision != "int8":
            raise ConfigurationError(
                f"--calibration {self.calibration} is for int8, and {self.precision} was asked for; leave one out"
            )
        if self.threads == "framework" and self.pin != "none":
            raise ConfigurationError(
                "--threads framework on pinned cores would start more threads than an instance has cores; "
                "use it with --pin none (the unpinned baseline), or leave it out"
            )
        if self.threads == "framework" and self.wish != Wish(instances=self.instances):
            raise ConfigurationError(
                "--threads framework leaves the number of threads and their places to the framework; "
                "leave out --cores, --bind, --reserve, --strategy, --smt and --core-kind"
            )
        self._check_knobs()
        if self.pin == "none" and self.memory_policy not in {"auto", "none"}:
            raise ConfigurationError(
                f"--memory {self.memory_policy} needs instances that have a place; leave out --pin none or --memory"
            )

    def _check_groups(self) -> None:
        check_groups(self.groups)
        if self.instances not in {_USUAL_INSTANCES, self._grouped} or self.cores is not None:
            raise ConfigurationError(
                f"groups say how many instances there are ({self._grouped}) and how many cores each has; "
                "leave out instances and cores"
            )
        if self.bind is not None or self.threads == "framework":
            other = f"--bind {self.bind}" if self.bind is not None else "--threads framework"
            raise ConfigurationError(f"groups and {other} both say where instances run; leave one out")

    @property
    def _grouped(self) -> int:
        return sum(group.instances for group in self.groups)

    def _check_knobs(self) -> None:
        check_knobs(self.knobs)
        if twice := [name for name in OF_PLACEMENT if name in self.knobs]:
            name, value = twice[0], self.knobs[twice[0]]
            raise ConfigurationError(f'write {name} = "{value}" beside knobs, not in it: it is a field of its own')
        if options := [name for name in self.options if name in knob_names()]:
            one = options[0]
            raise ConfigurationError(
                f"{one} is a knob, not an option of {self.engine}; write --{one.replace('_', '-')} for bench, "
                f"--knob {one}={shown(self.options[one])}, or put it into knobs of the plan"
            )

    @property
    def all_knobs(self) -> dict[str, str]:
        """All knobs that ask for something, those that are fields included."""
        named = {**self.knobs, "smt": self.smt, "memory_policy": self.memory_policy}
        if self.pin == "none" or self.bind is not None:
            del named["smt"]  # which hardware threads they get is not placement's choice
        return {name: value for name, value in named.items() if value != AUTO}

    @property
    def wish(self) -> Wish:
        """The part of the configuration that placement answers."""
        return Wish(
            instances=None if self.bind is not None or self.groups else self.instances,
            cores=self.cores,
            sizes=instance_sizes(self.groups),
            strategy=self.strategy,
            smt=self.smt,
            core_kind=self.core_kind,
            reserve=self.reserve,
            bind=self.bind,
        )

    @property
    def label(self) -> str:
        """A short name for tables, such as `openvino int8 2x4` (instances x cores); see also `groups_label`."""
        if self.threads == "framework":
            shape = "unpinned" if self.instances == 1 else f"{self.instances} unpinned"
        elif self.bind is not None:
            shape = f"bound {self.bind}"
        elif self.groups:
            shape = groups_label(self.groups)
        else:
            shape = f"{self.instances}x{self.cores if self.cores is not None else '?'}"
        unusual = {name: getattr(self, name) for name in _SHOWN if getattr(self, name) != getattr(_USUAL, name)}
        if self.threads == "framework":
            del unusual["pin"]
        precision = () if self.precision == _USUAL.precision else (self.precision,)
        return " ".join(
            [
                self.engine,
                *precision,
                shape,
                *(f"{name}={shown(value)}" for name, value in {**unusual, **self.options, **self.knobs}.items()),
            ]
        )


_SHOWN: Final = ("pin", "strategy", "smt", "core_kind", "reserve", "memory_policy", "file", "calibration", "python")
_USUAL: Final = Configuration(engine="")

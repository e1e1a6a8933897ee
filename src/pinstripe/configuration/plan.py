"""A plan: how one model runs on one machine, in a file that people read and edit."""

from pathlib import Path
from typing import Final

import msgspec

from pinstripe.configuration.batching import BatchRule
from pinstripe.configuration.configuration import Configuration
from pinstripe.configuration.dispatching import DispatchRule
from pinstripe.errors import ConfigurationError, UsageError
from pinstripe.models import Overrides

__all__ = ["Plan", "read_plan"]

_FORMAT: Final = 1
_LIMIT_BYTES: Final = 1 << 20


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model runs: what `bench` measured, in the form that `embed` and `pinstripe.open` run.

    Attributes:
        format: Version of this format.
        model: Directory, hub id or package, as on the command line; one that begins with `./` or `../` is relative to
            the plan.
        revision: Revision of a hub model.
        overrides: What the user says of the model.
        configuration: Engine, instances and cores of each, or groups of these; core counts and rules, never numbers of
            CPUs.
        batching: How texts are put into batches; None for the usual way, see `pinstripe.open`.
        dispatch: How waiting texts are given to instances, where there are several groups of these or requests are
            served; None for the usual way.
    """

    format: int = _FORMAT
    model: str
    revision: str | None = None
    overrides: Overrides = msgspec.field(default_factory=Overrides)
    configuration: Configuration
    batching: BatchRule | None = None
    dispatch: DispatchRule | None = None

    def __post_init__(self) -> None:
        """Refuse what holds for one machine at one time only, or is a baseline and nothing to run.

        Raises:
            ConfigurationError: The plan names CPUs, leaves threads to the framework, or has another format.
        """
        if self.format != _FORMAT:
            raise ConfigurationError(f"format {self.format} of a plan is not known; this pinstripe reads {_FORMAT}")
        if self.configuration.bind is not None:
            raise ConfigurationError("a plan cannot bind to CPUs by number; name instances and cores instead")
        if self.configuration.threads == "framework":
            raise ConfigurationError(
                "threads = 'framework' is the unpinned baseline, which no plan may run; leave it out"
            )


def read_plan(path: Path) -> Plan:
    """Read a plan from a TOML file; unknown fields are refused.

    Raises:
        ConfigurationError: The file cannot be read, or is not a valid plan; the message names the field.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LIMIT_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"cannot read the plan {path}: {error.strerror}") from error
    if len(content) > _LIMIT_BYTES:
        raise ConfigurationError(f"{path} is larger than any plan ({_LIMIT_BYTES >> 20} MiB); is it another file?")
    try:
        return msgspec.toml.decode(content, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError, UsageError) as error:
        reason = " ".join(str(error).split())
        hint = "; the values of knobs stand in quotes" if "configuration.knobs[" in reason else ""
        raise ConfigurationError(f"{path} is not a valid plan: {reason}{hint}") from error

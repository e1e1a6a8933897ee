"""What somebody said of how a model should run."""

from typing import get_args

import msgspec

from pinstripe.configuration import InstanceGroup
from pinstripe.engines import OptionValue, Precision
from pinstripe.errors import UsageError
from pinstripe.knobs import check_knobs

__all__ = ["Wanted"]


class Wanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a `Configuration`; what is None is for pinstripe to choose.

    Attributes:
        engine: Name of the engine; None for the fastest that is installed and has the precision.
        precision: Precision of the computation.
        instances: Number of instances; None for one a core.
        cores: Cores of each; None for an equal share.
        groups: Groups of instances instead; see `Configuration`.
        file: See `Configuration`.
        calibration: See `Configuration`.
        python: See `Configuration`; needs an engine.
        options: See `Configuration`; need an engine.
        knobs: See `Configuration`.
    """

    engine: str | None = None
    precision: Precision = "float32"
    instances: int | None = None
    cores: int | None = None
    groups: tuple[InstanceGroup, ...] = ()
    file: str | None = None
    calibration: str | None = None
    python: str | None = None
    options: dict[str, OptionValue] = {}
    knobs: dict[str, str] = {}

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            UsageError: The precision or a knob is not known, groups are named beside instances or cores, or what only
                means something for a certain engine was said without one.
        """
        check_knobs(self.knobs)
        if self.precision not in get_args(Precision):
            known = ", ".join(get_args(Precision))
            raise UsageError(f"precision {self.precision!r} is not known; use one of {known}")
        if self.groups and (self.instances is not None or self.cores is not None):
            raise UsageError("groups say how many instances there are and how many cores each has; leave these two out")
        if self.engine is None and (said := self.python or self.file or next(iter(self.options), None)):
            raise UsageError(f"{said} is for a certain engine, and none is named; name it, as with --engine openvino")

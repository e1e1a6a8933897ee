"""What unfinished work is for: it may be gone on with only for the same."""

import msgspec

from pinstripe.bulk.job import BadLines, BulkJob
from pinstripe.configuration import Configuration
from pinstripe.engines import Precision
from pinstripe.models import Network

__all__ = ["Manifest", "make_manifest"]


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that results depend on. How many instances there are may change from one start to the next.

    Attributes:
        format: Version of the directory's layout.
        model: The network, without what depends on where its files lie.
        engine: Engine that computed.
        precision: Precision that it computed in.
        options: Options of the engine.
        field: See `BulkJob`.
        prompt: See `BulkJob`.
        bad_lines: See `BulkJob`.
    """

    format: int = 1
    model: Network
    engine: str
    precision: Precision
    options: dict[str, str | int | float | bool]
    field: str
    prompt: str | None
    bad_lines: BadLines

    def difference(self, other: "Manifest") -> str | None:
        """Return the first thing in which they differ, in words; None if they do not."""
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine == theirs:
                continue
            if name == "model":
                return f"the model was another one or has changed ({_which(theirs)} then, {_which(mine)} now)"
            return f"{name.replace('_', '-')} was {theirs!r} and is {mine!r} now"
        return None


def make_manifest(job: BulkJob, network: Network, configuration: Configuration) -> Manifest:
    """Describe a job for a model."""
    dense = tuple(msgspec.structs.replace(one, weights="") for one in network.dense)
    return Manifest(
        model=msgspec.structs.replace(network, name="", directory="", revision=None, dense=dense),
        engine=configuration.engine,
        precision=configuration.precision,
        options=configuration.options,
        field=job.field,
        prompt=job.prompt,
        bad_lines=job.bad_lines,
    )


def _which(network: Network) -> str:
    return f"{network.model_type} {network.fingerprint[:12]}"

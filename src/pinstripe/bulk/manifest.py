"""What unfinished work is for: it may be gone on with only for the same."""

import glob
from pathlib import Path

import msgspec

from pinstripe.bulk.job import BulkJob
from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact, Precision, shown
from pinstripe.models import Network, fingerprint

__all__ = ["Manifest", "make_manifest"]


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that results depend on. How many instances there are may change from one start to the next.

    Attributes:
        format: Version of the directory's layout.
        model: The network, without what depends on where its files lie.
        engine: Engine that computed.
        precision: Precision that it computed in.
        options: Options of the engine.
        knobs: Knobs that were asked for: some change how numbers are rounded.
        graph: Fingerprint of the file that the engine loaded, if that came with the model; None for one that was made
            from the weights.
        calibration: Digest of the texts that a quantization took its scales from; None if there are none.
        field: See `BulkJob`.
        prompt: See `BulkJob`.
    """

    format: int = 1
    model: Network
    engine: str
    precision: Precision
    options: dict[str, str | int | float | bool]
    knobs: dict[str, str]
    graph: str | None
    calibration: str | None
    field: str
    prompt: str | None

    def difference(self, other: "Manifest") -> str | None:
        """Return the first thing in which they differ, in words; None if they do not."""
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine == theirs:
                continue
            if name == "model":
                return _model_difference(mine, theirs)
            return f"{name.replace('_', '-')} was {_words(theirs)} and is {_words(mine)} now"
        return None


def _words(value: object) -> str:
    """Return a value as people write it."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={shown(one)}" for name, one in value.items()) or "none"
    return repr(value)


def make_manifest(job: BulkJob, network: Network, configuration: Configuration, artefact: Artefact) -> Manifest:
    """Describe a job for a model; reads the file that the engine loaded. Raises OSError."""
    dense = tuple(msgspec.structs.replace(one, weights="") for one in network.dense)
    return Manifest(
        model=msgspec.structs.replace(network, name="", directory="", revision=None, dense=dense),
        engine=configuration.engine,
        precision=configuration.precision,
        options=configuration.options,
        knobs=configuration.knobs,
        graph=_graph(artefact),
        calibration=artefact.calibration,
        field=job.field,
        prompt=job.prompt,
    )


def _graph(artefact: Artefact) -> str | None:
    if artefact.format in {"none", "safetensors"} or artefact.origin == "export":
        return None
    path = Path(artefact.path)
    # With the weights beside it, such as `model.onnx.data` or `openvino_model.bin`.
    return fingerprint([file for file in path.parent.glob(f"{glob.escape(path.stem)}*") if file.is_file()])


def _model_difference(mine: Network, theirs: Network) -> str:
    """Return what differs: the files, or else what was made of them by overrides."""
    for name, what in (("fingerprint", "the model"), ("tokenizer_fingerprint", "the model's tokenizer")):
        now, then = getattr(mine, name), getattr(theirs, name)
        if now != then:
            return f"{what} was another one or has changed ({then[:12]} then, {now[:12]} now)"
    field = next(name for name in mine.__struct_fields__ if getattr(mine, name) != getattr(theirs, name))
    return f"the model's {field.replace('_', ' ')} was {getattr(theirs, field)!r} and is {getattr(mine, field)!r} now"

"""Where a model comes from."""

import os
import re
from pathlib import Path

from pinstripe.errors import ModelError
from pinstripe.models.hub import download
from pinstripe.models.network import Network
from pinstripe.models.overrides import Overrides
from pinstripe.models.package import installed_package, model_in_package
from pinstripe.models.random_weights import random_model
from pinstripe.models.reader import read_network

__all__ = ["resolve"]

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def resolve(
    source: str, *, revision: str | None = None, overrides: Overrides | None = None, file: str | None = None
) -> Network:
    """Return the model that a source names, fetching or making its files if they are not there yet.

    Args:
        source: A local directory in Hugging Face layout; `package:NAME` for a model inside an installed Python package;
            `random:SHAPE` for random weights of a published shape (`bert-base`, `bert-large`, `minilm-l6`,
            `distilbert`); or a hub id `organisation/name`. A directory of that name comes before the hub.
        revision: Branch, tag or commit of a hub id.
        overrides: What to believe against the model's files.
        file: An exported graph in the model's directory that is going to be used. Of a hub id it is fetched, with the
            files of its weights; by default, only float32 graphs under their usual names are.

    Raises:
        ModelError: There is no such model, or it cannot be read or run, or the overrides don't fit it.
        ExecutionError: Random weights cannot be written to the cache.
    """
    try:
        directory, commit = _locate(source, revision, file)
        return read_network(directory, name=source, revision=commit, overrides=overrides or Overrides())
    except OSError as error:
        where = error.filename or source
        raise ModelError(f"{where} cannot be read ({error.strerror}); check the name and its permissions") from error


def _locate(source: str, revision: str | None, file: str | None) -> tuple[Path, str | None]:
    """Return the directory of a model, and its commit if it is from the hub."""
    if _is_hub_id(source):
        return download(source, revision, file)
    if revision is not None:
        raise ModelError(f"revision {revision!r} was given, but {source} is not a hub id; leave it out")
    kind, colon, name = source.partition(":")
    if colon and kind == "package":
        return model_in_package(name), None
    if colon and kind == "random":
        return random_model(name), None
    return _local(source), None


def _is_hub_id(source: str) -> bool:
    """Tell `organisation/name` from a path: it has one slash, and neither itself nor its first part is here."""
    if not _HUB_ID.fullmatch(source) or source.startswith("."):
        return False
    return not Path(source).exists() and not Path(source.partition("/")[0]).is_dir()


def _local(source: str) -> Path:
    path = Path(os.path.expanduser(source))  # noqa: PTH111 - pathlib's raises for the home of an unknown user
    if source != source.encode(errors="replace").decode():
        raise ModelError(f"the name {source!r} is not UTF-8, as records and messages need; rename it, or make a link")
    if source and path.is_dir():
        return path.resolve()
    if source and path.exists() and path.suffix == ".toml":
        raise ModelError(f"{source} is a plan, which embed and pinstripe.open run; name the model that it names")
    if source and path.exists():
        raise ModelError(f"{source} is a file; name the directory of the model")
    if package := installed_package(source):
        raise ModelError(f"there is no directory {source!r}; did you mean package:{package}?")
    kinds = "package:NAME, random:SHAPE or a hub id organisation/name"
    raise ModelError(f"there is no directory {source!r}; name one, or {kinds}")

"""Models from the Hugging Face hub, or from its local cache."""

import glob
from pathlib import Path, PurePosixPath

from pinstripe.errors import ModelError
from pinstripe.models.artefacts import USUAL_GRAPHS

__all__ = ["download"]

# Everything a model may need and nothing else: no pickles (.bin, .pt), no weights of other frameworks (.h5, .msgpack).
# `*` matches across folders.
_PATTERNS = ("*.json", "*.txt", "*.safetensors", "*.model")


def download(repository: str, revision: str | None, file: str | None = None) -> tuple[Path, str]:
    """Return the directory with a model's files, fetching those that are not cached, and the commit they are of.

    With `HF_HUB_OFFLINE=1`, or without a network, the cached copy is used.

    Args:
        repository: Hub id `organisation/name`.
        revision: Branch, tag or commit; None for the main branch.
        file: An exported graph to fetch beside the usual ones, relative to the repository.

    Raises:
        ModelError: The hub has no such model or revision, does not give access, or cannot be reached and the model is
            not in the cache.
    """
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow to import, and not needed in a worker
    from huggingface_hub.errors import (  # noqa: PLC0415 - as above
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        directory = snapshot_download(repository, revision=revision, allow_patterns=_patterns(file))
    except GatedRepoError as error:
        raise ModelError(
            f"{repository} is gated; accept its terms on the hub and log in with `hf auth login`"
        ) from error
    except RepositoryNotFoundError as error:
        message = f"{repository} is not on the hub, or private; check the name, or log in with `hf auth login`"
        raise ModelError(message) from error
    except RevisionNotFoundError as error:
        raise ModelError(f"{repository} has no revision {revision!r}; name a branch, tag or commit of it") from error
    except LocalEntryNotFoundError as error:
        raise ModelError(_not_cached(repository, revision)) from error
    except Exception as error:  # those of the network, of the disk and of the transfer library have no common base
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelError(f"{repository} could not be downloaded: {reason}; try again, or name a directory") from error
    return Path(directory), Path(directory).name


def _patterns(file: str | None) -> list[str]:
    """Return patterns of what to fetch: what every engine needs, and graphs with the files of their weights."""
    # Beside the usual exports in float32 there are often ten in other precisions, of hundreds of MB each.
    usual = [name for names in USUAL_GRAPHS.values() for name in names]
    chosen = [] if file is None else [PurePosixPath(file).as_posix()]
    return [*_PATTERNS, *(pattern for graph in (*usual, *chosen) for pattern in _graph_patterns(graph))]


def _graph_patterns(graph: str) -> list[str]:
    name = glob.escape(graph)
    if graph.endswith(".xml"):
        return [name, f"{name.removesuffix('.xml')}.bin"]
    return [name, f"{name}[._]data*"]  # model.onnx_data, model.onnx_data_1, model.onnx.data


def _not_cached(repository: str, revision: str | None) -> str:
    from huggingface_hub import constants  # noqa: PLC0415 - as above

    why = "HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else "the hub cannot be reached"
    wanted = f"{repository} at revision {revision}" if revision else repository
    return (
        f"{wanted} cannot be had: {why} and {constants.HF_HUB_CACHE} has no copy; "
        "download it where there is a network, or name a local directory or package:NAME"
    )

"""Where a server answers, and in which form."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pinstripe.errors import UsageError
from pinstripe.load.embedding_api import API_PATHS, ApiName

__all__ = ["Endpoint", "endpoints"]

_LAST_PARTS: Final[dict[str, ApiName]] = {"embeddings": "openai", "embed": "tei"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and the form of what it answers.

    Attributes:
        url: In full.
        api: `openai` or `tei`.
    """

    url: str
    api: ApiName


def endpoints(url: str, api: ApiName | None = None) -> list[Endpoint]:
    """Return what an address may mean, the likeliest first.

    Args:
        url: `http` or `https`, the former if it does not say. Without a path it gets those that servers use.
        api: Its form; None to go by the last part of its path, `embeddings` or `embed`.

    Raises:
        UsageError: It is no such address, or its path does not say which form it has.
    """
    full = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(full)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # a port that is no number, an IPv6 address without its end
        known = False
    if not known or any(sign.isspace() or not sign.isprintable() for sign in full):
        raise UsageError(f"{url!r} is no address; write it like http://127.0.0.1:8080/v1/embeddings")
    if parts.username is not None or parts.password is not None:
        raise UsageError("the address holds a user's name or password; give a key by --api-key-env, which nobody sees")
    if parts.path.strip("/"):
        found = api or _LAST_PARTS.get(parts.path.rstrip("/").rpartition("/")[2])
        if found is None:
            raise UsageError(f"the path of {url} does not say what it answers; add --api openai, or --api tei")
        return [Endpoint(full, found)]
    names = list(API_PATHS) if api is None else [api]
    return [Endpoint(urlunsplit(parts._replace(path=API_PATHS[name], fragment="")), name) for name in names]

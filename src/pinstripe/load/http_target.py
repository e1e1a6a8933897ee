"""A server that is asked for embeddings over HTTP."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from pinstripe.errors import RequestError, UsageError
from pinstripe.load.embedding_api import make_api
from pinstripe.load.endpoint import Endpoint

if TYPE_CHECKING:
    import aiohttp

__all__ = ["HttpTarget"]

_MOST_BYTES: Final = 64 << 20
"""Longest answer that is read: 4,096 vectors of 1,024 numbers are some 50 MB as text."""
_MOST_SHOWN: Final = 300
_OK: Final = 200
_KEEP_ALIVE_S: Final = 4.0
"""Servers close idle connections, often after 5 s (uvicorn); a request that crosses that would fail for no fault."""


class HttpTarget:
    """Asks a server for the embeddings of texts, as an async context manager.

    Connections are kept alive and as many as there are requests under way; small packets are not held back
    (TCP_NODELAY, which aiohttp sets). An answer is right if its status is 200 and it holds as many embeddings as texts
    were sent.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        texts: Sequence[str],
        *,
        texts_per_request: int = 1,
        model: str = "default",
        api_key: str | None = None,
        proxies: bool = False,
    ) -> None:
        """Describe it; nothing is connected yet.

        Args:
            endpoint: Where it answers, and how.
            texts: At least one; request i has the next `texts_per_request` of them from i times that on, around and
                around.
            texts_per_request: At least 1.
            model: What requests call the model.
            api_key: Bearer token; None for none.
            proxies: Whether to use the proxies that the environment names (`HTTP_PROXY` and the like).

        Raises:
            UsageError: aiohttp is not installed, or the address is none.
        """
        try:
            from yarl import URL  # noqa: PLC0415 - comes with aiohttp, which is an extra
        except ImportError as error:
            raise UsageError("a load over HTTP needs aiohttp; install it with pip install 'pinstripe[load]'") from error
        self.endpoint = endpoint
        self._api = make_api(endpoint.api, model)
        try:
            self._url = URL(endpoint.url)
        except ValueError as error:
            raise UsageError(f"{endpoint.url!r} is no address: {error}") from error
        self._texts = texts
        self._texts_per_request = texts_per_request
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._proxies = proxies
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the session."""
        import aiohttp  # noqa: PLC0415

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),  # the run's own timeout covers all
            trust_env=self._proxies,
            headers=self._headers,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def check(self, timeout_s: float) -> int:
        """Send one request and look at its whole answer.

        Returns:
            How many numbers an embedding has.

        Raises:
            RequestError: It was not answered as it should be; the kind begins as those of a run do, and says more.
        """
        try:
            async with asyncio.timeout(timeout_s):
                status, answer = await self._ask(0)
        except TimeoutError as error:
            raise RequestError(f"timeout: no answer within {timeout_s:g} s") from error
        if status != _OK:
            said = " ".join(answer[:_MOST_SHOWN].decode(errors="replace").split())
            raise RequestError(f"HTTP {status}: {said}" if said.isprintable() and said else f"HTTP {status}")
        vectors = self._api.vectors(answer)
        self._check_count(len(vectors))
        widths = {len(vector) for vector in vectors}
        if len(widths) > 1 or 0 in widths:
            raise RequestError(f"wrong answer: embeddings of {' and '.join(map(str, sorted(widths)))} numbers")
        if not all(np.isfinite(vector).all() for vector in vectors):
            raise RequestError("wrong answer: an embedding holds what is no finite number")
        return widths.pop()

    async def send(self, number: int) -> None:
        """See `Target.send`."""
        status, answer = await self._ask(number)
        if status != _OK:
            raise RequestError(f"HTTP {status}")
        self._check_count(self._api.count(answer))

    def _check_count(self, count: int) -> None:
        if count != self._texts_per_request:
            raise RequestError(f"wrong answer: {count} embeddings for {self._texts_per_request} texts")

    async def _ask(self, number: int) -> tuple[int, bytes]:
        """Return status and content of the answer to a request.

        Raises:
            RequestError: There is none.
        """
        import aiohttp  # noqa: PLC0415

        if self._session is None:
            raise RequestError("the target is not open; use it as an async context manager")
        first = number * self._texts_per_request
        texts = [self._texts[(first + one) % len(self._texts)] for one in range(self._texts_per_request)]
        try:
            async with self._session.post(self._url, data=self._api.body(texts), allow_redirects=False) as response:
                return response.status, await _read(response)
        except (aiohttp.ClientError, OSError) as error:
            raise RequestError(_kind(error)) from error


async def _read(response: "aiohttp.ClientResponse") -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise RequestError(f"wrong answer: longer than {_MOST_BYTES >> 20} MiB")
    return b"".join(parts)


def _kind(error: Exception) -> str:
    """Return how a request failed, in words that many may share."""
    import aiohttp  # noqa: PLC0415

    match error:
        case aiohttp.ClientConnectorDNSError():
            kind = "host not found"
        case aiohttp.ClientSSLError() | aiohttp.ClientConnectorCertificateError():
            kind = "no connection: TLS failed"
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            kind = "connection refused"
        case aiohttp.ClientConnectorError():
            kind = f"no connection: {error.os_error.strerror or 'unknown reason'}"
        case aiohttp.ServerConnectionError() | aiohttp.ClientPayloadError() | OSError():
            kind = "connection closed"
        case aiohttp.ClientResponseError():
            kind = "wrong answer: not HTTP"
        case _:
            kind = type(error).__name__
    return kind

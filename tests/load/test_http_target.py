"""Requests over HTTP to a server that is known."""

import asyncio
import socket
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from pinstripe.errors import RequestError, UsageError
from pinstripe.load import Endpoint, HttpTarget, LoadRun, endpoints, new_fine_loop, run_closed_loop, run_load
from pinstripe.testing.fake_server import Behaviour, serving_fake
from pinstripe.testing.fake_service import FakeService

pytest.importorskip("aiohttp")
T = TypeVar("T")


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_fine_loop) as runner:
        return runner.run(coroutine)


async def _check(endpoint: Endpoint, timeout_s: float = 20.0, **options: Any) -> int:
    async with HttpTarget(endpoint, ["one", "two", "three"], **options) as target:
        return await target.check(timeout_s)


async def _closed(endpoint: Endpoint, requests: int, timeout_s: float = 20.0, **options: Any) -> LoadRun:
    async with HttpTarget(endpoint, ["one", "two", "three"], **options) as target:
        return await run_closed_loop(target, 2, requests=requests, timeout_s=timeout_s)


@pytest.mark.parametrize("path", ["/v1/embeddings", "/embed"])
@pytest.mark.parametrize("texts", [1, 4])
def test_both_forms(path: str, texts: int) -> None:
    """Four numbers an embedding, as the server has it; every answer holds as many as texts were sent."""
    with serving_fake(FakeService(0.001)) as url:
        endpoint = endpoints(url + path)[0]

        assert _run(_check(endpoint, texts_per_request=texts)) == 4
        assert _run(_closed(endpoint, 20, texts_per_request=texts)).failures == {}


@pytest.mark.parametrize(
    ("behaviour", "check", "kind"),
    [
        ("error", 'HTTP 500: {"error": "it is broken"}', "HTTP 500"),
        ("busy", "HTTP 503", "HTTP 503"),
        ("close", "connection closed", "connection closed"),
        ("short", "wrong answer: 1 embeddings for 2 texts", "wrong answer: 1 embeddings for 2 texts"),
        ("garbage", "wrong answer: not valid JSON", "wrong answer: not valid JSON"),
        ("endless", "wrong answer: longer than 64 MiB", "wrong answer: longer than 64 MiB"),
        ("nan", "wrong answer: an embedding holds what is no finite number", None),
    ],
)
def test_failures_by_kind(behaviour: Behaviour, check: str, kind: str | None) -> None:
    """What the check says before a run, and by what its requests are counted; only the check looks at the numbers."""
    with serving_fake(FakeService(0.001), behaviour=behaviour) as url:
        endpoint = endpoints(url)[0]
        with pytest.raises(RequestError) as caught:
            _run(_check(endpoint, texts_per_request=2))
        run = _run(_closed(endpoint, 2, texts_per_request=2))

    assert caught.value.kind == check
    assert set(run.failures.values()) == ({kind} if kind else set())


def test_a_server_that_never_answers() -> None:
    """Both the check and the run give it up."""
    with serving_fake(FakeService(0.001), behaviour="silent") as url:
        with pytest.raises(RequestError, match=r"timeout: no answer within 0\.3 s"):
            _run(_check(endpoints(url)[0], timeout_s=0.3))
        assert _run(_closed(endpoints(url)[0], 3, timeout_s=0.3)).failures == dict.fromkeys(range(3), "timeout")


def test_nobody_listens() -> None:
    """A port that was free a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    assert set(_run(_closed(endpoints(f"127.0.0.1:{port}")[0], 4)).failures.values()) == {"connection refused"}


def test_something_that_is_not_http() -> None:
    """An SSH server, say."""

    async def run() -> str:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        async with server:
            url = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            with pytest.raises(RequestError) as caught:
                await _check(endpoints(url)[0])
        return caught.value.kind

    assert _run(run()) == "wrong answer: not HTTP"


def test_keys_are_sent_and_redirects_not_followed() -> None:
    """Without the key 401, with it an answer."""
    with serving_fake(FakeService(0.001), key="secret") as url:
        with pytest.raises(RequestError, match="HTTP 401"):
            _run(_check(endpoints(url)[0]))
        assert _run(_check(endpoints(url)[0], api_key="secret")) == 4


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it is wished: then the request goes to where nobody listens."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with serving_fake(FakeService(0.001)) as url:
        assert _run(_check(endpoints(url)[0])) == 4
        with pytest.raises(RequestError, match="connection refused"):
            _run(_check(endpoints(url)[0], proxies=True))


def test_a_stall_shows_over_http() -> None:
    """50 requests a second for 4 s; from 1.5 s on 1 s of standstill: about 50 requests wait, the first for 1 s.

    The largest latency is at least the stall's, and a tenth of all at least half of it, however slow the machine.
    """
    with serving_fake(FakeService(0.002, stall=(1.5, 1.0))) as url:

        async def run() -> LoadRun:
            async with HttpTarget(endpoints(url)[0], ["one"]) as target:
                return await run_load(target, range(0, 4_000_000_000, 20_000_000))

        done = _run(run())

    latencies = sorted(end - due for end, due in zip(done.done_ns, done.scheduled_ns, strict=True))
    assert done.failures == {}
    assert latencies[-1] > 950_000_000
    assert latencies[-20] > 500_000_000


def test_aiohttp_is_asked_for_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "yarl", None)

    with pytest.raises(UsageError, match=r"pip install 'pinstripe\[load\]'"):
        HttpTarget(Endpoint("http://127.0.0.1/embed", "tei"), ["one"])


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("127.0.0.1:80", [("http://127.0.0.1:80/v1/embeddings", "openai"), ("http://127.0.0.1:80/embed", "tei")]),
        ("https://host/", [("https://host/v1/embeddings", "openai"), ("https://host/embed", "tei")]),
        ("http://host/v1/embeddings", [("http://host/v1/embeddings", "openai")]),
        ("http://[::1]:8/m/embed?x=1", [("http://[::1]:8/m/embed?x=1", "tei")]),
        ("host/v3/embeddings/", [("http://host/v3/embeddings/", "openai")]),
    ],
)
def test_addresses(url: str, found: list[tuple[str, str]]) -> None:
    """The form goes by the path; a bare host gets the usual ones."""
    assert [(one.url, one.api) for one in endpoints(url)] == found


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://host", "no address"),
        ("http://", "no address"),
        ("http://host:port/embed", "no address"),
        ("http://host:99999/embed", "no address"),
        ("http://[::1/embed", "no address"),
        ("http://ho st/embed", "no address"),
        ("", "no address"),
        ("http://host/predict", "add --api"),
        ("http://me:word@host/embed", "name or password"),
    ],
)
def test_addresses_that_are_none(url: str, message: str) -> None:
    """In one line, and without a password in it."""
    with pytest.raises(UsageError, match=message) as caught:
        endpoints(url)

    assert "word@" not in str(caught.value)

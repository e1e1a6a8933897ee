"""A server of embeddings whose latency is known exactly.

Run `python -m pinstripe.testing.fake_server --help` for one to try `pinstripe load` on.
"""

import argparse
import asyncio
import base64
import json
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, get_args

from pinstripe.testing.fake_service import FakeService

__all__ = ["Behaviour", "serve_fake", "serving_fake"]

Behaviour = Literal["answer", "error", "busy", "close", "silent", "short", "garbage", "nan", "endless"]
_NUMBERS: Final = (0.5, -0.5, 0.25, 1.0)
_FIXED: Final[dict[str, tuple[int, bytes]]] = {
    "error": (500, b'{"error": "it is broken"}'),
    "busy": (503, b""),
    "garbage": (200, b"<html>hello</html>"),
}


@dataclass(frozen=True, slots=True)
class _Request:
    path: str
    authorization: str
    body: bytes


class _Connections:
    """Answers requests over HTTP/1.1, one after the other on each connection."""

    def __init__(self, service: FakeService, behaviour: Behaviour, paths: tuple[str, ...], key: str | None) -> None:
        self._service = service
        self._behaviour = behaviour
        self._paths = paths
        self._key = key
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            while (request := await _read(reader)) is not None:
                if not await self._answer(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the server goes
        finally:
            if task is not None:
                self._tasks.discard(task)
            writer.close()

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, request: _Request, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection is of use after it."""
        if request.path not in self._paths:
            return await _write(writer, 404, b'{"error": "no such path"}')
        if self._key is not None and request.authorization != f"Bearer {self._key}":
            return await _write(writer, 401, b'{"error": "no such key"}')
        if self._behaviour == "silent":
            await asyncio.Event().wait()
        await self._service.serve()
        if self._behaviour == "close":
            return False
        if self._behaviour == "endless":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
            while True:
                writer.write(b"[" * 65536)
                await writer.drain()
        status, content = _FIXED.get(self._behaviour) or (200, self._embeddings(request))
        return await _write(writer, status, content)

    def _embeddings(self, request: _Request) -> bytes:
        asked = json.loads(request.body)
        texts = asked["input"] if "input" in asked else asked["inputs"]
        count = len(texts) - (self._behaviour == "short")
        numbers = (float("nan"), *_NUMBERS[1:]) if self._behaviour == "nan" else _NUMBERS
        if "inputs" in asked:
            return json.dumps([numbers] * count).encode()
        embedding: object = numbers
        if asked.get("encoding_format") == "base64":
            embedding = base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
        data = [{"object": "embedding", "index": index, "embedding": embedding} for index in range(count)]
        return json.dumps({"object": "list", "data": data, "model": asked["model"], "usage": {}}).encode()


async def serve_fake(
    service: FakeService,
    *,
    behaviour: Behaviour = "answer",
    paths: tuple[str, ...] = ("/v1/embeddings", "/embed"),
    key: str | None = None,
    port: int = 0,
    ready: "asyncio.Future[str] | None" = None,
) -> None:
    """Serve until it is cancelled.

    Args:
        service: How long requests take.
        behaviour: `answer` rightly, with an HTTP `error` 500, as `busy` with 503, `close` the connection, stay
            `silent`, or answer wrongly: an embedding too few (`short`), `garbage`, not a number (`nan`), without an end
            (`endless`).
        paths: Where there is an answer; 404 elsewhere.
        key: Bearer token to ask for.
        port: 0 for a free one.
        ready: Gets the address when it listens.
    """
    connections = _Connections(service, behaviour, paths, key)
    server = await asyncio.start_server(connections.answer_all, "127.0.0.1", port)
    try:
        if ready is not None:
            ready.set_result(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await asyncio.Event().wait()
    finally:
        server.close()
        await connections.close()


@contextmanager
def serving_fake(
    service: FakeService,
    *,
    behaviour: Behaviour = "answer",
    paths: tuple[str, ...] = ("/v1/embeddings", "/embed"),
    key: str | None = None,
) -> Iterator[str]:
    """Serve from a thread of its own, as `serve_fake`; yields the address."""
    urls: list[str] = []
    listening = threading.Event()
    ends: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[str] = loop.create_future()
        task = loop.create_task(serve_fake(service, behaviour=behaviour, paths=paths, key=key, ready=ready))
        ends.append((loop, task))
        urls.append(await ready)
        listening.set()
        await asyncio.wait({task})

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    listening.wait()
    try:
        yield urls[0]
    finally:
        loop, task = ends[0]
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


async def _read(reader: asyncio.StreamReader) -> _Request | None:
    """Return the next request; None at the end of the connection."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    body = await reader.readexactly(int(fields.get("content-length", "0")))
    return _Request(head[0].split(" ")[1], fields.get("authorization", ""), body)


async def _write(writer: asyncio.StreamWriter, status: int, content: bytes) -> bool:
    writer.write(
        b"HTTP/1.1 %d -\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(content))
    )
    writer.write(content)
    await writer.drain()
    return True


def _main() -> None:
    parser = argparse.ArgumentParser(
        prog="fake_server",
        description="A server whose latency is known exactly. It works off requests whose clients have gone, too: "
        "what comes after an overload waits until the queue is empty.",
    )
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--service-ms", type=float, default=10.0, help="milliseconds that each request takes")
    parser.add_argument("--servers", type=int, default=1, help="requests that are served at a time")
    parser.add_argument("--stall-at-s", type=float, default=0.0, help="seconds after the first request")
    parser.add_argument("--stall-s", type=float, default=0.0, help="seconds for which all stands still then")
    parser.add_argument("--behaviour", choices=get_args(Behaviour), default="answer")
    asked = parser.parse_args()
    stall = (asked.stall_at_s, asked.stall_s)
    service = FakeService(asked.service_ms / 1000, servers=asked.servers, stall=stall)
    try:
        asyncio.run(serve_fake(service, behaviour=asked.behaviour, port=asked.port))
    except (OSError, OverflowError) as error:
        parser.exit(1, f"cannot listen on port {asked.port}: {error}; name another --port\n")


if __name__ == "__main__":
    _main()

"""A model that runs on pinned instances, for programs without an event loop."""

import asyncio
import os
import threading
import warnings
from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pinstripe.api.async_model import AsyncModel
from pinstripe.api.opening import Opening
from pinstripe.api.wanted import Wanted
from pinstripe.configuration import BatchRule, Configuration
from pinstripe.engines import Precision
from pinstripe.errors import WorkerError
from pinstripe.models import Answer, Network, Overrides, Text

__all__ = ["Model", "open_model"]

T = TypeVar("T")


class Model:
    """A model on pinned instances, ready to use; several threads may. Close it, or use it as a context.

    Its instances are coordinated by an event loop in a thread of its own.
    """

    def __init__(self, opening: Opening) -> None:
        """Use `pinstripe.open`."""
        self._pid = os.getpid()
        self._model = AsyncModel(opening.prepare)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name="pinstripe", daemon=True)
        self._closed = False
        self._thread.start()
        try:
            self._wait(self._model.open())
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<pinstripe.Model {self.network.name}, {self.configuration.label}{', closed' if self._closed else ''}>"

    @property
    def network(self) -> Network:
        """The model."""
        return self._model.network

    @property
    def configuration(self) -> Configuration:
        """How it runs, with everything filled in."""
        return self._model.configuration

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided when it was opened, and what was not taken, a sentence each."""
        return self._model.notes

    def encode(self, texts: str | Iterable[str], *, prompt: str | None = None) -> NDArray[np.float32]:
        """Return the embeddings of texts, as `SentenceTransformer.encode` does.

        Args:
            texts: Any number of texts, or a single one; longer ones than the model takes are cut.
            prompt: Name of the model's prompt to put before each; the empty string for none, None for its default.

        Returns:
            float32 [texts, width], in the order of the texts; [width] for a single one. Whether they are normalized is
            the model's to say, or `Overrides.normalize`.

        Raises:
            UsageError: The model makes no embeddings, the prompt is unknown, or a text is not valid.
            WorkerError: A batch could not be run, or the model is closed.
        """
        return self._call(self._model.encode(texts, prompt=prompt))

    def predict(self, texts: Iterable[Text], *, prompt: str | None = None) -> list[Answer]:
        """Return what the model says of texts; see `AsyncModel.predict`."""
        return self._call(self._model.predict(texts, prompt=prompt))

    def close(self) -> None:
        """Stop the instances; calls that still wait in other threads fail. Idempotent."""
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        self._wait(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._pid != os.getpid():
            return
        self._closed = True
        warnings.warn(f"{self.network.name} was left open; close it, or use it in a with statement", ResourceWarning, 2)
        # Not waited for: at the end of the interpreter the loop's thread may not run any more.
        asyncio.run_coroutine_threadsafe(self._finish_and_stop(), self._loop)

    async def _finish(self) -> None:
        await self._model.close()
        await asyncio.get_running_loop().shutdown_default_executor()

    async def _finish_and_stop(self) -> None:
        await self._finish()
        self._loop.stop()

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine that uses the model.

        Raises:
            WorkerError: The model is closed, or belongs to the process that this one was forked from.
        """
        reason = "the model is closed; open it again" if self._closed else None
        if self._pid != os.getpid():
            reason = "the model was opened before this process was forked, and its instances stayed there; open it here"
        if reason:
            coroutine.close()
            raise WorkerError(reason)
        try:
            return self._wait(coroutine)
        except RuntimeError as error:  # how asyncio says that threads are gone
            if self._closed:
                raise WorkerError("the model was closed meanwhile") from error
            raise

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C in this thread must not leave the work going on in the other
            raise


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run an event loop until it is stopped."""
    try:
        loop.run_forever()
    finally:
        loop.close()


def open_model(
    model: str | os.PathLike[str],
    *,
    engine: str | None = None,
    precision: Precision = "float32",
    instances: int | None = None,
    cores: int | None = None,
    configuration: Configuration | None = None,
    batching: BatchRule | None = None,
    revision: str | None = None,
    overrides: Overrides | None = None,
    truncate: bool = True,
) -> Model:
    """Start a model on pinned instances and wait until it is ready.

    Example:
        >>> with pinstripe.open("sentence-transformers/all-MiniLM-L6-v2") as model:
        ...     vectors = model.encode(["a text", "another one"])

    Args:
        model: Directory, hub id, `package:NAME`, or a plan's file (`.toml`).
        engine: Name of the engine; None for the fastest that is installed and has the precision.
        precision: Precision of the computation; less than float32 is faster and changes results, see
            `pinstripe accuracy`.
        instances: Number of instances; None for one a core.
        cores: Cores of each instance; None for an equal share.
        configuration: Everything about how it runs, instead of the four before.
        batching: How texts are put into batches; None for the plan's, else sorted batches of up to 1024 tokens for each
            core of an instance.
        revision: Revision of a hub model.
        overrides: What the user says of the model against its files.
        truncate: Whether texts with more tokens than the model takes are cut, as `SentenceTransformer` does; else they
            are errors. Question answering reads long contexts in windows and cuts none.

    Raises:
        PinstripeError: It cannot be had so, or could not be started; the message says what to do.
    """
    return Model(
        Opening(
            model=os.fspath(model),
            wanted=Wanted(engine=engine, precision=precision, instances=instances, cores=cores),
            configuration=configuration,
            batching=batching,
            revision=revision,
            overrides=overrides,
            truncate=truncate,
        )
    )

"""A model that runs on pinned instances, for programs without an event loop."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pinstripe.api.async_model import AsyncModel
from pinstripe.api.opening import Opening
from pinstripe.configuration import BatchRule, Configuration
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
        self._model = AsyncModel(opening)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pinstripe", daemon=True)
        self._thread.start()
        try:
            self._wait(self._model.open())
        except BaseException:
            self.close()
            raise

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

    def encode(self, texts: str | Sequence[str], *, prompt: str | None = None) -> NDArray[np.float32]:
        """Return the embeddings of texts; see `AsyncModel.encode`."""
        return self._wait(self._model.encode(texts, prompt=prompt))

    def predict(self, texts: Sequence[Text], *, prompt: str | None = None) -> list[Answer]:
        """Return what the model says of texts; see `AsyncModel.predict`."""
        return self._wait(self._model.predict(texts, prompt=prompt))

    def close(self) -> None:
        """Stop the instances; calls that still wait in other threads fail. Idempotent."""
        if self._loop.is_closed():
            return
        self._wait(self._model.close())
        self._wait(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            coroutine.close()
            raise WorkerError("the model is closed; open it again")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C in this thread must not leave the work going on in the other
            raise


def open_model(
    model: str,
    *,
    engine: str | None = None,
    instances: int | None = None,
    cores: int | None = None,
    configuration: Configuration | None = None,
    batching: BatchRule | None = None,
    revision: str | None = None,
    overrides: Overrides | None = None,
) -> Model:
    """Start a model on pinned instances and wait until it is ready.

    Example:
        >>> with pinstripe.open("sentence-transformers/all-MiniLM-L6-v2") as model:
        ...     vectors = model.encode(["a text", "another one"])

    Args:
        model: Directory, hub id, `package:NAME`, or a plan's file (`.toml`).
        engine: Name of the engine; None for the fastest that is installed.
        instances: Number of instances; None for one a core.
        cores: Cores of each instance; None for an equal share.
        configuration: Everything about how it runs, instead of the three before.
        batching: How texts are put into batches; None for the plan's, else sorted batches of up to 1024 tokens for each
            core of an instance.
        revision: Revision of a hub model.
        overrides: What the user says of the model against its files.

    Raises:
        PinstripeError: It cannot be had so, or could not be started; the message says what to do.
    """
    return Model(
        Opening(
            model=model,
            engine=engine,
            instances=instances,
            cores=cores,
            configuration=configuration,
            batching=batching,
            revision=revision,
            overrides=overrides,
        )
    )

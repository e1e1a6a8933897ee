"""A model that runs on pinned instances, for programs that have an event loop."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from pinstripe.api.opening import Opening, Prepared
from pinstripe.api.stopping import run_stoppable
from pinstripe.api.text_batch import IN_FLIGHT_OF_GROUPS, Batch, TextBatch, batch_texts, prefetched, run_batches
from pinstripe.api.wanted import Wanted
from pinstripe.configuration import BatchRule, Configuration
from pinstripe.dispatch import Dispatcher, Request, loop_time_ns
from pinstripe.engines import Artefact, Precision
from pinstripe.errors import BadTextError, StartError, UsageError, WorkerError
from pinstripe.models import (
    Answer,
    Answers,
    EncodedText,
    Network,
    Overrides,
    Text,
    better_answer,
    check_several,
    check_texts,
    make_answers,
    needs_offsets,
)
from pinstripe.pool import BatchResult, InstanceEvidence, Pool

__all__ = ["AsyncModel"]

Outputs = dict[str, NDArray[Any]]
"""Arrays by name, as in `BatchResult`."""

_PART_TEXTS: Final = 2048
"""Texts that are tokenized at a time: enough to find company of near-equal length for each, and few enough that the
instances begin soon."""


class AsyncModel:
    """A model on pinned instances, used from one event loop by any number of tasks. Enter it with `async with`.

    Attributes:
        network: The model.
        configuration: How it runs, with everything filled in.
        batching: How texts are put into batches: a rule for each group of instances, or one without groups.
        notes: What was decided on the way, and what was not taken, a sentence each.
        artefact: The file that the engine loaded.
        answers: Makes answers of a batch's results; see `make_answers`.
    """

    network: Network
    configuration: Configuration
    batching: tuple[BatchRule, ...]
    notes: tuple[str, ...]
    artefact: Artefact
    answers: Answers

    def __init__(self, prepare: Callable[[threading.Event], Prepared]) -> None:
        """Use `pinstripe.open_async`; `prepare` is `Opening.prepare`, or returns what that returned."""
        self._prepare = prepare
        self._opened = False
        self._closed = False
        self._pool: Pool | None = None
        self._dispatcher: Dispatcher | None = None

    async def open(self) -> None:
        """Find the model, start the instances and wait until they are ready.

        Raises:
            PinstripeError: It cannot be had so, could not be started, or a knob that is named did not take effect.
        """
        if self._opened:
            raise WorkerError("the model was opened before; make a new one with open_async")
        self._opened = True
        prepared = await run_stoppable(self._prepare)
        self.network, self.configuration = prepared.network, prepared.setup.configuration
        self.artefact = prepared.setup.artefact
        self.batching, self.notes = prepared.batching, prepared.notes
        self._truncate = prepared.truncate
        # Tokenizers are loaded while the workers load the model.
        loading = asyncio.ensure_future(asyncio.to_thread(prepared.load_tokenizer))
        pool = Pool(prepared.setup.specs)
        try:
            await pool.open()
            if self.configuration.knobs:
                await _check_effects(pool)
            self._tokenizer = await loading
            self.answers = make_answers(self.network, self._tokenizer)
        except BaseException:
            await pool.close()
            await asyncio.wait([loading])
            raise
        self._pool = pool
        if len(groups := self.configuration.groups) > 1:
            self._dispatcher = Dispatcher(pool, pad=self._tokenizer.pad, rule=prepared.dispatch, groups=groups)
            self._single_tokens = prepared.dispatch.tokens * min(group.cores for group in groups)

    async def close(self) -> None:
        """Stop the instances; calls that still wait fail. Idempotent."""
        self._closed = True
        if self._dispatcher is not None:
            await self._dispatcher.close()
        if self._pool is not None:
            await self._pool.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def encode(self, texts: str | Iterable[str], *, prompt: str | None = None) -> NDArray[np.float32]:
        """Return the embeddings of texts, as `SentenceTransformer.encode` does.

        Args:
            texts: Any number of texts, or a single one; longer ones than the model takes are cut.
            prompt: Name of the model's prompt to put before each; the empty string for none, None for its default.

        Returns:
            float32 [texts, width], in the order of the texts; [width] for a single one.

        Raises:
            UsageError: The model makes no embeddings, the prompt is unknown, or a text is not valid.
            WorkerError: A batch could not be run.
        """
        self._check_open()
        if self.network.task != "embedding":
            raise UsageError(f"{self.network.name} is for {self.network.task} and has no embeddings; use predict")
        if isinstance(texts, str):
            single: NDArray[np.float32] = (await self.encode([texts], prompt=prompt))[0]
            return single
        members = self._members(texts)
        vectors: NDArray[np.float32] | None = None

        async def keep(indices: NDArray[np.intp], _: list[EncodedText], outputs: Outputs) -> None:
            nonlocal vectors
            part = outputs["embedding"]
            if vectors is None:
                vectors = np.empty((len(members), part.shape[1]), dtype=np.float32)
            vectors[indices] = part

        await self._run_texts(members, keep, prompt=prompt)
        if vectors is None:
            return (await self.encode(["none"]))[:0]  # so that it has its width
        return vectors

    async def predict(self, texts: Iterable[Text], *, prompt: str | None = None) -> list[Answer]:
        """Return what the model says of texts: whatever its task is.

        Args:
            texts: Texts; pairs (query, passage) for reranking, (question, context) for question answering.
            prompt: As in `encode`.

        Returns:
            An answer for each text, in their order: a vector for embedding, a number for reranking, a
            `Classification`, a `TokenClassification`, a tuple of `Filling` or a `Span` for the other tasks.

        Raises:
            UsageError: The prompt is unknown, or a text is not valid for the task.
            WorkerError: A batch could not be run.
        """
        self._check_open()
        members = self._members(texts)
        answers: list[Answer | None] = [None] * len(members)

        async def keep(indices: NDArray[np.intp], rows: list[EncodedText], outputs: Outputs) -> None:
            own = [members[index] for index in indices]
            found = await asyncio.to_thread(self.answers, outputs, rows, own)
            for index, answer in zip(indices, found, strict=True):
                answers[index] = better_answer(answers[index], answer)

        await self._run_texts(members, keep, prompt=prompt)
        return [answer for answer in answers if answer is not None]

    def batch_texts(self, texts: Sequence[Text], *, prompt: str | None = None, last: bool = False) -> list[TextBatch]:
        """Tokenize texts and put them into batches; blocks for some microseconds a text.

        Args:
            texts: Texts or pairs of texts.
            prompt: As in `encode`.
            last: Whether no more follow; then the last batches are small, so that all instances end together.

        Raises:
            UsageError: As in `predict`.
        """
        check_texts(self.network.task, texts)
        offsets = needs_offsets(self.network.task)
        instances = self.configuration.instances if last else None
        return batch_texts(
            self._tokenizer,
            texts,
            self.batching,
            self.configuration.groups,
            prompt=prompt,
            truncate=self._truncate,
            offsets=offsets,
            last_for=instances,
        )

    async def run(
        self,
        batches: AsyncGenerator[Batch],
        on_result: Callable[[Batch, BatchResult], Awaitable[None]],
    ) -> None:
        """Run batches on the instances; see `run_batches`.

        Raises:
            WorkerError: A batch could not be run, or the model is not open.
        """
        pool = self._check_open()
        if self._dispatcher is None:
            await run_batches(pool, batches, on_result)
        else:
            await run_batches(self._dispatcher, batches, on_result, in_flight=IN_FLIGHT_OF_GROUPS)

    async def evidence(self) -> list[InstanceEvidence]:
        """Return what took effect in each instance; see `Pool.evidence`.

        Raises:
            WorkerError: A worker ended meanwhile, or the model is not open.
        """
        return await self._check_open().evidence()

    def _members(self, texts: Iterable[Text]) -> list[Text]:
        """Return texts as a list, whatever holds them, once they are known to be such.

        Raises:
            UsageError: They are not.
        """
        check_several(texts)
        members = list(texts)
        check_texts(self.network.task, members)
        return members

    def _check_open(self) -> Pool:
        if self._closed:
            raise WorkerError("the model is closed; open a new one with open_async")
        if self._pool is None:
            raise WorkerError("the model is not open yet; enter it with `async with`, or await open()")
        return self._pool

    async def _run_texts(
        self,
        texts: Sequence[Text],
        keep: Callable[[NDArray[np.intp], list[EncodedText], Outputs], Awaitable[None]],
        *,
        prompt: str | None,
    ) -> None:
        self._tokenizer.encode([], prompt=prompt)  # an unknown prompt is said even if there is no text
        parts = self._parts(texts)
        upcoming = iter(parts)

        def make(indices: NDArray[np.intp]) -> list[TextBatch]:
            last = indices is parts[-1]
            try:
                batches = self.batch_texts([texts[index] for index in indices], prompt=prompt, last=last)
            except BadTextError as error:
                raise BadTextError(int(indices[error.index]), error.reason) from None
            return [TextBatch(indices[batch.indices], batch.rows, batch.tokens) for batch in batches]

        async def next_part() -> list[TextBatch] | None:
            part = next(upcoming, None)
            return None if part is None else await asyncio.to_thread(make, part)

        async def on_result(batch: TextBatch, result: BatchResult) -> None:
            await keep(batch.indices, batch.rows, result.outputs)

        if self._dispatcher is None or len(parts) != 1:
            await self.run(prefetched(next_part), on_result)
            return
        batches = await asyncio.to_thread(make, parts[0])
        indices = np.concatenate([batch.indices for batch in batches])
        rows = [row for batch in batches for row in batch.rows]
        if len(rows) > 1 and sum(map(len, rows)) > self._single_tokens:
            await self.run(_each(batches), on_result)
            return
        # Whoever asks for no more than a batch waits behind no bulk work.
        reply = await self._dispatcher.request(Request(tuple(rows), loop_time_ns()))
        for part in reply.parts:
            await keep(indices[part.texts], [rows[place] for place in part.texts], part.outputs)

    def _parts(self, texts: Sequence[Text]) -> list[NDArray[np.intp]]:
        """Return which texts are tokenized at a time: those of near-equal length or, with groups, a cut through all."""
        # By characters, which are known before tokens are.
        order = np.argsort([-_characters(text) for text in texts], kind="stable")
        count = -(-len(texts) // _PART_TEXTS)
        if self._dispatcher is None:
            return [order[number * _PART_TEXTS :][:_PART_TEXTS] for number in range(count)]
        return [order[number::count] for number in range(count)]


async def _each(batches: Sequence[TextBatch]) -> AsyncGenerator[TextBatch]:
    for batch in batches:
        yield batch


def _characters(text: Text) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text))


def open_async(
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
) -> AsyncModel:
    """Return a model that starts when it is entered, or when `AsyncModel.open` is awaited.

    Example:
        >>> async with pinstripe.open_async("sentence-transformers/all-MiniLM-L6-v2") as model:
        ...     vectors = await model.encode(["a text", "another one"])

    Arguments are those of `pinstripe.open`.
    """
    opening = Opening(
        model=os.fspath(model),
        wanted=Wanted(engine=engine, precision=precision, instances=instances, cores=cores),
        configuration=configuration,
        batching=batching,
        revision=revision,
        overrides=overrides,
        truncate=truncate,
    )
    return AsyncModel(opening.prepare)


async def _check_effects(pool: Pool) -> None:
    """See that what was asked of the instances is in effect.

    Raises:
        StartError: It is not.
    """
    for instance in await pool.evidence():
        if instance.problems:
            raise StartError(f"instance {instance.index} is not as asked: {'; '.join(instance.problems)}")

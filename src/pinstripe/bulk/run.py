"""A file of texts on its way through a model."""

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import msgspec

from pinstripe.api import AsyncModel, prefetched
from pinstripe.bulk.chunk import Chunk, ChunkBatch, read_chunks
from pinstripe.bulk.job import BulkJob
from pinstripe.bulk.journal import SkippedLine
from pinstripe.bulk.manifest import make_manifest
from pinstripe.bulk.output import check_job
from pinstripe.bulk.sinks import check_task
from pinstripe.bulk.survey import Survey, characters
from pinstripe.bulk.workspace import Workspace
from pinstripe.errors import BadTextError, TextError
from pinstripe.pool import BatchResult

__all__ = ["Progress", "Summary", "run_bulk"]

_MOST_CHUNKS: Final = 3
"""In memory at a time: one being written, one being computed, one being tokenized."""


@dataclass(slots=True)
class Progress:
    """How far a run is.

    Attributes:
        kept: Texts that an earlier start had done.
        texts: Texts done in this one.
        tokens: Their real tokens.
        padded_tokens: Tokens computed for them, padding included.
        cut: How many of the texts had more tokens than the model takes, and were cut.
        characters: Characters of all texts done, those kept included.
    """

    kept: int = 0
    texts: int = 0
    tokens: int = 0
    padded_tokens: int = 0
    cut: int = 0
    characters: int = 0


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to.

    Attributes:
        output: The output.
        engine: Engine that computed.
        instances: Number of instances.
        texts: Texts in the output.
        resumed: How many of them an earlier start had done.
        cut: Texts of this start that had more tokens than the model takes, and were cut.
        skipped: Lines without a text.
        seconds: Time that this start worked on texts, from the first to the last, writing included.
        texts_per_s: Texts of this start, by that time; None if it had nothing left to do.
        tokens_per_s: Likewise, real tokens.
        padding_fraction: Share of the computed tokens that was padding.
    """

    output: str
    engine: str
    instances: int
    texts: int
    resumed: int
    cut: int
    skipped: tuple[SkippedLine, ...]
    seconds: float
    texts_per_s: float | None
    tokens_per_s: float | None
    padding_fraction: float | None


async def run_bulk(model: AsyncModel, job: BulkJob, found: Survey, on_progress: Callable[[Progress], None]) -> Summary:
    """Run a file through a model that is open, and leave the output where it was asked for.

    Whatever ends this before it is done, the same call goes on where the last rows were written.

    Args:
        model: Open.
        job: What to run.
        found: What is in the file.
        on_progress: Told whenever texts are done.

    Raises:
        UsageError: The output exists, is of a format that is not for this task, or unfinished work is for something
            else.
        TextError: The file has changed since it was surveyed.
        OutputError: The results could not be written; what is done is kept.
        WorkerError: A batch could not be run; likewise.
    """
    check_job(job)
    check_task(job.output, model.network.task)
    workspace = await asyncio.to_thread(_open_workspace, model, job)
    try:
        run = _Run(model, job, found, workspace, on_progress)
        began = time.monotonic()
        await run.run()
        seconds = time.monotonic() - began
        checkpoint, skipped = workspace.checkpoint, workspace.skipped
        await asyncio.to_thread(workspace.finish)
    finally:
        await asyncio.to_thread(workspace.close)
    done = run.progress
    return Summary(
        output=str(job.output),
        engine=model.configuration.engine,
        instances=model.configuration.instances,
        texts=checkpoint.rows,
        resumed=done.kept,
        cut=done.cut,
        skipped=tuple(skipped),
        seconds=seconds,
        texts_per_s=done.texts / seconds if done.texts else None,
        tokens_per_s=done.tokens / seconds if done.texts else None,
        padding_fraction=1 - done.tokens / done.padded_tokens if done.texts else None,
    )


def _open_workspace(model: AsyncModel, job: BulkJob) -> Workspace:
    return Workspace(job, make_manifest(job, model.network, model.configuration, model.artefact))


class _Run:
    def __init__(
        self,
        model: AsyncModel,
        job: BulkJob,
        found: Survey,
        workspace: Workspace,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._model = model
        self._job = job
        self._workspace = workspace
        self._on_progress = on_progress
        start = workspace.checkpoint
        self.progress = Progress(kept=start.rows, characters=start.characters)
        self._chunks = read_chunks(job, model.network.task, model.configuration.instances, start, found.size_bytes)
        self._as_vectors = model.network.task == "embedding" or job.output.suffix == ".npy"
        self._slots = asyncio.Semaphore(_MOST_CHUNKS)
        self._done: asyncio.Queue[Chunk | None] = asyncio.Queue()

    async def run(self) -> None:
        """Compute and write, side by side, until one fails or both are done."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._compute())
                tasks.create_task(self._write())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _compute(self) -> None:
        await self._model.run(prefetched(self._next_chunk), self._keep)
        self._done.put_nowait(None)

    async def _next_chunk(self) -> list[ChunkBatch] | None:
        await self._slots.acquire()
        chunk = await asyncio.to_thread(next, self._chunks, None)
        if chunk is None:
            return None
        batches = await asyncio.to_thread(self._make_batches, chunk)
        if not batches:  # all lines are bad
            self._done.put_nowait(chunk)
        return batches

    def _make_batches(self, chunk: Chunk) -> list[ChunkBatch]:
        while True:
            try:
                batches = self._model.batch_texts(chunk.texts, prompt=self._job.prompt, last=chunk.last)
                break
            except BadTextError as error:
                if self._job.bad_lines == "refuse":
                    line = chunk.lines[error.index].number
                    raise TextError(f"line {line} of {self._job.source} is bad: it {error.reason}") from None
                chunk.leave_out(error.index, f"it {error.reason}")
        chunk.missing = sum(len(batch.indices) for batch in batches)
        return [ChunkBatch(batch.indices, batch.rows, batch.tokens, chunk) for batch in batches]

    async def _keep(self, batch: ChunkBatch, result: BatchResult) -> None:
        chunk = batch.chunk
        if self._as_vectors:
            new = set(batch.indices.tolist())
            chunk.keep_vectors(batch.indices, next(iter(result.outputs.values())))
        else:
            texts = [chunk.lines[index].text for index in batch.indices]
            answers = await asyncio.to_thread(self._model.answers, result.outputs, batch.rows, texts)
            new = set(batch.indices.tolist()) - chunk.answers.keys()
            chunk.keep_answers(batch.indices, answers)
        self._count(batch, new)
        if not chunk.missing:
            self._done.put_nowait(chunk)

    def _count(self, batch: ChunkBatch, new: Collection[int]) -> None:
        self.progress.texts += len(new)
        self.progress.tokens += batch.tokens.tokens
        self.progress.padded_tokens += batch.tokens.ids.size
        self.progress.cut += sum(row.cut for row in batch.rows)
        self.progress.characters += sum(characters(batch.chunk.lines[index].text) for index in new)
        self._on_progress(self.progress)

    async def _write(self) -> None:
        """Write chunks in the order of the file, whatever the order in which they end."""
        waiting: dict[int, Chunk] = {}
        number = 0
        while (chunk := await self._done.get()) is not None:
            waiting[chunk.number] = chunk
            while (due := waiting.pop(number, None)) is not None:
                await asyncio.to_thread(self._workspace.append, due.rows(), due.checkpoint)
                self._slots.release()
                number += 1

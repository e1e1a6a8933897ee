"""Batches that a network has no place for cost themselves, and nothing else."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from pinstripe.errors import WorkerError
from pinstripe.models import TokenBatch
from pinstripe.pool import Pool, WorkerSpec


def _batch(token_id: int, tokens: int = 4) -> TokenBatch:
    return TokenBatch(ids=np.full((1, tokens), token_id, np.int32), lengths=np.full(1, tokens, np.int32))


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (_batch(30522), "token id 30522"),
        (_batch(-1), "token id -1"),
        (_batch(1, tokens=513), "513 tokens"),
    ],
)
def test_they_never_reach_the_engine(fake_worker: Callable[..., WorkerSpec], batch: TokenBatch, said: str) -> None:
    """One beyond BERT's 30522 words or 512 positions is refused, and the same worker runs the next one."""

    async def numbers() -> tuple[int, str, int]:
        # The engine would end its process in its third forward; the first one is its warm-up.
        async with Pool([fake_worker(crash_at=3)], restart=False) as pool:
            before = pool.instances[0].process.pid
            with pytest.raises(WorkerError) as caught:
                await pool.submit(batch)
            await pool.submit(_batch(1))
            return before, str(caught.value), pool.instances[0].process.pid

    before, message, after = asyncio.run(numbers())
    assert said in message
    assert before == after

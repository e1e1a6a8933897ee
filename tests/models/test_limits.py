"""Ids and lengths that a network has no place for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from pinstripe import models
from pinstripe.errors import BadTextError, UsageError

pytest.importorskip("tokenizers")


def batch_of(ids: list[list[int]], type_ids: list[list[int]] | None = None) -> models.TokenBatch:
    """Return a batch without padding."""
    return models.TokenBatch(
        ids=np.array(ids, np.int32),
        lengths=np.full(len(ids), len(ids[0]), np.int32),
        type_ids=None if type_ids is None else np.array(type_ids, np.int32),
    )


def test_batches_that_fit(build: Callable[..., Path]) -> None:
    """40 ids, 32 positions and 2 token types, up to the last of each."""
    network = models.resolve(str(build()))
    models.check_batch(batch_of([[0, 39] * 16], [[0, 1] * 16]), network)
    untyped = msgspec.structs.replace(network, type_vocab_size=0)
    models.check_batch(batch_of([[1]], [[1]]), untyped)  # never given to a network that has none


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (batch_of([[1, 2], [3, 40]]), "a batch has the token id 40, .* takes 0 to 39"),
        (batch_of([[1, -1]]), "a batch has the token id -1, .* takes 0 to 39"),
        (batch_of([[1]], [[2]]), "a batch has the token type 2, .* takes 0 to 1"),
        (batch_of([[1] * 33]), "a batch has 33 tokens a text, .* takes 32"),
    ],
)
def test_batches_that_do_not_fit(build: Callable[..., Path], batch: models.TokenBatch, said: str) -> None:
    """One past each end."""
    with pytest.raises(UsageError, match=said):
        models.check_batch(batch, models.resolve(str(build())))


def test_a_token_that_the_network_lacks(build: Callable[..., Path]) -> None:
    """A tokenizer with few tokens, one with an id that is too high: only texts with it are refused, by place."""
    specials = [{"id": 2, "content": "[CLS]"}, {"id": 77, "content": "<far>"}]
    defaults = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    vocabulary = {"[UNK]": 0, "near": 1, "[CLS]": 2, "<far>": 77}
    tokenizer: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [defaults | special for special in specials],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary,
        },
    }
    reader = models.load_tokenizer(models.resolve(str(build({"tokenizer.json": tokenizer}))))
    assert [row.ids.tolist() for row in reader.encode(["near near", "else"])] == [[1, 1], [0]]
    with pytest.raises(BadTextError, match=r"text 1 has the token '<far>' with id 77, .* takes 0 to 39") as caught:
        reader.encode(["near", "near <far>", "near"])
    assert caught.value.index == 1
    assert caught.value.reason.startswith("has the token")

"""Torch: everything but attention on one long row, attention text by text."""

from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AttentionInterface, AutoModel

from packing_forms.forms import Form
from packing_forms.rows import Batch

__all__ = ["torch_form"]

_NAME = "texts_in_one_row"


def torch_form(directory: str) -> Form:
    """Return transformers' model, padded with its usual attention, packed with one of our own."""
    torch.set_num_threads(1)
    usual = AutoModel.from_pretrained(directory, attn_implementation="sdpa", dtype=torch.float32).eval()
    AttentionInterface.register(_NAME, _attend)
    own = AutoModel.from_pretrained(directory, attn_implementation=_NAME, dtype=torch.float32).eval()

    def padded(batch: Batch) -> NDArray[np.float32]:
        real = batch.segments >= 0
        mask = None if real.all() else torch.from_numpy(real.astype(np.int64))
        with torch.inference_mode():
            return _array(usual(torch.from_numpy(batch.ids), attention_mask=mask))

    def packed(batch: Batch) -> NDArray[np.float32]:
        [lengths] = batch.lengths
        ids, positions = torch.from_numpy(batch.ids), torch.from_numpy(batch.positions)
        with torch.inference_mode():
            return _array(own(ids, position_ids=positions, text_lengths=lengths))

    return Form(padded, packed, row_tokens=None)


def _array(output: Any) -> NDArray[np.float32]:
    states: NDArray[np.float32] = output.last_hidden_state.numpy()
    return states


def _attend(
    module: Any, query: Any, key: Any, value: Any, mask: Any, *, text_lengths: list[int], **_: Any
) -> tuple[Any, None]:
    """Attend within each text of a row [1, heads, width, size]; neighbours of equal length go in one call."""
    del module, mask
    parts, start = [], 0
    for length, run in groupby(text_lengths):
        texts = len(list(run))
        stop = start + texts * length
        q, k, v = (_split(tensor, start, stop, texts) for tensor in (query, key, value))
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        parts.append(attended.transpose(1, 2).reshape(texts * length, *query.shape[1::2]))
        start = stop
    return torch.cat(parts)[None], None


def _split(tensor: Any, start: int, stop: int, texts: int) -> Any:
    """Return [texts, heads, length, size] of a part of [1, heads, width, size]."""
    return tensor[0, :, start:stop].unflatten(1, (texts, -1)).transpose(0, 1)

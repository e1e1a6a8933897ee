"""A model in the form that exporters take: tensors in by position, tensors out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pinstripe.cache import cache_directory
from pinstripe.engines.importing import import_library
from pinstripe.engines.pytorch.network import load_network
from pinstripe.errors import EngineError
from pinstripe.models import Network, TokenBatch

__all__ = ["Traceable", "import_torch", "make_traceable", "padded_batch"]


@dataclass(frozen=True, slots=True)
class Traceable:
    """A model ready to be traced.

    Attributes:
        module: The torch module, in evaluation mode; its inputs are positional.
        example: A tensor for each input, by name, in order.
        outputs: Names of its outputs, in order.
    """

    module: Any
    example: dict[str, Any]
    outputs: tuple[str, ...]


def import_torch() -> Any:
    """Import torch for an export.

    Raises:
        EngineError: It is not installed; the message says how to export elsewhere.
    """
    try:
        return import_library("torch", extra="export")
    except EngineError as error:
        elsewhere = f"or export once where torch is installed, with PINSTRIPE_CACHE={cache_directory()}"
        raise EngineError(f"{error}, {elsewhere}") from error


def make_traceable(network: Network) -> Traceable:
    """Return the model for tracing, with examples of a padded batch.

    Raises:
        EngineError: As `load_network`.
    """
    torch = import_torch()
    batch = padded_batch(network, lengths=(8, 5))
    arrays = {"input_ids": batch.ids, "attention_mask": batch.attention_mask()}
    if network.type_vocab_size > 1 and batch.type_ids is not None:
        arrays["token_type_ids"] = batch.type_ids
    # A tensor object of its own for every input: tracers take one object given twice for one input.
    example = {name: torch.tensor(array, dtype=torch.int64) for name, array in arrays.items()}
    outputs: tuple[str, ...] = ("logits",)
    if network.task == "embedding":
        outputs = ("last_hidden_state",)
    elif network.task == "question-answering":
        outputs = ("start_logits", "end_logits")
    model = load_network(network)
    if network.model_type == "modernbert":
        # Far behind a short text, a layer of local attention may look at nothing. Torch's attention then gives 0, but
        # OpenVINO's (2026.4) NaN, which the next layer passes on to the text itself, since 0 times NaN is NaN. The
        # plain one masks by adding numbers, and always gives some.
        model.set_attn_implementation("eager")
    return Traceable(_module(torch, model, tuple(example), outputs), example, outputs)


def _module(torch: Any, model: Any, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
    """Wrap the model: tracers want positional inputs with names, and plain tensors as outputs."""

    class Graph(torch.nn.Module):  # type: ignore[misc] # the base is only known at run time
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            given = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
            result = self.model(**{name: given[name] for name in inputs}, return_dict=True)
            values = tuple(getattr(result, name) for name in outputs)
            return values if len(values) > 1 else values[0]

    return Graph().eval()


def padded_batch(network: Network, lengths: Sequence[int]) -> TokenBatch:
    """Return pseudo-random ids, none of them the padding id, of the given lengths (cut to `max_tokens`)."""
    random = np.random.default_rng(0)
    lengths = [min(length, network.max_tokens) for length in lengths]
    ids = random.integers(1, network.vocab_size, (len(lengths), max(lengths)))
    ids = (network.pad_token_id + ids) % network.vocab_size
    type_ids = random.integers(0, max(1, network.type_vocab_size), ids.shape)
    for row, length in enumerate(lengths):
        ids[row, length:], type_ids[row, length:] = network.pad_token_id, 0
    return TokenBatch(ids=ids.astype(np.int32), lengths=np.array(lengths, np.int32), type_ids=type_ids.astype(np.int32))

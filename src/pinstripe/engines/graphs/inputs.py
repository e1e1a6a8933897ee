"""Inputs and outputs of exported graphs, by the names that exporters give them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import EngineError
from pinstripe.models import Network, TokenBatch, first_position

__all__ = ["GraphInputs", "output_names", "stack_outputs"]


def _token_types(batch: TokenBatch, _network: Network) -> NDArray[Any]:
    return np.zeros_like(batch.ids) if batch.type_ids is None else batch.type_ids


def _positions(batch: TokenBatch, network: Network) -> NDArray[Any]:
    start = first_position(network.model_type, network.pad_token_id)
    return np.tile(np.arange(start, start + batch.sequence_length), (batch.size, 1))


_INPUTS: Final[dict[str, Callable[[TokenBatch, Network], NDArray[Any]]]] = {
    "input_ids": lambda batch, _network: batch.ids,
    "attention_mask": lambda batch, _network: batch.attention_mask(),
    "token_type_ids": _token_types,
    "position_ids": _positions,
}

# Transformers' own names first; sentence-transformers' exports call the hidden state `token_embeddings`.
_OUTPUTS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "embedding": (("last_hidden_state",), ("token_embeddings",)),
    "question-answering": (("start_logits", "end_logits"),),
}
_LOGITS: Final = (("logits",),)


class GraphInputs:
    """Makes the inputs that one graph asks for."""

    def __init__(self, types: Mapping[str, np.dtype[Any]], network: Network, path: str) -> None:
        """Check that every input is known.

        Args:
            types: Element type of each input by its name.
            network: The model.
            path: The graph's file, for the error.

        Raises:
            EngineError: The graph asks for something else than token ids, mask, token types and positions.
        """
        if unknown := sorted(set(types) - set(_INPUTS)):
            known = ", ".join(_INPUTS)
            message = f"{path} asks for the inputs {', '.join(unknown)}, but only {known} can be given"
            raise EngineError(f"{message}; choose another file with --file")
        self._types = dict(types)
        self._network = network

    def arrays(self, batch: TokenBatch) -> dict[str, NDArray[Any]]:
        """Return C-contiguous [batch, sequence] arrays by input name, in the graph's element types."""
        return {
            name: np.ascontiguousarray(_INPUTS[name](batch, self._network), dtype=dtype)
            for name, dtype in self._types.items()
        }


def output_names(network: Network, available: Collection[str], path: str) -> tuple[str, ...]:
    """Return the outputs that hold the task's result: one, or start and end logits for question answering.

    Raises:
        EngineError: The graph has none of them; the message names what it has.
    """
    wanted = _OUTPUTS.get(network.task, _LOGITS)
    for names in wanted:
        if set(names) <= set(available):
            return names
    message = f"{path} has the outputs {', '.join(sorted(available))}, but {network.task} needs"
    alternatives = " or ".join(" and ".join(names) for names in wanted)
    raise EngineError(f"{message} {alternatives}; choose another file with --file")


def stack_outputs(outputs: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return a single output as it is, several as the last axis of one array; C-contiguous."""
    return np.ascontiguousarray(outputs[0]) if len(outputs) == 1 else np.stack(outputs, axis=-1)

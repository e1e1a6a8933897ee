"""A network that torch has loaded, in whatever form it is run."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.protocol import EngineReport
from pinstripe.models import Network, TokenBatch

__all__ = ["TorchModel"]


class TorchModel:
    """A `LoadedModel` around what torch calls."""

    def __init__(
        self,
        torch: Any,
        run: Callable[..., Any],
        network: Network,
        describe: Callable[[], EngineReport],
        *,
        eager: bool = False,
    ) -> None:
        """Take what is loaded.

        Args:
            torch: The library.
            run: Called with token ids, attention mask and, if the network has them, token types, as `load_module` says.
            network: What it is.
            describe: Makes the report.
            eager: Whether the mask and token types may be None; what is compiled takes tensors only.
        """
        self._torch = torch
        self._run = run
        self._describe = describe
        self._eager = eager
        self._has_token_types = network.type_vocab_size > 1

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        """Run the network; see `LoadedModel.forward`."""
        inputs = [self._tensor(batch.ids)]
        # Without a mask, attention takes a faster kernel.
        inputs.append(None if self._eager and not batch.padded else self._tensor(batch.attention_mask()))
        if self._has_token_types:
            inputs.append(self._token_types(batch))
        with self._torch.inference_mode():
            result = self._run(*inputs)
        return np.ascontiguousarray(result.numpy())

    def report(self) -> EngineReport:
        """Return what is in effect; see `LoadedModel.report`."""
        return self._describe()

    def _token_types(self, batch: TokenBatch) -> Any:
        if batch.type_ids is not None:
            return self._tensor(batch.type_ids)
        return None if self._eager else self._torch.zeros(batch.ids.shape, dtype=self._torch.int64)

    def _tensor(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64))

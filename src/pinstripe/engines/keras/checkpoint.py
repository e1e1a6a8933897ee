"""The weights of a model's directory by the names that transformers gives them."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import EngineError
from pinstripe.models.weights import find_weights, read_tensor, tensor_shapes

__all__ = ["Checkpoint"]

# What early checkpoints call the weight and bias of a layer norm; transformers renames them too.
_OLD_NORM = {"weight": "gamma", "bias": "beta"}


class Checkpoint:
    """Tensors by name, read when asked for; 16-bit ones are widened to float32.

    An encoder's tensors have a prefix, such as `bert.`, in the files of classes with a head, and mostly none in those
    of a bare encoder.
    """

    def __init__(self, directory: Path, prefix: str) -> None:
        """Find the files.

        Args:
            directory: The model's.
            prefix: That of the encoder, without the dot.

        Raises:
            EngineError: The directory has no safetensors.
            ModelError: A file is damaged.
        """
        self._directory = directory
        self._prefix = prefix
        self._files = {name: file for file in find_weights(directory) for name in tensor_shapes(file)}
        if not self._files:
            raise EngineError(f"{directory} has no safetensors weights, which this engine reads; choose another engine")

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor, with the prefix or without."""
        return self._stored_name(name) is not None

    def tensor(self, name: str, *shape: int | None) -> NDArray[np.float32]:
        """Return a tensor.

        Args:
            name: Its name without the encoder's prefix.
            *shape: What it must have; None for any size.

        Raises:
            EngineError: It is missing or has another shape.
            ModelError: Its element type is no floating-point type.
        """
        stored = self._stored_name(name)
        if stored is None:
            raise EngineError(f"{self._directory} has no weights for {name}; is the task right for this model?")
        value = read_tensor(self._files[stored], stored)
        if len(value.shape) != len(shape) or any(
            want not in {None, has} for want, has in zip(shape, value.shape, strict=True)
        ):
            wanted = ", ".join("?" if size is None else str(size) for size in shape)
            raise EngineError(f"{self._directory}: {stored} is {list(value.shape)}, but [{wanted}] is needed")
        return value

    def dense(self, name: str, width_in: int, width_out: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return kernel [in, out] and bias [out] of a linear layer, which is stored as [out, in]."""
        return self.tensor(f"{name}.weight", width_out, width_in).T, self.tensor(f"{name}.bias", width_out)

    def norm(self, name: str, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return scale and offset of a layer norm, each [width]."""
        return self.tensor(f"{name}.weight", width), self.tensor(f"{name}.bias", width)

    def _stored_name(self, name: str) -> str | None:
        stem, _, last = name.rpartition(".")
        names = (name, f"{stem}.{_OLD_NORM.get(last, last)}")
        candidates = [full for one in names for full in (f"{self._prefix}.{one}", one)]
        return next((full for full in candidates if full in self._files), None)

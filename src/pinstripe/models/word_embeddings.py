"""Whether weights and configuration are of one model, by the one table whose shape both give."""

from collections.abc import Iterable
from pathlib import Path

from pinstripe.errors import ModelError
from pinstripe.models.family import Shape, word_embeddings
from pinstripe.models.quoting import quoted
from pinstripe.models.weights import tensor_shapes

__all__ = ["check_word_embeddings"]


def check_word_embeddings(weights: Iterable[Path], shape: Shape, config: Path) -> None:
    """Raise if the word-embedding table has another shape than the configuration says.

    Nothing is checked for families in which the name or the width of that table is not sure.

    Args:
        weights: The safetensors files of a model.
        shape: What its configuration says.
        config: Where that lies, for messages.

    Raises:
        ModelError: The shapes differ, or a file is damaged.
    """
    names = word_embeddings(shape.model_type)
    expected = (shape.vocab_size, shape.hidden_size)
    for path in weights:
        shapes = tensor_shapes(path) if names else {}
        for name in names:
            found = shapes.get(name, expected)
            if found != expected:
                raise ModelError(
                    f"{path}: {name} is {quoted(list(found))}, but {config} says {list(expected)} (vocab_size, width); "
                    "take both files from one model"
                )

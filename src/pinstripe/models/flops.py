"""Floating-point operations of a forward pass."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.models.network import Network

__all__ = ["forward_flops"]

_GATED: Final = frozenset({"modernbert", "nomic_bert"})
"""Families whose feed-forward part has a third matrix [hidden, intermediate], the gate (their modelling files in
transformers 5.24)."""
_OTHER_LAYERS: Final = frozenset({"convbert", "deberta", "deberta-v2", "eurobert", "mobilebert", "squeezebert"})
"""Families whose layers have other matrices: convolutions, relative positions as keys and queries, fewer key heads,
bottlenecks, groups."""
_OTHER_VOCABULARY_HEADS: Final = frozenset({"albert", "electra", "rembert"})
"""Families whose prediction of words goes through a width that `Network` does not hold."""


def forward_flops(network: Network, lengths: Sequence[int] | NDArray[np.integer]) -> int | None:
    """Return the floating-point operations of all matrix products of a forward pass, padding not counted.

    With sequence length s, hidden size h and intermediate size i, a layer takes 2 s (4 h² + 2 h i) for its weights
    (3 h i where the feed-forward part is gated) and 4 s² h for attention: scores and weighted sum, 2 s² h each. A
    multiplication and an addition count two. See Kaplan et al. 2020, "Scaling Laws for Neural Language Models", table
    1, and Hoffmann et al. 2022, "Training Compute-Optimal Large Language Models", appendix F. To that comes what the
    task has behind the layers. Not counted: embeddings, normalization, softmax and activation; a pooler or pooling of
    embedding models; the projection of word embeddings that are narrower than h (ELECTRA, ALBERT; below 1 %).

    Attention is counted in full where a family lets some layers see a window only (ModernBERT), since it is computed
    in full and masked on CPUs.

    Args:
        network: The model.
        lengths: Real tokens of each text.

    Returns:
        The number of operations; None for families whose layers or heads are made in another way.
    """
    if network.model_type in _OTHER_LAYERS:
        return None
    if network.task == "fill-mask" and network.model_type in _OTHER_VOCABULARY_HEADS:
        return None
    each = np.asarray(lengths, dtype=np.int64)
    tokens, squared_tokens = int(each.sum()), int((each * each).sum())
    h, i = network.hidden_size, network.intermediate_size
    feed_forward = (3 if network.model_type in _GATED else 2) * h * i
    layer = 2 * tokens * (4 * h * h + feed_forward) + 4 * squared_tokens * h
    return network.layers * layer + _head_flops(network, len(each), tokens)


def _head_flops(network: Network, texts: int, tokens: int) -> int:
    h, classes = network.hidden_size, max(1, len(network.labels))
    dense = h * h if network.model_type == "modernbert" else 0  # other families have it before classes of texts only
    match network.task:
        case "embedding":
            return 0
        case "classification" | "reranking":  # a dense layer and the classes, for the first token of each text
            return 2 * texts * (h * h + h * classes)
        case "token-classification":
            return 2 * tokens * (dense + h * classes)
        case "question-answering":  # first and last token of the answer
            return 2 * tokens * (dense + h * 2)
        case "fill-mask":  # a dense layer and the vocabulary, for each token
            return 2 * tokens * (h * h + h * network.vocab_size)

"""What the user says of a model against what its files say."""

import msgspec

from pinstripe.models.network import Activation, Aggregation, PoolingMode, Task

__all__ = ["Overrides"]


class Overrides(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values that replace those of the model's files; None keeps the file's value.

    Attributes:
        task: `embedding` for any model; `classification` and `reranking` for sequence classifiers; other tasks only
            for a model whose architecture has their head.
        pooling: Pooling modes of an embedding model, concatenated in order.
        dense: False leaves out the dense layers behind the pooling; True insists on them.
        normalize: Whether embeddings are scaled to unit length; True also where `dimensions` cuts them.
        dimensions: How many values of an embedding are kept, from the first on; for models trained for that
            (Matryoshka).
        activation: Applied to the logits of classification and reranking; `identity` gives raw scores.
        aggregation: How a tagger's tokens become entities, by transformers' names of the strategies.
        stride: Tokens that neighbouring windows of a long context share, in question answering; at least 0 and less
            than `max_tokens`.
        max_tokens: Longest input in tokens, from 1 to the number of positions that the network has.
        lowercase: Whether texts are lower-cased before the tokenizer.
        prompts: Replaces all prompts of the model.
        default_prompt: Name of the prompt used when none is named; the empty string for none.
    """

    task: Task | None = None
    pooling: tuple[PoolingMode, ...] | None = None
    dense: bool | None = None
    normalize: bool | None = None
    dimensions: int | None = None
    activation: Activation | None = None
    aggregation: Aggregation | None = None
    stride: int | None = None
    max_tokens: int | None = None
    lowercase: bool | None = None
    prompts: dict[str, str] | None = None
    default_prompt: str | None = None

"""A model, as far as anything but its forward pass needs to know it."""

from typing import Literal

import msgspec

__all__ = ["Activation", "Aggregation", "Dense", "Network", "PoolingMode", "Similarity", "Task"]

Task = Literal["embedding", "classification", "reranking", "token-classification", "fill-mask", "question-answering"]
PoolingMode = Literal["mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
Activation = Literal["identity", "tanh", "gelu", "relu", "sigmoid", "softmax"]
Aggregation = Literal["none", "simple", "first", "average", "max"]
"""Strategies by which transformers' token-classification pipeline makes entities of tokens; see `group_entities`."""
Similarity = Literal["cosine", "dot", "euclidean", "manhattan"]


class Dense(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dense layer behind the pooling (sentence-transformers' `Dense` module).

    Attributes:
        weights: Path of the safetensors file with `linear.weight` [out, in] and, if `bias`, `linear.bias` [out].
        activation: Applied to its output.
        bias: Whether it has one.
    """

    weights: str
    activation: Activation
    bias: bool


class Network(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model in a local directory: what its files say of it, with the user's overrides applied.

    Attributes:
        name: As the user named it.
        directory: Local directory in Hugging Face layout: `config.json`, safetensors, tokenizer files.
        revision: Commit of a hub model; None for any other source.
        fingerprint: Hex digest that changes whenever the configuration or the weights do; the key of caches.
        tokenizer_fingerprint: Likewise of the tokenizer's files; empty where there are none, or in older records.
        model_type: Transformers' name of the family, such as `bert` or `distilbert`.
        task: What the model is for.
        vocab_size: Rows of the word-embedding table.
        hidden_size: Width of the hidden state.
        layers: Number of encoder layers.
        heads: Attention heads of each layer.
        intermediate_size: Width of the feed-forward part.
        positions: Longest input that the network itself can take, in tokens.
        max_tokens: Longest text in tokens, special tokens included: the least of what the tokenizer's, the
            sentence-transformers' and the network's files say, or the user's override.
        type_vocab_size: Rows of the token-type table; 0 for families without token types.
        pad_token_id: Id that fills the right side of shorter texts.
        mask_token_id: Id that fill-mask predicts; None for models without one.
        labels: Names of the classes, by index; empty for tasks without.
        lowercase: Whether texts are lower-cased before the tokenizer (sentence-transformers' `do_lower_case`).
        pooling: Pooling modes whose results are concatenated, in order; empty for tasks other than embedding.
        dense: Dense layers behind the pooling, in order.
        normalize: Whether embeddings are scaled to unit length.
        dimensions: How many values of an embedding are kept, from the first on; None for all. What is cut from a vector
            of unit length is shorter than that, as it is from sentence-transformers.
        normalize_last: Whether embeddings are scaled to unit length once they are cut.
        similarity: How the model's authors compare its embeddings.
        activation: Applied to the logits of classification and reranking.
        aggregation: How a tagger's tokens become entities.
        stride: Tokens of a context that two neighbouring windows share, where it is longer than `max_tokens` and the
            task is question answering.
        prompts: Texts put before the input, by name, such as `query`.
        default_prompt: Name of the prompt that is used when none is named; None for no prompt.
    """

    name: str
    directory: str
    revision: str | None = None
    fingerprint: str
    tokenizer_fingerprint: str = ""
    model_type: str
    task: Task
    vocab_size: int
    hidden_size: int
    layers: int
    heads: int
    intermediate_size: int
    positions: int
    max_tokens: int
    type_vocab_size: int = 0
    pad_token_id: int = 0
    mask_token_id: int | None = None
    labels: tuple[str, ...] = ()
    lowercase: bool = False
    pooling: tuple[PoolingMode, ...] = ()
    dense: tuple[Dense, ...] = ()
    normalize: bool = False
    dimensions: int | None = None
    normalize_last: bool = False
    similarity: Similarity = "cosine"
    activation: Activation = "identity"
    aggregation: Aggregation = "simple"
    stride: int = 0
    prompts: dict[str, str] = {}
    default_prompt: str | None = None

    @property
    def one_result_a_text(self) -> bool:
        """Whether the network's output has one row a text, such as classes, and not one a token."""
        return self.task in {"classification", "reranking"}

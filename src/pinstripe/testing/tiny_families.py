"""Small random models of the families of encoders, saved by transformers."""

from pathlib import Path
from typing import Any, Final

from pinstripe.models import Network, Task, resolve

__all__ = ["FAMILIES", "TASKS", "make_tiny_network"]

_LABELS: Final = 3
TASKS: Final[dict[Task, str]] = {
    "embedding": "Model",
    "classification": "ForSequenceClassification",
    "reranking": "ForSequenceClassification",
    "token-classification": "ForTokenClassification",
    "fill-mask": "ForMaskedLM",
    "question-answering": "ForQuestionAnswering",
}
"""How the names of transformers' classes end."""
_DISENTANGLED: Final = {"relative_attention": True, "position_biased_input": False, "pos_att_type": ["p2c", "c2p"]}
FAMILIES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "albert": ("Albert", {"embedding_size": 16}),
    "bert": ("Bert", {}),
    # As the published models of version 2 and 3 differ: a convolution; buckets of positions with shared projections.
    "deberta-v2": ("DebertaV2", _DISENTANGLED | {"type_vocab_size": 0, "conv_kernel_size": 3, "conv_act": "gelu"}),
    "deberta-v3": (
        "DebertaV2",
        _DISENTANGLED
        | {"type_vocab_size": 0, "share_att_key": True, "norm_rel_ebd": "layer_norm", "position_buckets": 16},
    ),
    "distilbert": ("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
    "electra": ("Electra", {"embedding_size": 16}),
    # Layers that see the whole text and layers that see 4 tokens to either side take turns: far behind a short text,
    # the latter see nothing, and what they make of that must not reach the text in the next layer.
    "modernbert": ("ModernBert", {"num_hidden_layers": 4, "global_attn_every_n_layers": 2, "local_attention": 8}),
    "mpnet": ("MPNet", {"pad_token_id": 1, "max_position_embeddings": 50}),
    "roberta": ("Roberta", {"pad_token_id": 1, "max_position_embeddings": 50, "type_vocab_size": 1}),
    "xlm-roberta": ("XLMRoberta", {"pad_token_id": 1, "max_position_embeddings": 50, "type_vocab_size": 1}),
}
"""Transformers' prefix of the family's classes, and what its configuration says beside the shape."""


def make_tiny_network(directory: Path, family: str, task: Task = "embedding") -> Network:
    """Write a model of 2 or 4 layers for texts of 48 tokens, and return its network. Needs torch and transformers.

    Args:
        directory: Where; made if it is not there.
        family: One of `FAMILIES`.
        task: What it has a head for.
    """
    import transformers  # noqa: PLC0415 - takes seconds

    prefix, changes = FAMILIES[family]
    model_class = getattr(transformers, prefix + TASKS[task])
    shape = {
        "vocab_size": 99,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 48,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "cls_token_id": 2,
        "sep_token_id": 3,
        "num_labels": 1 if task == "reranking" else _LABELS,
        "initializer_range": 0.2,  # far from 0, so that a wrong mask or position shows
    }
    if task == "question-answering":
        shape["num_labels"] = 2
    transformers.set_seed(1)
    transformers.utils.logging.disable_progress_bar()
    model_class(model_class.config_class(**shape | changes)).save_pretrained(directory)
    return resolve(str(directory))

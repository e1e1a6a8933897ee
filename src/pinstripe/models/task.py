"""What a model is for, and how its logits become scores, from `config.json`."""

from pathlib import Path
from typing import Any, get_args

from pinstripe.errors import ModelError
from pinstripe.models.network import Activation, Task
from pinstripe.models.quoting import quoted

__all__ = [
    "activation_named",
    "architecture",
    "classification_activation",
    "crossencoder_activation",
    "read_labels",
    "task_of_architecture",
]

_HEADS: dict[str, Task] = {
    "ForSequenceClassification": "classification",
    "ForTokenClassification": "token-classification",
    "ForMaskedLM": "fill-mask",
    "ForQuestionAnswering": "question-answering",
}
_DEFAULT_LABELS = 2
"""Of transformers, for a configuration without id2label."""
_MOST_LABELS = 1 << 20
"""Far above any classifier, far below what a number in a damaged file could make us count to."""


def architecture(config: dict[str, Any], path: Path) -> str | None:
    """Return transformers' class of the model that was saved; None where the configuration does not say.

    Raises:
        ModelError: `architectures` is no list of names.
    """
    names = config.get("architectures") or [None]
    if isinstance(names, list) and isinstance(names[0], str | None):
        return names[0]
    raise ModelError(f"{path}: architectures {quoted(names)} is no list of names; correct the file")


def task_of_architecture(config: dict[str, Any], path: Path) -> Task | None:
    """Return the task for which the weights have a head, `embedding` for a bare encoder; None for another head.

    Classification with one label is `reranking`, as a CrossEncoder of sentence-transformers is saved.
    """
    name = architecture(config, path)
    if name is None:
        return "embedding"
    for ending, task in _HEADS.items():
        if name.endswith(ending):
            only = task == "classification" and len(read_labels(config, path)) == 1
            return "reranking" if only else task
    return "embedding" if name.endswith("Model") else None


def read_labels(config: dict[str, Any], path: Path) -> tuple[str, ...]:
    """Return the names of the classes by index; `LABEL_0`, … where they have none.

    Raises:
        ModelError: `id2label` does not number its labels from 0 on, or `num_labels` is no number from 1 to 2**20.
    """
    named = config.get("id2label")
    if not named:
        count = config.get("num_labels") or _DEFAULT_LABELS
        if not isinstance(count, int) or not 1 <= count <= _MOST_LABELS:
            raise ModelError(
                f"{path}: num_labels {quoted(count)} is no number from 1 to {_MOST_LABELS}; correct the file"
            )
        return tuple(f"LABEL_{index}" for index in range(count))
    try:
        labels = {int(index): str(label) for index, label in named.items()}
        names = tuple(labels[index] for index in range(len(labels)))
    except (AttributeError, KeyError, ValueError) as error:
        raise ModelError(
            f"{path}: id2label {quoted(named)} does not number its labels from 0; correct the file"
        ) from error
    if len(names) > _MOST_LABELS:
        raise ModelError(f"{path}: id2label has {len(names)} labels, of at most {_MOST_LABELS}; correct the file")
    return names


def classification_activation(config: dict[str, Any], labels: int) -> Activation:
    """Return what transformers' text-classification pipeline applies to the logits."""
    problem = config.get("problem_type")
    if problem == "regression":
        return "identity"
    if problem == "multi_label_classification" or labels == 1:
        return "sigmoid"
    return "softmax"


def crossencoder_activation(config: dict[str, Any], library: str | None, path: Path) -> Activation:
    """Return what sentence-transformers' CrossEncoder applies to the one logit; sigmoid where no file says.

    Written by 4.0 and later as `activation_fn`, in `config_sentence_transformers.json` or under `sentence_transformers`
    in `config.json`; by earlier versions as `sbert_ce_default_activation_function`.

    Args:
        config: Content of `config.json`.
        library: `activation_fn` of `config_sentence_transformers.json`.
        path: Where the configuration lies, for messages.

    Raises:
        ModelError: The activation is not known.
    """
    nested = config.get("sentence_transformers")
    named = (
        (nested.get("activation_fn") if isinstance(nested, dict) else None)
        or config.get("sbert_ce_default_activation_function")
        or library
    )
    return activation_named(named, path) if named else "sigmoid"


def activation_named(name: object, path: Path) -> Activation:
    """Return the activation of a class path such as `torch.nn.modules.activation.Tanh`.

    Raises:
        ModelError: It is not one of torch's that pinstripe knows; a class of a model's own is code, and never loaded.
    """
    text = str(name)
    for activation in get_args(Activation):
        if text.startswith("torch.") and text.rpartition(".")[2].lower() == activation:
            return activation  # type: ignore[no-any-return] # get_args is untyped
    known = ", ".join(get_args(Activation))
    raise ModelError(f"{path}: activation {quoted(text)} is unknown; known are torch's {known}")

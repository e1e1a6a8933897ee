"""Transformers' model of a network, and as a module of token ids in and the task's result out."""

from pathlib import Path
from typing import Any, Final, Literal

from pinstripe.engines.importing import import_library, one_line
from pinstripe.errors import EngineError
from pinstripe.models import Network, Task

__all__ = ["load_module", "load_network"]

_CLASSES: Final[dict[Task, str]] = {
    "embedding": "AutoModel",
    "classification": "AutoModelForSequenceClassification",
    "reranking": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "fill-mask": "AutoModelForMaskedLM",
    "question-answering": "AutoModelForQuestionAnswering",
}


def load_network(network: Network, *, dtype: Literal["float32", "bfloat16"] = "float32") -> Any:
    """Return transformers' model for the network's task, in evaluation mode.

    Weights are read from safetensors only, and no code from the model's directory is run.

    Args:
        network: The model.
        dtype: What all weights are converted to. Tables that are computed, such as of rotary frequencies, stay float32.

    Raises:
        EngineError: Torch or transformers is missing, the directory cannot be loaded, or it has no weights for the
            task's head (which transformers would fill with random numbers).
    """
    torch = import_library("torch", extra="torch")
    transformers = import_library("transformers", extra="torch")
    if not Path(network.directory).is_dir():  # which transformers would take for the name of a model on the hub
        raise EngineError(f"{network.directory} is no directory; prepare the model on this machine again")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    try:
        # Attention is left to transformers: scaled dot product where the family supports it, else eager.
        model, info = getattr(transformers, _CLASSES[network.task]).from_pretrained(
            network.directory,
            dtype=getattr(torch, dtype),
            local_files_only=True,
            output_loading_info=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except Exception as error:  # transformers raises OSError, ValueError, KeyError, RuntimeError and safetensors' own
        raise EngineError(f"transformers cannot load {network.directory}: {one_line(error)}") from error
    _check_nothing_is_missing(info["missing_keys"], network)
    return model.eval()


def load_module(network: Network, *, dtype: Literal["float32", "bfloat16"] = "float32") -> Any:
    """Return the network as a torch module of three inputs and one output, in the form that compilers take as well.

    Its inputs are int64 [batch, sequence]: token ids; the attention mask, or None if there is no padding; token types,
    or None for the family's default. Its output is the float32 tensor that `LoadedModel.forward` returns. Its attribute
    `network` is transformers' model.

    Raises:
        EngineError: As `load_network`.
    """
    model = load_network(network, dtype=dtype)
    return _as_module(import_library("torch", extra="torch"), model, network.task)


def _as_module(torch: Any, model: Any, task: Task) -> Any:
    class Module(torch.nn.Module):  # type: ignore[misc] # the base is only known at run time
        def __init__(self) -> None:
            super().__init__()
            self.network = model

        def forward(self, input_ids: Any, attention_mask: Any = None, token_type_ids: Any = None) -> Any:
            inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
            if token_type_ids is not None:  # which some families do not know
                inputs["token_type_ids"] = token_type_ids
            output = self.network(**inputs, return_dict=True)
            if task == "embedding":
                return output.last_hidden_state.float()
            if task == "question-answering":
                return torch.stack((output.start_logits, output.end_logits), dim=-1).float()
            return output.logits.float()

    return Module().eval()


def _check_nothing_is_missing(missing: Any, network: Network) -> None:
    """The pooler may be missing from an encoder: its output is not used."""
    absent = sorted(key for key in missing if network.task != "embedding" or "pooler." not in key)
    if absent:
        message = f"{network.directory} has no weights for {', '.join(absent[:3])}{', …' if absent[3:] else ''}"
        raise EngineError(f"{message}; is {network.task} the right task for {network.name}?")

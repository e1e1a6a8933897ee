"""Transformers' own model, run by PyTorch as it is: the reference that the other engines are held to."""

import os
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from pinstripe.engines.importing import import_library, one_line
from pinstripe.engines.options import NoOptions, checked_options
from pinstripe.engines.protocol import ArtefactFormat, EngineReport, LoadRequest, Precision
from pinstripe.errors import EngineError
from pinstripe.models import Network, Task, TokenBatch

__all__ = ["TorchEager", "load_network"]

_CLASSES: Final[dict[Task, str]] = {
    "embedding": "AutoModel",
    "classification": "AutoModelForSequenceClassification",
    "reranking": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "fill-mask": "AutoModelForMaskedLM",
    "question-answering": "AutoModelForQuestionAnswering",
}
# oneDNN computes float32 in a lower precision when told so from outside (its documentation, "Primitive Attributes:
# floating-point math mode").
_MATH_MODE_VARIABLES: Final = ("ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE")
_MATMUL_VARIABLE: Final = "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"  # which images for GPUs set


class TorchEager:
    """PyTorch in eager mode."""

    name: ClassVar[str] = "torch-eager"
    format: ClassVar[ArtefactFormat] = "safetensors"
    precisions: ClassVar[tuple[Precision, ...]] = ("float32",)
    distributions: ClassVar[tuple[str, ...]] = ("torch", "transformers")

    def load(self, request: LoadRequest) -> "_TorchModel":
        """Load transformers' model for the task; see `Engine.load`. There are no options."""
        checked_options(self, request, NoOptions)
        torch = import_library("torch", extra="torch")
        _check_float32_is_computed(torch)
        if request.threads is not None:
            _set_threads(torch, request.threads)
        return _TorchModel(torch, load_network(request.network), request.network)


def load_network(network: Network) -> Any:
    """Return transformers' model for the network's task, in evaluation mode, all weights float32.

    Weights are read from safetensors only, and no code from the model's directory is run.

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
            dtype=torch.float32,
            local_files_only=True,
            output_loading_info=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except Exception as error:  # transformers raises OSError, ValueError, KeyError, RuntimeError and safetensors' own
        raise EngineError(f"transformers cannot load {network.directory}: {one_line(error)}") from error
    _check_nothing_is_missing(info["missing_keys"], network)
    return model.eval()


def _check_nothing_is_missing(missing: Any, network: Network) -> None:
    """The pooler may be missing from an encoder: its output is not used."""
    absent = sorted(key for key in missing if network.task != "embedding" or "pooler." not in key)
    if absent:
        message = f"{network.directory} has no weights for {', '.join(absent[:3])}{', …' if absent[3:] else ''}"
        raise EngineError(f"{message}; is {network.task} the right task for {network.name}?")


def _check_float32_is_computed(torch: Any) -> None:
    for variable in _MATH_MODE_VARIABLES:
        if os.environ.get(variable, "STRICT").upper() != "STRICT":
            raise EngineError(f"{variable}={os.environ[variable]} computes float32 in less; unset it")
    if (precision := torch.get_float32_matmul_precision()) != "highest":
        message = f"torch multiplies float32 in {precision} precision"
        raise EngineError(f"{message}; unset {_MATMUL_VARIABLE}, or set_float32_matmul_precision('highest')")


def _set_threads(torch: Any, threads: int) -> None:
    torch.set_num_threads(threads)
    if torch.get_num_interop_threads() != 1:  # may be set only once in a process
        torch.set_num_interop_threads(1)
    if (effective := torch.get_num_threads()) != threads:
        raise EngineError(f"torch computes with {effective} threads instead of {threads}; unset OMP_THREAD_LIMIT")


class _TorchModel:
    def __init__(self, torch: Any, model: Any, network: Network) -> None:
        self._torch = torch
        self._model = model
        self._task = network.task
        self._has_token_types = network.type_vocab_size > 1

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        inputs = {"input_ids": self._tensor(batch.ids)}
        # Without a mask, attention takes a faster kernel.
        inputs["attention_mask"] = self._tensor(batch.attention_mask()) if batch.padded else None
        if self._has_token_types and batch.type_ids is not None:
            inputs["token_type_ids"] = self._tensor(batch.type_ids)
        with self._torch.inference_mode():
            output = self._model(**inputs, return_dict=True)
        if self._task == "embedding":
            result = output.last_hidden_state
        elif self._task == "question-answering":
            result = self._torch.stack((output.start_logits, output.end_logits), dim=-1)
        else:
            result = output.logits
        return np.ascontiguousarray(result.numpy())

    def report(self) -> EngineReport:
        types = {str(parameter.dtype).removeprefix("torch.") for parameter in self._model.parameters()}
        return EngineReport(
            engine=TorchEager.name,
            version=str(self._torch.__version__),
            precision="+".join(sorted(types)),
            threads=self._torch.get_num_threads(),
            settings={
                "attn_implementation": str(self._model.config._attn_implementation),  # noqa: SLF001 - no public name
                "float32_matmul_precision": self._torch.get_float32_matmul_precision(),
                "num_interop_threads": str(self._torch.get_num_interop_threads()),
            },
        )

    def _tensor(self, array: NDArray[Any]) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64))

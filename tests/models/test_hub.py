"""Hub ids, with a cache made by hand and no network."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pinstripe import models
from pinstripe.errors import ModelError

huggingface_hub = pytest.importorskip("huggingface_hub")
constants = pytest.importorskip("huggingface_hub.constants")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OLDER = "fedcba9876543210fedcba9876543210fedcba98"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty hub cache, in offline mode."""
    hub = tmp_path / "hub"
    hub.mkdir()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(hub))
    monkeypatch.chdir(tmp_path)
    return hub


def fill(cache: Path, model: Path) -> None:
    """Put a model into the cache as organisation/name: `main` and an older commit."""
    repository = cache / "models--organisation--name"
    for commit in (COMMIT, OLDER):
        shutil.copytree(model, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)


def test_a_cached_model_is_used_offline_and_its_commit_recorded(cache: Path, build: Callable[..., Path]) -> None:
    """A branch is resolved to the commit that it stands for; a commit may be named."""
    fill(cache, build())
    network = models.resolve("organisation/name")
    assert network.revision == COMMIT
    assert Path(network.directory).name == COMMIT
    assert models.resolve("organisation/name", revision=OLDER).revision == OLDER


def test_without_a_copy_one_line_says_why_and_what_to_do(cache: Path) -> None:
    """Offline and nothing cached: the model, the reason, the cache, the ways out."""
    with pytest.raises(ModelError, match=r"^organisation/name cannot be had: HF_HUB_OFFLINE is set.*network") as caught:
        models.resolve("organisation/name")
    assert str(cache) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_revision_that_is_not_cached_is_named(cache: Path, build: Callable[..., Path]) -> None:
    """Another revision than the one asked for is never used instead."""
    fill(cache, build())
    with pytest.raises(ModelError, match="organisation/name at revision v2 cannot be had"):
        models.resolve("organisation/name", revision="v2")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("GatedRepoError", "organisation/name is gated"),
        ("RepositoryNotFoundError", "organisation/name is not on the hub, or private"),
        ("RevisionNotFoundError", "organisation/name has no revision 'v2'"),
    ],
)
def test_what_the_hub_refuses_is_told_apart(
    cache: Path, monkeypatch: pytest.MonkeyPatch, error: str, said: str
) -> None:
    """Terms to accept, a name to correct, a revision to correct."""
    assert cache.is_dir()
    kind = getattr(pytest.importorskip("huggingface_hub.errors"), error)

    def refuse(*_: object, **__: object) -> str:
        raise kind.__new__(kind)  # made without the response that it wants

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(ModelError, match=said):
        models.resolve("organisation/name", revision="v2")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("connection reset\nby peer")])
def test_a_download_that_breaks_is_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """The disk, the network, and whatever the transfer library raises."""
    assert cache.is_dir()

    def fail(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(ModelError, match=r"could not be downloaded: .*(No space left|connection reset)") as caught:
        models.resolve("organisation/name")
    assert "\n" not in str(caught.value)


NEEDED = ["config.json", "1_Pooling/config.json", "2_Dense/model.safetensors", "vocab.txt", "sentencepiece.bpe.model"]
NEEDED += ["model-00001-of-00002.safetensors", "onnx/model.onnx", "onnx/model.onnx_data", "onnx/model.onnx.data"]
NEEDED += ["openvino/openvino_model.xml", "openvino/openvino_model.bin", "model.onnx", "openvino_model.bin"]
PICKLES = ["pytorch_model.bin", "2_Dense/pytorch_model.bin", "tf_model.h5", "training.pt", "flax_model.msgpack"]
INT8 = ["onnx/model_int8[1].onnx", "onnx/model_int8[1].onnx_data", "onnx/model_int8[1].onnx.data"]
QUANTIZED = ["openvino/openvino_model_qint8.xml", "openvino/openvino_model_qint8.bin"]
OTHERS = ["onnx/model_O4.onnx", "onnx/model_fp16.onnx", "onnx/model_fp16.onnx_data", "onnx/model_int81.onnx"]


@pytest.mark.parametrize(
    ("file", "chosen"),
    [
        (None, []),
        ("onnx/model.onnx", []),
        (INT8[0], INT8),
        (f"./{INT8[0]}", INT8),
        (QUANTIZED[0], QUANTIZED),
        ("/elsewhere/model.onnx", []),
    ],
)
def test_only_what_is_needed_is_downloaded(
    cache: Path, build: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, file: str | None, chosen: list[str]
) -> None:
    """Float32 graphs under their usual names, the graph that was chosen with its weights, no pickles."""
    fill(cache, build())
    asked: list[str] = []
    real = huggingface_hub.snapshot_download

    def recording(repository: str, *, allow_patterns: list[str], revision: str | None) -> str:
        asked.extend(allow_patterns)
        return str(real(repository, allow_patterns=allow_patterns, revision=revision))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", recording)
    models.resolve("organisation/name", file=file)
    offered = [*NEEDED, *PICKLES, *INT8, *QUANTIZED, *OTHERS]
    kept = huggingface_hub.utils.filter_repo_objects(offered, allow_patterns=asked)
    assert list(kept) == [*NEEDED, *chosen]

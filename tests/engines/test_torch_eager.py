"""What is particular to PyTorch."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from pinstripe.engines import Artefact, LoadedModel, LoadRequest, engine
from pinstripe.errors import EngineError
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import make_batch

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


def _load(network: Network, threads: int | None = 1) -> LoadedModel:
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    return engine("torch-eager").load(LoadRequest(network=network, artefact=artefact, threads=threads))


def test_half_precision_checkpoints_compute_in_float32(tiny: Callable[[str], Network], tmp_path: Path) -> None:
    """Weights stored in 16 bits are widened, and give what transformers gives after `.float()`."""
    network = tiny("roberta-embedding")
    transformers = pytest.importorskip("transformers")
    transformers.RobertaModel.from_pretrained(network.directory).half().save_pretrained(tmp_path / "half")
    model = _load(msgspec.structs.replace(network, directory=str(tmp_path / "half")))
    assert model.report().precision == "float32"
    batch = make_batch(network, 9)
    original = transformers.RobertaModel.from_pretrained(tmp_path / "half").float().eval()
    with torch.no_grad():
        expected = original(torch.tensor(batch.ids.tolist())).last_hidden_state.numpy()
    np.testing.assert_allclose(model.forward(batch), expected, rtol=0, atol=1e-5)


def test_a_head_without_weights_is_refused(tiny: Callable[[str], Network]) -> None:
    """A task that the checkpoint has no head for is refused, where transformers would make up random weights."""
    network = msgspec.structs.replace(tiny("distilbert-embedding"), task="question-answering")
    with pytest.raises(EngineError, match=r"no weights for qa_outputs.*is question-answering the right task"):
        _load(network)


def test_pickles_are_refused(tiny: Callable[[str], Network], tmp_path: Path) -> None:
    """A directory with a pickle only is not loaded, and the error is one line."""
    network = tiny("distilbert-embedding")
    shutil.copy(Path(network.directory, "config.json"), tmp_path)
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(EngineError, match=r"transformers cannot load .*safetensors") as caught:
        _load(msgspec.structs.replace(network, directory=str(tmp_path)))
    assert "\n" not in str(caught.value)


def test_an_absent_directory_is_refused(tiny: Callable[[str], Network]) -> None:
    """A directory that is gone is named, and not looked for on the hub."""
    with pytest.raises(EngineError, match="bert-base-uncased is no directory"):
        _load(msgspec.structs.replace(tiny("distilbert-embedding"), directory="bert-base-uncased"))


@pytest.mark.parametrize("variable", ["ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"])
def test_a_lower_math_mode_is_refused(
    variable: str, tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment that makes oneDNN compute float32 in bfloat16 is not called float32."""
    monkeypatch.setenv(variable, "BF16")
    with pytest.raises(EngineError, match=f"{variable}=BF16"):
        _load(tiny("distilbert-embedding"))


def test_a_lower_matmul_precision_is_refused(tiny: Callable[[str], Network]) -> None:
    """Matrices multiplied in less than float32, as torch can be told, are not called float32."""
    torch.set_float32_matmul_precision("high")
    try:
        with pytest.raises(EngineError, match="in high precision; unset TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"):
            _load(tiny("distilbert-embedding"))
    finally:
        torch.set_float32_matmul_precision("highest")


def test_threads(tiny: Callable[[str], Network]) -> None:
    """The number asked for is in effect; without one, it is left as it was."""
    network = tiny("distilbert-embedding")
    for threads in (2, 1):
        report = _load(network, threads).report()
        assert (report.threads, report.settings["num_interop_threads"]) == (threads, "1")
    torch.set_num_threads(2)
    assert _load(network, None).report().threads == 2

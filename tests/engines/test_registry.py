"""Engines by name, and what it costs to have them."""

import subprocess
import sys

import pytest

from pinstripe.engines import Artefact, LoadRequest, engine, engine_names
from pinstripe.errors import EngineError
from pinstripe.testing.fake_engine import fake_network


def test_names() -> None:
    """The names users type."""
    assert engine_names() == (
        "fake",
        "onnxruntime",
        "openvino",
        "tf-eager",
        "tf-graph",
        "tf-xla",
        "torch-compile",
        "torch-eager",
        "torchscript",
    )
    assert [engine(name).name for name in engine_names()] == list(engine_names())
    assert [engine(name).format for name in engine_names()] == ["none", "onnx", "openvino", *["safetensors"] * 6]


def test_unknown_name() -> None:
    """An unknown name is refused with those that there are."""
    with pytest.raises(EngineError, match=r"'onyx'.*onnxruntime, openvino, tf-eager, .*, torchscript"):
        engine("onyx")


def test_engines_are_light_to_import() -> None:
    """Having all engines imports none of their libraries, and nothing that a worker's environment may lack."""
    heavy = ["torch", "onnxruntime", "onnx", "openvino", "transformers"]
    absent_in_workers = ["tokenizers", "huggingface_hub", "typer", "rich", "safetensors"]
    code = (
        "import sys\n"
        "from pinstripe.engines import engine, engine_names\n"
        "print([engine(name).name for name in engine_names()])\n"
        f"print([name for name in {heavy + absent_in_workers} if name in sys.modules])\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.splitlines()[1] == "[]"


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("torch-eager", "torch", "torch"),
        ("torch-eager", "transformers", "torch"),
        ("onnxruntime", "onnxruntime", "onnxruntime"),
        ("openvino", "openvino", "openvino"),
    ],
)
def test_missing_library(name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not installed is named, with the command that installs it."""
    if module == "transformers":
        pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, module, None)
    if name != "torch-eager":
        monkeypatch.setattr(f"pinstripe.engines.{name}.check_float32_weights", lambda *_, **__: frozenset())
    artefact = Artefact(format=engine(name).format, path="/nowhere", origin="model")
    with pytest.raises(
        EngineError,
        match=rf"^{module} is not installed; run .* install 'pinstripe\[{extra}\]'`, or name a Python that has it with "
        "--python, or choose another engine$",
    ):
        engine(name).load(LoadRequest(network=fake_network(), artefact=artefact))


def test_broken_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that lacks one of its own dependencies is told from one that is absent."""
    for name in [name for name in sys.modules if name.split(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, name)
    pytest.importorskip("importlib.util").find_spec("onnxruntime") or pytest.skip("onnxruntime is not installed")
    monkeypatch.setitem(sys.modules, "onnxruntime.capi", None)
    monkeypatch.setattr("pinstripe.engines.onnxruntime.check_float32_weights", lambda *_, **__: frozenset())
    artefact = Artefact(format="onnx", path="/nowhere", origin="model")
    with pytest.raises(EngineError, match=r"^onnxruntime cannot be imported, it lacks onnxruntime\.capi"):
        engine("onnxruntime").load(LoadRequest(network=fake_network(), artefact=artefact))


@pytest.mark.parametrize(
    ("said", "meant"),
    [("torch", "torch-compile or torch-eager or torchscript"), ("onnx", "onnxruntime"), ("openvno", "openvino")],
)
def test_a_near_name_is_suggested(said: str, meant: str) -> None:
    """A part of a name, or a slip, is answered with the engine that was probably meant."""
    with pytest.raises(EngineError, match=f"did you mean {meant}"):
        engine(said)

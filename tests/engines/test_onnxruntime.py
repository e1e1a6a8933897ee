"""What is particular to ONNX Runtime."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from pinstripe.cache import cache_directory
from pinstripe.engines import Artefact, LoadedModel, LoadRequest, engine
from pinstripe.errors import EngineError
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import make_batch
from pinstripe.testing.fake_engine import fake_network

pytest.importorskip("onnxruntime")

_PINNED = """
import os
cpu = min(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
import msgspec
from pathlib import Path
from pinstripe.engines import LoadRequest, engine
from pinstripe.testing.engine_conformance import make_batch
request = msgspec.json.decode(os.environ["REQUEST"], type=LoadRequest)
model = engine("onnxruntime").load(request)
model.forward(make_batch(request.network, 5))
masks = {frozenset(os.sched_getaffinity(int(task.name))) for task in Path("/proc/self/task").iterdir()}
print(model.report().threads, masks == {frozenset({cpu})})
"""


def _load(path: Path, network: Network, **changes: Any) -> LoadedModel:
    artefact = Artefact(format="onnx", path=str(path), origin="model")
    return engine("onnxruntime").load(LoadRequest(network=network, artefact=artefact, **changes))


def _graph(path: Path, inputs: dict[str, int], outputs: dict[str, str]) -> Path:
    """Write a graph whose outputs are casts of its inputs, all [batch, sequence]."""
    onnx = pytest.importorskip("onnx")
    helper, float_type, shape = onnx.helper, onnx.TensorProto.FLOAT, ["batch", "sequence"]
    nodes = [helper.make_node("Cast", [given], [name], to=float_type) for name, given in outputs.items()]
    weights = onnx.numpy_helper.from_array(np.ones((2, 2), np.float32), "w")
    graph = helper.make_graph(
        nodes,
        "casts",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(name, float_type, shape) for name in outputs],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


def test_inputs_by_name(tmp_path: Path) -> None:
    """Position ids are given to a graph that asks for them, in 32 bits if it wants those; RoBERTa's begin later."""
    onnx = pytest.importorskip("onnx")
    inputs = {"input_ids": onnx.TensorProto.INT64, "position_ids": onnx.TensorProto.INT32}
    path = _graph(tmp_path / "model.onnx", inputs, {"last_hidden_state": "position_ids"})
    batch = make_batch(fake_network(), 3, 3)
    assert _load(path, fake_network()).forward(batch).tolist() == [[0, 1, 2], [0, 1, 2]]
    roberta = fake_network(model_type="roberta", pad_token_id=1)
    assert _load(path, roberta).forward(batch).tolist() == [[2, 3, 4], [2, 3, 4]]


def test_outputs_by_name(tmp_path: Path) -> None:
    """Outputs are found by name, in any order; start and end logits become the last axis."""
    onnx = pytest.importorskip("onnx")
    inputs = {"input_ids": onnx.TensorProto.INT64, "attention_mask": onnx.TensorProto.INT64}
    outputs = {"end_logits": "attention_mask", "start_logits": "input_ids", "token_embeddings": "input_ids"}
    path = _graph(tmp_path / "model.onnx", inputs, outputs)
    batch = make_batch(fake_network(), 3, 2)
    result = _load(path, fake_network(task="question-answering")).forward(batch)
    np.testing.assert_array_equal(result[:, :, 0], batch.ids)
    np.testing.assert_array_equal(result[:, :, 1], [[1, 1, 1], [1, 1, 0]])
    np.testing.assert_array_equal(_load(path, fake_network()).forward(batch), batch.ids)
    with pytest.raises(
        EngineError, match=r"outputs end_logits, start_logits, token_embeddings, but fill-mask needs log"
    ):
        _load(path, fake_network(task="fill-mask"))


def test_unknown_inputs_are_refused(tmp_path: Path) -> None:
    """A graph that wants something else is refused by the input's name."""
    onnx = pytest.importorskip("onnx")
    inputs = {"input_ids": onnx.TensorProto.INT64, "pixel_values": onnx.TensorProto.FLOAT}
    path = _graph(tmp_path / "model.onnx", inputs, {"last_hidden_state": "input_ids"})
    with pytest.raises(EngineError, match="asks for the inputs pixel_values"):
        _load(path, fake_network())


def test_options(tiny: Callable[[str], Network], artefact: Callable[[str, Network], Artefact]) -> None:
    """Options are read back from the session, and a value that there is not is refused."""
    network = tiny("distilbert-embedding")
    path = Path(artefact("onnxruntime", network).path)
    settings = _load(path, network, options={"spin": 0, "optimization": "basic"}).report().settings
    assert settings["session.intra_op.allow_spinning"] == "0"
    assert settings["graph_optimization_level"] == "ORT_ENABLE_BASIC"
    assert settings["providers"] == "CPUExecutionProvider"
    with pytest.raises(EngineError, match="optimization=most; use disabled, basic, extended or all"):
        _load(path, network, options={"optimization": "most"})


@pytest.mark.parametrize(
    ("option", "microseconds"), [({}, None), ({"spin": 7}, "7000"), ({"spin": 10_000}, "10000000")]
)
def test_spin_is_a_time(
    option: dict[str, int],
    microseconds: str | None,
    tiny: Callable[[str], Network],
    artefact: Callable[[str, Network], Artefact],
) -> None:
    """Milliseconds become the session's microseconds; without the option the library's default is not touched."""
    network = tiny("distilbert-embedding")
    path = Path(artefact("onnxruntime", network).path)
    settings = _load(path, network, threads=2, options=option).report().settings
    assert settings["session.intra_op.allow_spinning"] == "1"
    assert settings.get("session.intra_op.spin_duration_us") == microseconds


def test_an_older_version_knows_no_time_to_spin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would ignore the entry, so it is refused; not to spin at all it has always known."""
    onnx = pytest.importorskip("onnx")
    path = _graph(tmp_path / "model.onnx", {"input_ids": onnx.TensorProto.INT64}, {"last_hidden_state": "input_ids"})
    monkeypatch.setattr("onnxruntime.__version__", "1.25.2")
    with pytest.raises(EngineError, match=r"onnxruntime 1\.25\.2 takes no spin=5; install 1\.26 or newer"):
        _load(path, fake_network(), threads=2, options={"spin": 5})
    _load(path, fake_network(), threads=2, options={"spin": 0})


def test_threads_stay_in_the_affinity(
    tiny: Callable[[str], Network], artefact: Callable[[str, Network], Artefact], tmp_path: Path
) -> None:
    """Held to one CPU, the three threads asked for are made, and none leaves that CPU or writes to the home directory.

    Telemetry would leave a database in `~/.cache/Microsoft`, and its threads would be counted.
    """
    network = tiny("distilbert-embedding")
    request = LoadRequest(network=network, artefact=artefact("onnxruntime", network), threads=3)
    home = tmp_path / "home"
    home.mkdir()
    environment = os.environ | {"REQUEST": msgspec.json.encode(request).decode(), "HOME": str(home)}
    del environment["ORT_DISABLE_TELEMETRY"]
    command = [sys.executable, "-c", _PINNED]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert result.stdout == "3 True\n", result.stderr
    assert list(home.iterdir()) == []


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """A file that is no model gives one line with its name."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x08")
    with pytest.raises(EngineError, match=r"onnxruntime cannot load .*model\.onnx") as caught:
        _load(path, fake_network())
    assert "\n" not in str(caught.value)


def test_optimized_once_and_mapped(
    tiny: Callable[[str], Network], artefact: Callable[[str, Network], Artefact]
) -> None:
    """The optimized graph is kept, its weights are mapped and not read, and results are those of a plain session."""
    onnxruntime = pytest.importorskip("onnxruntime")
    network = tiny("bert-token-classification")
    path = Path(artefact("onnxruntime", network).path)
    model = _load(path, network, threads=1)
    (weights,) = (cache_directory() / "compiled").glob("*/model.onnx.data")
    made_ns = weights.stat().st_mtime_ns
    assert f" {weights}" in Path("/proc/self/maps").read_text()
    other = _load(path, network, threads=1)
    assert weights.stat().st_mtime_ns == made_ns
    batch = make_batch(network, 9, 31)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    plain = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given: dict[str, Any] = {
        "input_ids": batch.ids,
        "attention_mask": batch.attention_mask(),
        "token_type_ids": np.zeros_like(batch.ids),
    }
    (expected,) = plain.run(None, {name: array.astype(np.int64) for name, array in given.items()})
    np.testing.assert_array_equal(model.forward(batch), expected)
    np.testing.assert_array_equal(other.forward(batch), expected)
    _load(path, network, threads=1, options={"optimization": "basic"})
    assert len(list((cache_directory() / "compiled").glob("*/model.onnx.data"))) == 2


@pytest.mark.parametrize(("file", "kept"), [("model.onnx.data", 1000), ("model.onnx", 500), ("model.onnx", 0)])
def test_a_damaged_optimized_graph_is_made_anew(
    file: str, kept: int, tiny: Callable[[str], Network], artefact: Callable[[str, Network], Artefact]
) -> None:
    """Cached files that were cut cost another optimization, once, and no error: they are only a cache."""
    network = tiny("distilbert-embedding")
    path = Path(artefact("onnxruntime", network).path)
    batch = make_batch(network, 2, 5)
    expected = _load(path, network, threads=1).forward(batch)
    (damaged,) = (cache_directory() / "compiled").glob(f"*/{file}")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:kept])
    model = _load(path, network, threads=1)
    np.testing.assert_array_equal(model.forward(batch), expected)
    assert model.report().threads == 1
    assert damaged.stat().st_size == len(whole)

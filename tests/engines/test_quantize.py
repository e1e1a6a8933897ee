"""Int8 graphs: made once, of what was asked, and near to float32 on real texts."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe.cache import cache_directory
from pinstripe.engines import Artefact, LoadedModel, LoadRequest, Precision, engine, prepare
from pinstripe.engines.exporting.calibration import Calibration
from pinstripe.engines.graphs.weights import weight_types
from pinstripe.errors import EngineError, ExecutionError
from pinstripe.models import EncodedText, Network, TokenBatch
from pinstripe.testing.engine_conformance import make_batch
from pinstripe.testing.fake_engine import fake_network

_TEXTS = Path(__file__).parents[2] / ".." / "shared" / "corpus" / "texts.jsonl"
_ONNX = engine("onnxruntime")
_OPENVINO = engine("openvino")
_STATIC = {"quantization": "static"}
_WIDTH = 32


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Return a network of no files, 100 ids and 32 values a token."""
    return fake_network(directory=str(tmp_path), vocab_size=100, hidden_size=_WIDTH, max_tokens=48)


def _arrays(seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    embeddings = random.standard_normal((100, _WIDTH), dtype=np.float32)
    # Columns of very different sizes, which one scale for all would spoil.
    weights = random.standard_normal((_WIDTH, _WIDTH), dtype=np.float32) * np.logspace(-2, 0, _WIDTH, dtype=np.float32)
    return embeddings, weights


def _onnx_product(path: Path, seed: int = 0) -> str:
    """Write a graph that looks embeddings up and multiplies them by one matrix."""
    onnx = pytest.importorskip("onnx")
    helper, (embeddings, weights) = onnx.helper, _arrays(seed)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["embeddings", "input_ids"], ["hidden"]),
            helper.make_node("MatMul", ["hidden", "weights"], ["last_hidden_state"]),
        ],
        "product",
        [helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, ["batch", "sequence", _WIDTH])],
        [onnx.numpy_helper.from_array(embeddings, "embeddings"), onnx.numpy_helper.from_array(weights, "weights")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)


def _openvino_product(path: Path, seed: int = 0) -> str:
    """Write the same as OpenVINO's."""
    openvino = pytest.importorskip("openvino")
    operations, (embeddings, weights) = openvino.opset13, _arrays(seed)
    ids = operations.parameter([-1, -1], np.int64, name="input_ids")
    ids.output(0).set_names({"input_ids"})
    hidden = operations.gather(operations.constant(embeddings), ids, operations.constant(0))
    product = operations.matmul(hidden, operations.constant(weights), False, False)  # noqa: FBT003 - positional only
    product.output(0).set_names({"last_hidden_state"})
    openvino.save_model(openvino.Model([product], [ids], "product"), path, compress_to_fp16=False)
    return str(path)


def _calibration(seed: int) -> Calibration:
    random = np.random.default_rng(seed)
    return Calibration([EncodedText(ids=random.integers(1, 100, 8).astype(np.int32), type_ids=None) for _ in range(8)])


def _load(artefact: Artefact, network: Network, precision: Precision = "int8", **options: Any) -> LoadedModel:
    name = "onnxruntime" if artefact.format == "onnx" else "openvino"
    request = LoadRequest(network=network, artefact=artefact, precision=precision, threads=1, options=options)
    return engine(name).load(request)


def test_dynamic_onnx_by_hand(network: Network, tmp_path: Path) -> None:
    """Weights have a scale a column, activations one for the batch: numpy's integers give onnxruntime's result."""
    pytest.importorskip("onnxruntime")
    artefact = prepare(_ONNX, network, precision="int8", file=_onnx_product(tmp_path / "float.onnx"))
    assert (artefact.origin, artefact.quantization) == ("export", "dynamic")
    assert weight_types(Path(artefact.path)) == {"float32", "int8"}
    embeddings, weights = _arrays()
    batch = make_batch(network, 7, 7)
    hidden = embeddings[batch.ids]
    column_scales = np.abs(weights).max(axis=0) / 127
    low, high = min(0, hidden.min()), max(0, hidden.max())
    scale = (high - low) / 255
    zero = np.round(-low / scale)
    integers = np.clip(np.round(hidden / scale) + zero, 0, 255) - zero
    expected = integers @ np.round(weights / column_scales) * scale * column_scales
    model = _load(artefact, network)
    np.testing.assert_allclose(model.forward(batch), expected, rtol=0, atol=2e-3 * np.abs(expected).max())
    assert np.abs(model.forward(batch) - hidden @ weights).max() > 1e-4  # so that it is not the float32 product
    assert model.report().precision == "int8"
    assert model.report().settings["products"] == "1 in int8"


def test_compressed_openvino_by_hand(network: Network, tmp_path: Path) -> None:
    """Weights have a symmetric scale a column; activations are rounded by the group, which costs little."""
    pytest.importorskip("nncf")
    artefact = prepare(_OPENVINO, network, precision="int8", file=_openvino_product(tmp_path / "float.xml"))
    embeddings, weights = _arrays()
    batch = make_batch(network, 7, 7)
    scales = np.abs(weights).max(axis=0) / 127
    expected = embeddings[batch.ids] @ (np.round(weights / scales) * scales)
    model = _load(artefact, network)
    np.testing.assert_allclose(model.forward(batch), expected, rtol=0, atol=0.02 * np.abs(expected).max())
    assert model.report().precision == "int8"


def test_quantized_once(network: Network, tmp_path: Path) -> None:
    """The second time nothing is run; another source, or the same one changed, is quantized anew."""
    pytest.importorskip("onnxruntime")
    file = _onnx_product(tmp_path / "float.onnx")
    first = prepare(_ONNX, network, precision="int8", file=file)
    nothing = str(tmp_path / "no-python")
    assert prepare(_ONNX, network, precision="int8", file=file, python=nothing) == first
    _onnx_product(tmp_path / "float.onnx", seed=1)
    with pytest.raises(EngineError, match=r"no-python: there is no such interpreter"):
        prepare(_ONNX, network, precision="int8", file=file, python=nothing)
    note = msgspec.json.decode(Path(first.path).with_name("export.json").read_bytes())
    assert {"onnx", "onnxruntime"} <= set(note["versions"])


def test_calibration_is_part_of_the_key(network: Network, tmp_path: Path) -> None:
    """Other texts give another file; its scales are fixed, and its products int8."""
    pytest.importorskip("nncf")
    file = _openvino_product(tmp_path / "float.xml")
    made = [
        prepare(_OPENVINO, network, precision="int8", options=_STATIC, file=file, calibration=_calibration(seed))
        for seed in (0, 1, 0)
    ]
    assert made[0] == made[2]
    assert made[0].path != made[1].path
    assert made[0].calibration == _calibration(0).digest
    model = _load(made[0], network, "int8", **_STATIC)
    assert model.report().settings["products"] == "1 in int8"
    assert model.report().settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == "0"


def test_calibration_where_it_belongs(network: Network, tmp_path: Path) -> None:
    """Static quantization without texts is refused, and so are texts that would not be used."""
    file = str(tmp_path / "float.xml")
    with pytest.raises(EngineError, match="texts like yours; name a file with --calibration"):
        prepare(_OPENVINO, network, precision="int8", options=_STATIC, file=file)
    for kind, precision in ((_OPENVINO, "int8"), (_OPENVINO, "float32"), (_ONNX, "int8"), (engine("fake"), "float32")):
        with pytest.raises(EngineError, match=r"--calibration was given, but .*leave it out"):
            prepare(kind, network, precision=precision, calibration=_calibration(0))  # type: ignore[arg-type] # a literal


def test_an_int8_file_is_taken_as_it_is(network: Network, tmp_path: Path) -> None:
    """The user's own is not quantized again, even by one scale for all; for float32 it stays an error."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    own = str(tmp_path / "model_quantized.onnx")
    quantization.quantize_dynamic(_onnx_product(tmp_path / "float.onnx"), own, op_types_to_quantize=["MatMul"])
    artefact = prepare(_ONNX, network, precision="int8", file=own)
    assert artefact == Artefact(format="onnx", path=own, origin="model")
    assert _load(artefact, network).report().precision == "int8"
    with pytest.raises(EngineError, match="int8 weights, which is not a float32 model"):
        prepare(_ONNX, network, file=own)
    with pytest.raises(EngineError, match="int8 weights, which is not a float32 model"):
        _load(artefact, network, "float32")


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_float32_is_not_taken_for_int8(name: str, network: Network, tmp_path: Path) -> None:
    """A float32 file that is loaded for int8 is refused: nothing in it multiplies integers."""
    pytest.importorskip(name)
    path = _onnx_product(tmp_path / "f.onnx") if name == "onnxruntime" else _openvino_product(tmp_path / "f.xml")
    artefact = Artefact(format=engine(name).format, path=path, origin="model")
    with pytest.raises(EngineError, match="is not computed in int8 here: of its products with weights, 1 in float32"):
        _load(artefact, network)


@pytest.mark.parametrize("bits", [4, 8])
def test_weights_that_are_widened_are_not_int8(bits: int, network: Network, tmp_path: Path) -> None:
    """An ONNX file whose weights are made float32 before they are multiplied is refused.

    At its highest level onnxruntime turns one of 8 bits into a product that rounds activations: that is int8.
    """
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    model = onnx.load(_onnx_product(tmp_path / "float.onnx"))
    integers = onnx.numpy_helper.from_array(np.ones((_WIDTH, _WIDTH), np.int8), "weights")
    if bits == 4:
        integers = onnx.helper.make_tensor("weights", onnx.TensorProto.INT4, (_WIDTH, _WIDTH), [1] * _WIDTH**2)
        model.opset_import[0].version, model.ir_version = 21, 10
    model.graph.initializer[1].CopyFrom(integers)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.1), "scale"))
    model.graph.node.insert(1, onnx.helper.make_node("DequantizeLinear", ["weights", "scale"], ["wide"]))
    model.graph.node[2].input[1] = "wide"
    path = tmp_path / "weights_only.onnx"
    onnx.save(model, path)
    artefact = Artefact(format="onnx", path=str(path), origin="model")
    with pytest.raises(EngineError, match=r"is not computed in int8 here.*1 in float32"):
        _load(artefact, network, optimization="disabled")
    if bits == 8:
        assert _load(artefact, network, optimization="all").report().settings["products"] == "1 in int8"
    else:
        with pytest.raises(EngineError, match="is not computed in int8 here"):
            _load(artefact, network, optimization="all")


def test_a_damaged_quantized_file_is_said(network: Network, tmp_path: Path) -> None:
    """A cached file that was cut is not loaded; the message names the directory whose removal mends it."""
    pytest.importorskip("onnxruntime")
    file = _onnx_product(tmp_path / "float.onnx")
    path = Path(prepare(_ONNX, network, precision="int8", file=file).path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ExecutionError, match=f"{path.parent} is damaged .*delete that directory"):
        prepare(_ONNX, network, precision="int8", file=file)


def test_killed_while_quantizing(network: Network, tmp_path: Path) -> None:
    """What a killed process had begun is not taken for a result: the next one makes it whole."""
    pytest.importorskip("onnxruntime")
    file = _onnx_product(tmp_path / "float.onnx")
    waiting = tmp_path / "python"
    waiting.write_text(
        f'#!/bin/sh\nfor last; do :; done\necho half > "$last/model.onnx"\ntouch {tmp_path}/begun\nexec sleep 60\n'
    )
    waiting.chmod(0o755)
    (tmp_path / "network.json").write_bytes(msgspec.json.encode(network))
    code = (
        "import msgspec, pathlib, sys\n"
        "from pinstripe.engines import engine, prepare\n"
        "from pinstripe.models import Network\n"
        "network = msgspec.json.decode(pathlib.Path(sys.argv[1]).read_bytes(), type=Network)\n"
        "prepare(engine('onnxruntime'), network, precision='int8', file=sys.argv[2], python=sys.argv[3])\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "network.json"), file, str(waiting)]
    with subprocess.Popen(command) as process:
        end = time.monotonic() + 60
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < end
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    assert list((cache_directory() / "quantized").glob(".*.unfinished-*/model.onnx"))
    artefact = prepare(_ONNX, network, precision="int8", file=file)
    assert _load(artefact, network).report().precision == "int8"
    assert not list((cache_directory() / "quantized").glob(".*.unfinished-*"))


def test_shared_weights_are_quantized(tiny: Callable[[str], Network], artefact: Callable[..., Artefact]) -> None:
    """Layers that share their weights, as ALBERT's, all multiply integers."""
    albert = tiny("albert-embedding")
    model = _load(artefact("onnxruntime", albert, "int8"), albert)
    # Two layers of six matrices (query, key, value, output, and two of the feed-forward part), and the projection.
    assert model.report().settings["products"] == "13 in int8"


@pytest.fixture(scope="module")
def rows(minilm: Network) -> list[list[int]]:
    """Return token ids of 48 real texts of all kinds, by the library tokenizers."""
    if not _TEXTS.is_file():
        pytest.skip("the corpus of real texts, ../shared/corpus, is not here")
    tokenizer = pytest.importorskip("tokenizers").Tokenizer.from_file(str(Path(minilm.directory, "tokenizer.json")))
    tokenizer.no_padding()
    tokenizer.enable_truncation(64)
    with _TEXTS.open(encoding="utf-8") as lines:
        chosen = [json.loads(line)["text"] for number, line in enumerate(lines) if number % 25 == 0][:48]
    return [tokenizer.encode(text).ids for text in chosen]


def _embeddings(model: LoadedModel, rows: list[list[int]]) -> NDArray[np.float32]:
    """Return mean-pooled embeddings of unit length."""
    means = []
    for ids in rows:
        batch = TokenBatch(ids=np.array([ids], np.int32), lengths=np.array([len(ids)], np.int32))
        means.append(model.forward(batch)[0].mean(axis=0))
    vectors = np.array(means)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@pytest.mark.parametrize("kind", ["onnxruntime", "openvino", "openvino-static"])
def test_near_to_float32_on_real_texts(
    kind: str, minilm: Network, artefact: Callable[..., Artefact], rows: list[list[int]]
) -> None:
    """MiniLM's embeddings keep a cosine of 0.99 in the mean and 0.97 at the least; they are not float32's."""
    name, _, static = kind.partition("-")
    original = artefact(name, minilm)
    if static:
        if importlib.util.find_spec("nncf") is None:
            pytest.skip("nncf is not installed")
        texts = Calibration([EncodedText(ids=np.array(ids, np.int32), type_ids=None) for ids in rows])
        options: dict[str, Any] = dict(_STATIC)
        quantized = prepare(_OPENVINO, minilm, precision="int8", options=options, file=original.path, calibration=texts)
    else:
        options, quantized = {}, artefact(name, minilm, "int8")
    reference = _embeddings(_load(original, minilm, "float32"), rows)
    model = _load(quantized, minilm, **options)
    cosines = (_embeddings(model, rows) * reference).sum(axis=1)
    assert 0.99 <= cosines.mean() < 0.99999
    assert cosines.min() >= 0.97
    assert model.report().settings["products"] == "36 in int8"  # 6 layers of 6 matrices

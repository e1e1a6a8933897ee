"""Element types of weights, read without the libraries that made the files; those libraries are the judges."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.engines.graphs.weights import check_float32_weights, graph_digest, weight_types
from pinstripe.errors import EngineError


def _onnx_model(*arrays: Any) -> Any:
    """Return an ONNX model that does nothing, with the arrays as initializers."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    tensors = [onnx.numpy_helper.from_array(array, f"w{number}") for number, array in enumerate(arrays)]
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    node = helper.make_node("Identity", ["x"], ["y"])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    return helper.make_model(helper.make_graph([node], "nothing", [value], [result], tensors))


@pytest.fixture
def quantized(tmp_path: Path) -> Path:
    """Return the path of a MatMul that onnxruntime quantized to int8."""
    onnx = pytest.importorskip("onnx")
    quantization = pytest.importorskip("onnxruntime.quantization")
    helper, float_type = onnx.helper, onnx.TensorProto.FLOAT
    weights = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", float_type, [1, 8])],
        [helper.make_tensor_value_info("y", float_type, [1, 8])],
        [weights],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "float.onnx")
    target = tmp_path / "model_quantized.onnx"
    quantization.quantize_dynamic(tmp_path / "float.onnx", target, weight_type=quantization.QuantType.QInt8)
    return target


def test_onnx_types(tmp_path: Path) -> None:
    """Matrices count, in whatever type; vectors and indices don't."""
    matrix = np.ones((3, 4))
    path = tmp_path / "model.onnx"
    for dtypes, expected in [
        (["float32"], {"float32"}),
        (["float32", "float16"], {"float32", "float16"}),
        (["int8", "uint8", "float64"], {"int8", "uint8", "float64"}),
        (["float32", "int64", "int32", "bool"], {"float32"}),
        ([], set()),
    ]:
        model = _onnx_model(*[matrix.astype(dtype) for dtype in dtypes], np.ones(9, np.int8), np.array(1, np.float16))
        path.write_bytes(model.SerializeToString())
        assert weight_types(path) == expected


def test_quantized_onnx_is_refused(quantized: Path) -> None:
    """A file quantized by onnxruntime is not float32, and its error says so."""
    assert "int8" in weight_types(quantized)
    with pytest.raises(EngineError, match=r"model_quantized\.onnx has int8 weights.*--file"):
        check_float32_weights(quantized, rounded=False)


@given(data=st.data())
def test_changed_onnx_gives_a_clear_error(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever bytes are changed, amid a message too, nothing but an EngineError is raised."""
    content = bytearray(_onnx_model(np.ones((3, 4), np.float16), np.ones((5, 6), np.float32)).SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("changed") / "model.onnx"
    path.write_bytes(content)
    with suppress(EngineError):
        weight_types(path)


@pytest.mark.timeout(10)
def test_endless_numbers_are_refused(tmp_path: Path) -> None:
    """A number of a million digits is no number of a protocol buffer (64 bits), and is not worked out."""
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08" + b"\xff" * 1_000_000)
    with pytest.raises(EngineError, match="no protocol buffer"):
        weight_types(path)


@given(cut=st.integers(0, 400))
def test_damaged_onnx_gives_a_clear_error(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """However a file is truncated, the answer is a subset of the right one or an EngineError."""
    content = _onnx_model(np.ones((3, 4), np.float16), np.ones((5, 6), np.float32)).SerializeToString()
    path = tmp_path_factory.mktemp("damaged") / "model.onnx"
    path.write_bytes(content[:cut])
    try:
        assert weight_types(path) <= {"float16", "float32"}
    except EngineError as error:
        assert str(path) in str(error)  # noqa: PT017 - either outcome is right, depending on where the cut is


@pytest.mark.parametrize(
    "content", [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 90\n", b"\xff" * 50]
)
def test_no_onnx_at_all(content: bytes, tmp_path: Path) -> None:
    """Empty files, git-lfs pointers and garbage are named as unreadable."""
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(EngineError, match="cannot be read as a model"):
        weight_types(path)


def _save_ir(path: Path, weights: Any, *, compress: bool) -> None:
    openvino = pytest.importorskip("openvino")
    operations = openvino.opset13
    given_input = operations.parameter([-1, 64], np.float32, name="x")
    constant = operations.convert(operations.constant(weights), "f32")
    model = openvino.Model([operations.matmul(given_input, constant, False, False)], [given_input], "product")  # noqa: FBT003 - positional only there
    openvino.save_model(model, path, compress_to_fp16=compress)


def test_openvino_types(tmp_path: Path) -> None:
    """OpenVINO's own compression to 16 bits is seen and may be allowed; 8-bit weights may not."""
    path = tmp_path / "model.xml"
    ones = np.linspace(0, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    _save_ir(path, ones, compress=False)
    assert weight_types(path) == {"float32"}
    _save_ir(path, ones, compress=True)
    assert weight_types(path) == check_float32_weights(path, rounded=True) == {"float16"}
    with pytest.raises(EngineError, match="float16 weights"):
        check_float32_weights(path, rounded=False)
    _save_ir(path, np.ones((64, 64), np.int8), compress=False)
    with pytest.raises(EngineError, match="int8 weights"):
        check_float32_weights(path, rounded=True)


def test_digest_of_all_files(tmp_path: Path) -> None:
    """Weights outside of the graph's file count, and its name and place do not."""
    onnx = pytest.importorskip("onnx")

    def save(directory: str, value: float) -> Path:
        (tmp_path / directory).mkdir()
        path = tmp_path / directory / "model.onnx"
        model = _onnx_model(np.full((40, 40), value, np.float32))
        onnx.save(model, path, save_as_external_data=True, location="weights.data")
        return path

    one, other, same = save("one", 1.0), save("other", 2.0), save("same", 1.0)
    assert one.read_bytes() == other.read_bytes()
    assert graph_digest(one) == graph_digest(same) != graph_digest(other)
    (tmp_path / "one" / "weights.data").unlink()
    with pytest.raises(EngineError, match=r"model\.onnx cannot be read as a model: .*weights\.data"):
        graph_digest(one)

"""Which file an engine loads, and the export that happens once."""

import errno
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from pinstripe.cache import cache_directory
from pinstripe.engines import Artefact, LoadRequest, engine, prepare
from pinstripe.engines.exporting.making import export
from pinstripe.engines.exporting.request import ExportRequest
from pinstripe.engines.pytorch.network import load_network
from pinstripe.errors import EngineError, ExecutionError
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import make_batch
from pinstripe.testing.fake_engine import fake_network

_ONNX = engine("onnxruntime")
_OPENVINO = engine("openvino")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a model's directory, with nothing in it yet."""
    path = tmp_path / "model"
    path.mkdir()
    return path


def _write_onnx(path: Path, dtype: str = "float32") -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    weights = onnx.numpy_helper.from_array(np.ones((2, 2), dtype), "w")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [value], [result], [weights])
    path.parent.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph), path)


def _write_ir(path: Path, element_type: str = "f32") -> None:
    path.parent.mkdir(exist_ok=True)
    layer = f'<layer type="Const"><data element_type="{element_type}" shape="2, 2" offset="0" size="16" /></layer>'
    path.write_text(f"<net><layers>{layer}</layers></net>")


def _network(directory: Path) -> Network:
    return fake_network(directory=str(directory), fingerprint="abc")


def _script(path: Path, *lines: str) -> str:
    """Write an executable that stands in for Python."""
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)
    return str(path)


def test_engines_without_graphs(directory: Path) -> None:
    """The fake reads nothing, torch the directory; both refuse a file."""
    network = _network(directory)
    assert prepare(engine("fake"), network) == Artefact(format="none", path="", origin="model")
    assert prepare(engine("torch-eager"), network).path == str(directory)
    for name in ("fake", "torch-eager"):
        with pytest.raises(EngineError, match=f"{name} reads no graph.*a.onnx"):
            prepare(engine(name), network, file="a.onnx")


def test_the_usual_onnx_file_is_preferred(directory: Path) -> None:
    """`onnx/model.onnx` is taken, whatever else is there."""
    for name in ("model.onnx", "model_O1.onnx", "a.onnx"):
        _write_onnx(directory / "onnx" / name)
    found = prepare(_ONNX, _network(directory))
    assert found == Artefact(format="onnx", path=str(directory / "onnx" / "model.onnx"), origin="model")


def test_the_usual_openvino_file_is_preferred(directory: Path) -> None:
    """`openvino/openvino_model.xml` is taken, whatever else is there."""
    for name in ("openvino_model.xml", "a.xml"):
        _write_ir(directory / "openvino" / name)
    assert prepare(_OPENVINO, _network(directory)).path == str(directory / "openvino" / "openvino_model.xml")


def test_other_precisions_are_passed_over(directory: Path) -> None:
    """Quantized and 16-bit files are not taken for float32, even under the usual name."""
    _write_onnx(directory / "onnx" / "model.onnx", "float16")
    _write_onnx(directory / "onnx" / "model_quantized.onnx", "int8")
    _write_onnx(directory / "onnx" / "other.onnx")
    assert prepare(_ONNX, _network(directory)).path == str(directory / "onnx" / "other.onnx")
    _write_ir(directory / "openvino" / "openvino_model.xml", "f16")
    _write_ir(directory / "openvino" / "openvino_model_qint8.xml", "i8")
    _write_ir(directory / "openvino" / "other.xml")
    assert prepare(_OPENVINO, _network(directory)).path == str(directory / "openvino" / "other.xml")


def test_several_files_are_ambiguous(directory: Path) -> None:
    """With several float32 files and none of the usual name, the user chooses."""
    for name in ("a.onnx", "b.onnx"):
        _write_onnx(directory / "onnx" / name)
    with pytest.raises(EngineError, match=r"onnx/a\.onnx, onnx/b\.onnx; choose one with --file"):
        prepare(_ONNX, _network(directory))
    assert prepare(_ONNX, _network(directory), file="onnx/b.onnx").path == str(directory / "onnx" / "b.onnx")


def test_a_chosen_file_must_fit(directory: Path) -> None:
    """An absolute path works; a missing file, another suffix and another precision are refused."""
    _write_onnx(directory / "onnx" / "good.onnx")
    _write_onnx(directory / "onnx" / "model_fp16.onnx", "float16")
    network = _network(directory)
    absolute = str(directory / "onnx" / "good.onnx")
    assert prepare(_ONNX, network, file=absolute).path == absolute
    with pytest.raises(EngineError, match="does not exist"):
        prepare(_ONNX, network, file="onnx/gone.onnx")
    with pytest.raises(EngineError, match=r"openvino reads \.xml files, not onnx/good\.onnx"):
        prepare(_OPENVINO, network, file="onnx/good.onnx")
    with pytest.raises(EngineError, match="float16 weights"):
        prepare(_ONNX, network, file="onnx/model_fp16.onnx")


def test_export_once_and_use_without_torch(tiny: Callable[[str], Network], tmp_path: Path) -> None:
    """An export is made by another Python, says what made it, and is found later where nothing could make it."""
    network = tiny("distilbert-embedding")
    pytest.importorskip("onnxruntime")
    first = prepare(_ONNX, network)
    assert first.origin == "export"
    assert cache_directory() in Path(first.path).parents
    note = msgspec.json.decode(Path(first.path).with_name("export.json").read_bytes())
    assert {"torch", "transformers"} <= set(note["versions"])
    assert note["relative_difference"] <= 1e-3
    assert prepare(_ONNX, network, python=str(tmp_path / "no-python")) == first
    model = _ONNX.load(LoadRequest(network=network, artefact=first, threads=1))
    assert model.forward(make_batch(network, 3, 5)).shape == (2, 5, network.hidden_size)
    with pytest.raises(EngineError, match=r"no-python: there is no such interpreter"):
        prepare(_ONNX, msgspec.structs.replace(network, fingerprint="changed"), python=str(tmp_path / "no-python"))


def test_export_needs_torch(tiny: Callable[[str], Network], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torch one line says what to install, or where to export instead, and nothing is left behind."""
    network = tiny("distilbert-embedding")
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "without"))
    with pytest.raises(EngineError, match=r"torch is not installed; run .*pinstripe\[export\].*PINSTRIPE_CACHE="):
        prepare(_OPENVINO, network)
    assert [path.name for path in (cache_directory() / "exports").iterdir() if path.is_dir()] == []


@pytest.mark.filterwarnings("ignore")  # of the exporter, as in the process that exports
def test_a_graph_that_cannot_be_written(tiny: Callable[[str], Network], tmp_path: Path) -> None:
    """OpenVINO's error, which does not tell why, becomes one of the system that names the file."""
    pytest.importorskip("openvino")
    (tmp_path / "model.xml").mkdir()
    with pytest.raises(OSError, match=r"openvino cannot write model\.xml \(") as caught:
        export(ExportRequest(network=tiny("distilbert-embedding"), format="openvino"), tmp_path)
    assert caught.value.errno == errno.EIO


def test_what_the_system_says_is_one_line(tmp_path: Path) -> None:
    """The exporting process hands on an error of the system, such as of a full disk, without a traceback."""
    # Standard input stays open meanwhile: its end would stop the process.
    command = [sys.executable, "-m", "pinstripe.engines.exporting", "0", str(tmp_path / "gone")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        errors = process.stderr.read()
    assert process.returncode == 1
    assert errors.strip() == f"pinstripe: [Errno 2] No such file or directory: '{tmp_path}/gone/request.json'"


@pytest.mark.parametrize("format_name", ["onnx", "openvino"])
def test_a_full_disk_is_said_in_one_line(
    format_name: str, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever libraries wrote before and after, the message is what happened, where, and what to do."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "sitecustomize.py").write_text(
        "import os, sys, pinstripe.engines.exporting.making as making\n"
        "def export(request, directory):\n"
        "    sys.stderr.write('W1130 12:52:50.424000 20222 torch/utils/_pytree.py:630] deprecated\\nFailed to load')\n"
        "    os.write(os.open('/dev/full', os.O_WRONLY), b'graph')\n"
        "making.export = export\n"
        "import atexit; atexit.register(lambda: sys.stderr.write('goodbye of a library\\n'))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "full"))
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ExecutionError) as caught:
        prepare(_ONNX if format_name == "onnx" else _OPENVINO, _network(directory))
    assert str(caught.value) == (
        f"cannot write the cache {tmp_path}/cache/exports: No space left on device; "
        "free space there or set PINSTRIPE_CACHE"
    )


@pytest.mark.parametrize("lines", [("exit 0",), ("echo garbage", "echo more >&2", "exit 0"), ("exit 1",)])
def test_what_is_no_python_exports_nothing(lines: tuple[str, ...], directory: Path, tmp_path: Path) -> None:
    """A program that is no Python is told as that, and nothing of it is taken for an export."""
    python = _script(tmp_path / "program", *lines)
    with pytest.raises(EngineError, match=f"{python} did not behave as a Python interpreter; name one with --python"):
        prepare(_ONNX, _network(directory), python=python)
    assert not list((cache_directory() / "exports").glob("abc-*/"))


def test_a_crash_is_told_by_its_last_lines(directory: Path, tmp_path: Path) -> None:
    """An export that fails in an unforeseen way shows the end of what it wrote, on one line."""
    python = _script(tmp_path / "python", "echo first >&2", "echo Segmentation fault >&2", "exit 139")
    with pytest.raises(ExecutionError, match=r"cannot export fake to onnx with .*python: first \| Segmentation fault$"):
        prepare(_ONNX, _network(directory), python=python)


def test_export_is_bounded(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export that does not end is stopped, and its process is gone."""
    monkeypatch.setattr(importlib.import_module("pinstripe.engines.prepare"), "_LIMIT_S", 0.5)
    python = _script(tmp_path / "python", f"echo $$ > {tmp_path}/pid", "exec sleep 60")
    with pytest.raises(ExecutionError, match=r"not done after .*; use engine torch-eager"):
        prepare(_ONNX, _network(directory), python=python)
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_an_export_can_be_stopped(directory: Path, tmp_path: Path) -> None:
    """Another thread's word ends it at once, with what it has started, and nothing is kept."""
    note = (f"echo $$ $! > {tmp_path}/new", f"mv {tmp_path}/new {tmp_path}/pids")
    python = _script(tmp_path / "python", "sleep 60 &", *note, "wait")
    stop, raised = threading.Event(), []

    def run() -> None:
        with pytest.raises(ExecutionError) as caught:
            prepare(_ONNX, _network(directory), python=python, stop=stop)
        raised.append(str(caught.value))

    thread = threading.Thread(target=run)
    thread.start()
    _wait_for((tmp_path / "pids").exists, 30)
    stop.set()
    thread.join(2)
    assert not thread.is_alive()
    assert "it was stopped" in raised[0]
    pids = (tmp_path / "pids").read_text().split()
    _wait_for(lambda: not any(_runs(int(pid)) for pid in pids), 5)
    assert not list((cache_directory() / "exports").glob(".abc-*.unfinished-*"))


def _runs(pid: int) -> bool:
    """Return whether a process is there, and no zombie that waits for its new parent."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_concurrent_starts_export_once(tiny: Callable[[str], Network], tmp_path: Path) -> None:
    """Three processes that need the same export at once get the same file, made once."""
    pytest.importorskip("onnxruntime")
    (tmp_path / "network.json").write_bytes(msgspec.json.encode(tiny("distilbert-embedding")))
    python = _script(tmp_path / "python", f"echo started >> {tmp_path}/log", f'exec {sys.executable} "$@"')
    code = (
        "import msgspec, pathlib, sys\n"
        "from pinstripe.engines import engine, prepare\n"
        "from pinstripe.models import Network\n"
        "network = msgspec.json.decode(pathlib.Path(sys.argv[1]).read_bytes(), type=Network)\n"
        "print(prepare(engine('onnxruntime'), network, python=sys.argv[2]).path)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "network.json"), str(python)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = {process.communicate(timeout=100)[0].strip() for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(paths) == 1
    assert Path(paths.pop()).is_file()
    assert (tmp_path / "log").read_text() == "started\n"


def test_export_ends_with_its_parent(tiny: Callable[[str], Network], tmp_path: Path) -> None:
    """When the process that asked is killed, the export is not left running."""
    network = tiny("distilbert-embedding")
    (tmp_path / "network.json").write_bytes(msgspec.json.encode(network))
    python = _script(tmp_path / "python", f"echo $$ > {tmp_path}/pid.new", f"mv {tmp_path}/pid.new {tmp_path}/pid",
                     f'exec {sys.executable} "$@"')  # fmt: skip
    code = (
        "import msgspec, pathlib\n"
        "from pinstripe.engines import engine, prepare\n"
        "from pinstripe.models import Network\n"
        f"network = msgspec.json.decode(pathlib.Path({str(tmp_path / 'network.json')!r}).read_bytes(), type=Network)\n"
        f"prepare(engine('onnxruntime'), network, python={python!r})\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    _wait_for((tmp_path / "pid").exists, 60)
    child = Path("/proc", (tmp_path / "pid").read_text().strip())
    assert child.exists()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    _wait_for(lambda: not child.exists() or "\nState:\tZ" in (child / "status").read_text(), 30)
    assert not list((cache_directory() / "exports").glob("*/model.onnx"))


def _wait_for(condition: Callable[[], bool], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.filterwarnings("ignore")  # of the exporter, as in the process that exports
def test_a_wrong_export_is_not_accepted(
    tiny: Callable[[str], Network], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph of other weights than the model's is refused, with the difference."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    network = tiny("roberta-embedding")
    model = load_network(network)
    with torch.no_grad():
        model.encoder.layer[0].output.dense.weight *= 1.1
    monkeypatch.setattr("pinstripe.engines.exporting.traceable.load_network", lambda _: model)
    with pytest.raises(EngineError, match=r"differs from torch by \d.*more than 0\.001"):
        export(ExportRequest(network=network, format="onnx"), tmp_path)


@pytest.mark.parametrize("damage", ["cut", "absent", "no description"])
def test_a_damaged_export_is_said_and_can_be_replaced(damage: str, tiny: Callable[[str], Network]) -> None:
    """A cached file that lost a part is not loaded; the message names the directory whose removal mends it."""
    pytest.importorskip("onnxruntime")
    graph = Path(prepare(_ONNX, tiny("distilbert-embedding")).path)
    original = graph.read_bytes()
    description = graph.with_name("export.json").read_bytes()
    match damage:
        case "cut":
            graph.write_bytes(original[:-1])
        case "absent":
            graph.unlink()
        case _:
            graph.with_name("export.json").unlink()
    try:
        with pytest.raises(ExecutionError, match=f"{graph.parent} is damaged .*delete that directory"):
            prepare(_ONNX, tiny("distilbert-embedding"))
    finally:
        graph.write_bytes(original)
        graph.with_name("export.json").write_bytes(description)
    assert prepare(_ONNX, tiny("distilbert-embedding")).path == str(graph)

"""What is particular to OpenVINO."""

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
from pinstripe.engines.precision import has_bfloat16
from pinstripe.errors import EngineError
from pinstripe.machine import read_isa
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import make_batch
from pinstripe.testing.fake_engine import fake_network

pytest.importorskip("openvino")

_RUN = """
import os, sys, msgspec
from pinstripe.engines import LoadRequest, engine
from pinstripe.errors import EngineError
from pinstripe.testing.engine_conformance import make_batch
if "ONE_CPU" in os.environ:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
request = msgspec.json.decode(os.environ["REQUEST"], type=LoadRequest)
try:
    model = engine("openvino").load(request)
except EngineError as error:
    sys.exit(str(error))
model.forward(make_batch(request.network, 5))
print(model.report().threads, sys.modules["openvino_telemetry"])
"""


_SIGNAL_AFTER_MODELS = """
import gc, os, signal, msgspec
from pinstripe.engines import LoadRequest, engine
request = msgspec.json.decode(os.environ["REQUEST"], type=LoadRequest)
models = [engine("openvino").load(request) for _ in range(2)]
while models:
    del models[0]
    gc.collect()
signal.signal(signal.SIGTERM, lambda *_: print("handled"))
os.kill(os.getpid(), signal.SIGTERM)
"""


def _run(request: LoadRequest, code: str = _RUN, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | environment | {"REQUEST": msgspec.json.encode(request).decode()}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=variables)


@pytest.fixture
def request_of_tiny(tiny: Callable[[str], Network], artefact: Callable[[str, Network], Artefact]) -> LoadRequest:
    """Return a request for a tiny model and one thread."""
    network = tiny("distilbert-embedding")
    return LoadRequest(network=network, artefact=artefact("openvino", network), threads=1)


def test_no_telemetry(request_of_tiny: LoadRequest, tmp_path: Path) -> None:
    """In a fresh home, nothing is written there: OpenVINO's telemetry would leave its client id in `~/intel`."""
    result = _run(request_of_tiny, HOME=str(tmp_path))
    assert result.stdout == "1 None\n", result.stderr
    assert not (tmp_path / "intel").exists()


def test_fewer_cpus_than_threads(request_of_tiny: LoadRequest) -> None:
    """OpenVINO silently takes the CPUs there are; here that is an error that says so."""
    result = _run(msgspec.structs.replace(request_of_tiny, threads=2), ONE_CPU="1")
    assert result.returncode == 1
    assert "openvino computes with 1 threads instead of 2" in result.stderr


def test_signals_are_handled_when_models_have_gone(request_of_tiny: LoadRequest) -> None:
    """In the order they came: OpenVINO would leave the process without a stack for signals, on CPUs with AMX."""
    result = _run(request_of_tiny, _SIGNAL_AFTER_MODELS)
    assert (result.returncode, result.stdout) == (0, "handled\n"), result.stderr


def test_float32_on_every_cpu(request_of_tiny: LoadRequest) -> None:
    """The precision is read back, also on CPUs where OpenVINO's default is bfloat16; nothing is pinned or quantized."""
    report = engine("openvino").load(request_of_tiny).report()
    assert report.precision == "float32"
    assert report.settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == "0"
    assert report.settings["ENABLE_CPU_PINNING"] == "False"
    assert report.settings["NUM_STREAMS"] == "1"


def _load(request: LoadRequest, **changes: Any) -> LoadedModel:
    return engine("openvino").load(msgspec.structs.replace(request, **changes))


def test_bfloat16_is_multiplied(request_of_tiny: LoadRequest) -> None:
    """Asked for bfloat16, every product is one, and results are near to float32's and not the same."""
    if not has_bfloat16(read_isa()):
        pytest.skip("this CPU has no bfloat16")
    batch = make_batch(request_of_tiny.network, 9, 31)
    exact, rounded = _load(request_of_tiny), _load(request_of_tiny, precision="bfloat16")
    # Two layers of six matrices.
    assert exact.report().settings["products"] == "12 in float32"
    assert rounded.report().settings["products"] == "12 in bfloat16"
    assert rounded.report().precision == "bfloat16"
    difference = np.abs(rounded.forward(batch) - exact.forward(batch))[batch.attention_mask() == 1]
    assert 0 < difference.max() < 0.2


@pytest.mark.parametrize("family", ["mpnet", "deberta-v3"])
def test_buckets_of_distances(family: str, tiny: Callable[[str], Network], artefact: Callable[..., Artefact]) -> None:
    """Distances fall into torch's buckets up to the longest text, in bfloat16 too, where a logarithm would be rounded.

    One wrong bucket moved results of these models by 0.06 and more, most of MPNet's by 0.2.
    """
    network = tiny(f"{family}-embedding")
    safetensors = Artefact(format="safetensors", path=network.directory, origin="model")
    expected = engine("torch-eager").load(LoadRequest(network=network, artefact=safetensors, threads=1))
    request = LoadRequest(network=network, artefact=artefact("openvino", network), threads=1)
    batch = make_batch(network, network.positions)
    np.testing.assert_allclose(_load(request).forward(batch), expected.forward(batch), rtol=0, atol=1e-4)
    if not has_bfloat16(read_isa()):
        pytest.skip("this CPU has no bfloat16")
    rounded = _load(request, precision="bfloat16").forward(batch)
    np.testing.assert_allclose(rounded, expected.forward(batch), rtol=0, atol=0.06)


def test_groups_that_do_not_fit(
    request_of_tiny: LoadRequest, artefact: Callable[..., Artefact], tiny: Callable[[str], Network]
) -> None:
    """OpenVINO silently multiplies in float32 where activations (32 here) hold no group: that is refused."""
    request = msgspec.structs.replace(
        request_of_tiny, artefact=artefact("openvino", tiny("distilbert-embedding"), "int8"), precision="int8"
    )
    fits = _load(request)
    assert fits.report().precision == "int8"
    assert fits.report().settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == "32"
    assert fits.report().settings["INFERENCE_PRECISION_HINT"].endswith("float32'>")
    with pytest.raises(EngineError, match=r"is not computed in int8 here: .*12 in float32"):
        _load(request, options={"group_size": 128})


def test_groups_are_for_dynamic_int8(request_of_tiny: LoadRequest) -> None:
    """A group size that would have no effect is refused."""
    with pytest.raises(EngineError, match="group_size=64 is for dynamic int8 alone"):
        _load(request_of_tiny, options={"group_size": 64})


def test_compiled_once(request_of_tiny: LoadRequest) -> None:
    """The compiled graph is kept, and what is loaded from it gives the very same numbers."""
    batch = make_batch(request_of_tiny.network, 9, 31)
    first = _load(request_of_tiny)
    kept = {path: path.stat().st_mtime_ns for path in (cache_directory() / "compiled").glob("*/*")}
    second = _load(request_of_tiny)
    assert kept == {path: path.stat().st_mtime_ns for path in (cache_directory() / "compiled").glob("*/*")}
    assert [path.suffix for path in kept] == [".blob"]
    assert second.report().settings["LOADED_FROM_CACHE"] == "True"
    np.testing.assert_array_equal(second.forward(batch), first.forward(batch))


def test_weights_rounded_to_16_bits_are_reported(request_of_tiny: LoadRequest, tmp_path: Path) -> None:
    """A file compressed to 16 bits computes in float32, and its report tells of the rounding."""
    openvino = pytest.importorskip("openvino")
    model = openvino.Core().read_model(request_of_tiny.artefact.path)
    openvino.save_model(model, tmp_path / "model.xml", compress_to_fp16=True)
    artefact = Artefact(format="openvino", path=str(tmp_path / "model.xml"), origin="model")
    rounded = engine("openvino").load(msgspec.structs.replace(request_of_tiny, artefact=artefact))
    exact = engine("openvino").load(request_of_tiny)
    assert "float16" in rounded.report().settings["weights"]
    assert exact.report().settings["weights"] == "float32"
    assert rounded.report().precision == "float32"
    batch = make_batch(request_of_tiny.network, 7)
    difference = np.abs(rounded.forward(batch) - exact.forward(batch)).max()
    assert 0 < difference < 0.05


@pytest.mark.parametrize("content", ["", "<net></net>", "no xml"])
def test_damaged_files_are_refused(content: str, tmp_path: Path) -> None:
    """A file that is no model gives one line with its name."""
    path = tmp_path / "model.xml"
    path.write_text(content)
    artefact = Artefact(format="openvino", path=str(path), origin="model")
    with pytest.raises(EngineError, match=r"openvino cannot load .*model\.xml") as caught:
        engine("openvino").load(LoadRequest(network=fake_network(), artefact=artefact))
    assert "\n" not in str(caught.value)

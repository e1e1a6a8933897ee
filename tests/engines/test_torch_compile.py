"""What is particular to the compiler."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from pinstripe.engines import Artefact, LoadRequest, Precision, engine
from pinstripe.engines.pytorch.compiling import CompiledModel, load_compiled
from pinstripe.errors import EngineError, ExecutionError
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import make_batch

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

_ENGINE = "torch-compile"
_COMPILER = "torch._inductor.aoti_compile_and_package"


def _request(network: Network, precision: Precision = "float32", threads: int = 1) -> LoadRequest:
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    return LoadRequest(network=network, artefact=artefact, threads=threads, precision=precision)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect a name for each run of the compiler."""
    runs: list[str] = []
    compiler: Any = torch._inductor.aoti_compile_and_package

    def counted(exported: Any, **options: Any) -> Any:
        runs.append(options["package_path"])
        return compiler(exported, **options)

    monkeypatch.setattr(_COMPILER, counted)
    return runs


def test_a_limit_of_instructions_has_a_library_of_its_own(
    tiny: Callable[[str], Network], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compiled for AVX-512 is not loaded where AVX2 was asked for, nor the other way round."""
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path))
    directories: list[Path] = []
    monkeypatch.setattr(
        "pinstripe.engines.pytorch.compiling.load_once_built", lambda directory, *_: directories.append(directory)
    )
    request = _request(tiny("bert-embedding"))
    for limits in ({}, {"ATEN_CPU_CAPABILITY": "avx2"}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}):
        for name in ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"):
            monkeypatch.delenv(name, raising=False)
        for name, value in limits.items():
            monkeypatch.setenv(name, value)
        load_compiled(torch, request)
    assert len(set(directories)) == 3


@pytest.mark.slow
@pytest.mark.timeout(900)  # compilers share the CPUs with other tests
def test_one_compilation_serves_everything(
    tiny: Callable[[str], Network], tmp_path: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All shapes, numbers of threads and later loads share one compilation, and give transformers' results."""
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path))
    network = tiny("bert-embedding")
    original = transformers.AutoModel.from_pretrained(network.directory).eval()
    for threads in (1, 2):
        model = engine(_ENGINE).load(_request(network, threads=threads))
        assert model.report().threads == threads
        for lengths in [(1,), (1, 1), (7,), (48,), (9, 4), (48, 3, 1), (5,) * 8, (2,), (2, 1)]:
            batch = make_batch(network, *lengths)
            ids, mask = torch.tensor(batch.ids.tolist()), torch.tensor(batch.attention_mask().tolist())
            with torch.no_grad():
                expected = original(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()
            real = batch.attention_mask().astype(bool)
            np.testing.assert_allclose(model.forward(batch)[real], expected[real], rtol=0, atol=1e-5)
    assert len(compilations) == 1
    # Neither the archive nor inductor's intermediate files stay, nor is there a copy elsewhere.
    (directory,) = (path for path in (tmp_path / "torch-compile").iterdir() if path.is_dir())
    assert [path.name for path in directory.iterdir()] == ["model"]


@pytest.mark.slow
@pytest.mark.timeout(900)  # compilers share the CPUs with other tests
def test_loading_needs_no_compiler(tiny: Callable[[str], Network], shared_cache: Path) -> None:
    """What is in the cache runs where there is no compiler; what is not is refused."""
    network = tiny("bert-embedding")
    code = f"""
import sys
from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.errors import EngineError
from pinstripe.models import resolve
from pinstripe.testing.engine_conformance import make_batch
network = resolve({network.directory!r})
artefact = Artefact(format="safetensors", path=network.directory, origin="model")
model = engine("torch-compile").load(LoadRequest(network=network, artefact=artefact, threads=1))
print(model.forward(make_batch(network, 5)).shape)
"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PINSTRIPE_CACHE", str(shared_cache))
        load_compiled(torch, _request(network))
    environment = {"PATH": "/nowhere", "HOME": os.environ.get("HOME", "/"), "PINSTRIPE_CACHE": str(shared_cache)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "(1, 5, 32)\n"


@pytest.mark.slow
@pytest.mark.timeout(900)  # compilers share the CPUs with other tests
def test_int8_and_precisions_do_not_mix(
    tiny: Callable[[str], Network], shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Int8 is another library than float32, near it but not equal."""
    pytest.importorskip("torchao")
    monkeypatch.setenv("PINSTRIPE_CACHE", str(shared_cache))
    network = tiny("bert-embedding")
    models = [engine(_ENGINE).load(_request(network, precision)) for precision in ("float32", "int8")]
    assert [model.report().precision for model in models] == ["float32", "int8"]
    batch = make_batch(network, 20)
    full, reduced = (model.forward(batch) for model in models)
    assert 1e-3 < np.abs(full - reduced).max() < 0.3


def test_no_compiler(tiny: Callable[[str], Network]) -> None:
    """Without a C++ compiler the error says so, and what to do."""
    from torch._inductor import config  # noqa: PLC0415 - torch may be missing

    message = r"needs a C\+\+ compiler and finds none; install g\+\+, or name one in CXX"
    with config.patch({"cpp.cxx": ("no-such-compiler",)}), pytest.raises(EngineError, match=message):
        engine(_ENGINE).load(_request(tiny("bert-embedding")))


@pytest.mark.parametrize("where", ["torch.export.export", _COMPILER])
def test_what_cannot_be_compiled(
    where: str, tiny: Callable[[str], Network], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of the exporter or the compiler is one line with the family, and leaves nothing in the cache."""

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path))
    monkeypatch.setattr(where, fail)
    wrong = r"torch-compile cannot compile .* \(bert\): first line second line; use engine torch-eager"
    with pytest.raises(EngineError, match=wrong):
        engine(_ENGINE).load(_request(tiny("bert-embedding")))
    assert [path.name for path in (tmp_path / "torch-compile").iterdir() if path.is_dir()] == []


def test_a_damaged_library(tmp_path: Path) -> None:
    """A library that cannot be loaded is named, with how to have another."""
    with pytest.raises(ExecutionError, match=f"torch cannot load {tmp_path}.*delete that directory"):
        CompiledModel(torch, tmp_path)


def test_what_the_library_depends_on(
    tiny: Callable[[str], Network], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another CPU, precision, task or network has a library of its own; another number of threads has not."""
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path))
    monkeypatch.setattr("pinstripe.engines.pytorch.compiling.load_once_built", lambda directory, *_: directory)
    request = _request(tiny("bert-embedding"))

    def place(**changes: Any) -> Any:
        return load_compiled(torch, msgspec.structs.replace(request, **changes))

    first = place()
    assert first == place(threads=7)
    others = {place(precision="int8"), place(precision="bfloat16")}
    others |= {place(network=msgspec.structs.replace(request.network, task="fill-mask"))}
    others |= {place(network=msgspec.structs.replace(request.network, fingerprint="other"))}
    monkeypatch.setattr("pinstripe.engines.pytorch.compiling.read_isa", lambda: ("avx2",))
    others |= {place()}
    assert len(others | {first}) == 6

"""What is particular to PyTorch, operator by operator."""

import gc
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe.engines import Artefact, LoadedModel, LoadRequest, Precision, engine
from pinstripe.engines.precision import has_bfloat16
from pinstripe.engines.pytorch.linear import pack_linears
from pinstripe.errors import EngineError
from pinstripe.machine import read_isa
from pinstripe.models import Network, TokenBatch
from pinstripe.testing.engine_conformance import make_batch

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

needs_bfloat16 = pytest.mark.skipif(not has_bfloat16(read_isa()), reason="this CPU does not multiply bfloat16")
needs_amx = pytest.mark.skipif("amx_bf16" not in read_isa(), reason="this CPU has no AMX")


@pytest.fixture(autouse=True)
def _float32_as_it_was() -> Iterator[None]:
    """Undo what a test says of the precision of float32 in this process."""
    yield
    torch.set_float32_matmul_precision("highest")


def _load(network: Network, threads: int | None = 1, precision: Precision = "float32", **options: Any) -> LoadedModel:
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    return engine("torch-eager").load(
        LoadRequest(network=network, artefact=artefact, threads=threads, precision=precision, options=options)
    )


def _reference(network: Network, batch: TokenBatch, dtype: Any = None) -> NDArray[np.float32]:
    """Return what transformers gives by itself."""
    original = transformers.AutoModel.from_pretrained(network.directory, dtype=dtype or torch.float32).eval()
    ids, mask = torch.tensor(batch.ids.tolist()), torch.tensor(batch.attention_mask().tolist())
    with torch.no_grad():
        output = original(input_ids=ids, attention_mask=mask).last_hidden_state.float()
    return np.asarray(output.numpy(), np.float32)


def _real(batch: TokenBatch) -> NDArray[np.bool_]:
    return batch.attention_mask().astype(bool)


def test_half_precision_checkpoints_compute_in_float32(tiny: Callable[[str], Network], tmp_path: Path) -> None:
    """Weights stored in 16 bits are widened, and give what transformers gives after `.float()`."""
    network = tiny("roberta-embedding")
    transformers.RobertaModel.from_pretrained(network.directory).half().save_pretrained(tmp_path / "half")
    model = _load(msgspec.structs.replace(network, directory=str(tmp_path / "half")))
    assert model.report().precision == "float32"
    batch = make_batch(network, 9)
    original = transformers.RobertaModel.from_pretrained(tmp_path / "half").float().eval()
    with torch.no_grad():
        expected = original(torch.tensor(batch.ids.tolist())).last_hidden_state.numpy()
    np.testing.assert_allclose(model.forward(batch), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("gemm", ["auto", "mkl", "onednn"])
def test_what_multiplies_does_not_change_the_result(gemm: str, tiny: Callable[[str], Network]) -> None:
    """MKL and oneDNN give what transformers gives, and the report says which of them it is, and why."""
    if gemm == "mkl" and not torch.backends.mkl.is_available():
        pytest.skip("this torch has no MKL")
    network = tiny("bert-embedding")
    batch = make_batch(network, 9, 4)
    model = _load(network, gemm=gemm)
    np.testing.assert_allclose(
        model.forward(batch)[_real(batch)], _reference(network, batch)[_real(batch)], rtol=0, atol=1e-5
    )
    settings = model.report().settings
    if gemm == "auto":
        assert settings["gemm_why"].startswith("auto: ")
    else:
        assert (settings["gemm"], settings["gemm_why"]) == (gemm, "asked for")
    assert settings["multiplied_by"] == settings["gemm"]  # as is heard from the library
    # Of each of the 2 layers: query, key, value, output, 2 of the feed-forward part; and the pooler.
    assert settings["packed_linears"] == ("13" if settings["gemm"] == "onednn" else "0")


def test_packed_weights_are_the_only_ones() -> None:
    """Weights in their first form are not kept beside the packed ones."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False)))
    weights = [weakref.ref(weight) for weight in module.parameters() if weight.ndim == 2]
    assert pack_linears(torch, module) == 2
    gc.collect()
    assert [weight() for weight in weights] == [None, None]


@needs_bfloat16
@pytest.mark.parametrize("gemm", ["auto", "onednn"])
def test_bfloat16(gemm: str, tiny: Callable[[str], Network]) -> None:
    """Results are those of transformers in bfloat16: as far from float32 as its 8 bits make them, and no further."""
    network = tiny("bert-embedding")
    batch = make_batch(network, 9, 4)
    model = _load(network, precision="bfloat16", gemm=gemm)
    assert model.report().precision == "bfloat16"
    output = model.forward(batch)[_real(batch)]
    np.testing.assert_allclose(output, _reference(network, batch, torch.bfloat16)[_real(batch)], rtol=0, atol=0.06)
    assert np.abs(output - _reference(network, batch)[_real(batch)]).max() > 1e-3


@needs_bfloat16
def test_computed_tables_stay_float32(tiny: Callable[[str], Network]) -> None:
    """ModernBERT's rotary frequencies are not rounded to bfloat16, which would move far positions."""
    network = tiny("modernbert-embedding")
    batch = make_batch(network, 48)
    output = _load(network, precision="bfloat16").forward(batch)
    np.testing.assert_allclose(output, _reference(network, batch, torch.bfloat16), rtol=0, atol=0.06)


def test_int8_rounds_by_channel_and_by_token(tiny: Callable[[str], Network]) -> None:
    """A linear layer computes what int8 by output channel and by token gives by hand."""
    pytest.importorskip("torchao")
    network = tiny("bert-embedding")
    model: Any = _load(network, precision="int8")
    assert model.report().precision == "int8"
    original = transformers.AutoModel.from_pretrained(network.directory).encoder.layer[0].intermediate.dense
    quantized = model._run.network.encoder.layer[0].intermediate.dense
    weights, bias = original.weight.detach().numpy(), original.bias.detach().numpy()
    tokens = np.random.default_rng(0).standard_normal((5, 32), np.float32) * np.array([[1, 10, 0.1, 1, 1]], "f4").T
    # 255 steps from the lowest to the highest of int8, symmetric about 0.
    step_w, step_x = (2 * np.abs(array).max(axis=1, keepdims=True) / 255 for array in (weights, tokens))
    whole_w, whole_x = np.clip(np.rint(weights / step_w), -128, 127), np.clip(np.rint(tokens / step_x), -128, 127)
    expected = (whole_x @ whole_w.T) * step_x * step_w.T + bias
    with torch.no_grad():
        result = quantized(torch.tensor(tokens)).numpy()
    # Where a value lies between two steps, either is right; each token and each channel has steps of its own.
    one_step = step_x * np.abs(weights).max(axis=1) + np.abs(tokens).max(axis=1, keepdims=True) * step_w.T
    assert (np.abs(result - expected) <= 1.01 * one_step).all()
    assert np.median(np.abs(result - expected) / one_step) < 1e-3
    assert np.abs(result - (tokens @ weights.T + bias)).max() > 1e-3


def test_int8_without_torchao(tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torchao is missing, the message says how to install it."""
    monkeypatch.setitem(sys.modules, "torchao", None)
    with pytest.raises(EngineError, match=r"torchao is not installed; run .*'pinstripe\[torchao\]'"):
        _load(tiny("bert-embedding"), precision="int8")


@pytest.mark.parametrize(
    ("precision", "options", "message"),
    [
        ("int8", {"gemm": "onednn"}, "gemm=onednn is not for int8"),
        ("int8", {"fpmath": "bf16"}, "fpmath=bf16 is for float32, not int8"),
        ("float32", {"gemm": "mkl", "fpmath": "bf16"}, "gemm=mkl computes in float32 only"),
        ("float32", {"gemm": "blis"}, "does not take gemm=blis; use auto, mkl or onednn"),
        pytest.param("bfloat16", {"gemm": "mkl"}, "gemm=mkl is for float32", marks=needs_bfloat16),
    ],
)
def test_options_that_do_not_go_together(
    precision: Precision, options: dict[str, Any], message: str, tiny: Callable[[str], Network]
) -> None:
    """What would have no effect is refused, and not passed over."""
    with pytest.raises(EngineError, match=message):
        _load(tiny("bert-embedding"), precision=precision, **options)


@pytest.mark.parametrize(
    ("gemm", "library", "message"),
    [("mkl", "mkl", "this torch is built without MKL"), ("onednn", "mkldnn", "this torch is built without oneDNN")],
)
def test_a_library_that_torch_lacks(
    gemm: str, library: str, message: str, tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that torch is built without cannot be asked for."""
    monkeypatch.setattr(f"torch.backends.{library}.is_available", lambda: False)
    with pytest.raises(EngineError, match=f"{message}; use gemm=auto"):
        _load(tiny("bert-embedding"), gemm=gemm)


def test_auto_leaves_other_architectures_alone(tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where packed weights were never measured, torch keeps its own way."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    settings = _load(tiny("bert-embedding")).report().settings
    assert (settings["gemm"], settings["packed_linears"]) == ("torch", "0")


@needs_amx
def test_fpmath(tiny: Callable[[str], Network]) -> None:
    """Float32 rounded to bfloat16 by oneDNN differs from float32 as bfloat16 does; the next load is strict again."""
    network = tiny("bert-embedding")
    batch = make_batch(network, *[48] * 4)
    strict = _load(network).forward(batch)
    model = _load(network, fpmath="bf16")
    report = model.report()
    assert (report.precision, report.settings["fpmath"]) == ("float32", "bf16")
    assert report.settings["float32_matmul_precision"] == "medium"
    assert 1e-4 < np.abs(model.forward(batch) - strict).max() < 0.2


def test_fpmath_without_effect() -> None:
    """On a CPU whose oneDNN keeps to float32, fpmath=bf16 is refused."""
    code = """
import torch
from pinstripe.engines.pytorch.float32 import set_fpmath
from pinstripe.errors import EngineError
try:
    set_fpmath(torch, "bf16")
except EngineError as error:
    print(error, torch.get_float32_matmul_precision())
"""
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fpmath=bf16 has no effect")
    assert done.stdout.endswith("use fpmath=strict highest\n")


def test_a_head_without_weights_is_refused(tiny: Callable[[str], Network]) -> None:
    """A task that the checkpoint has no head for is refused, where transformers would make up random weights."""
    network = msgspec.structs.replace(tiny("distilbert-embedding"), task="fill-mask")
    with pytest.raises(EngineError, match=r"no weights for vocab_.*is fill-mask the right task"):
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


@pytest.mark.parametrize("name", ["torch-eager", "torchscript", "torch-compile"])
@pytest.mark.parametrize("variable", ["ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"])
def test_a_lower_math_mode_is_refused(
    name: str, variable: str, tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment that makes oneDNN compute float32 in bfloat16 is not called float32."""
    network = tiny("distilbert-embedding")
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    monkeypatch.setenv(variable, "BF16")
    with pytest.raises(EngineError, match=f"{variable}=BF16"):
        engine(name).load(LoadRequest(network=network, artefact=artefact))


@pytest.mark.parametrize("options", [{}, {"fpmath": "bf16"}])
def test_a_lower_matmul_precision_is_refused(options: dict[str, Any], tiny: Callable[[str], Network]) -> None:
    """Matrices multiplied in less than float32, as torch can be told, are not called float32."""
    torch.set_float32_matmul_precision("high")
    with pytest.raises(EngineError, match="in high precision; unset TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"):
        _load(tiny("distilbert-embedding"), **options)


def test_threads(tiny: Callable[[str], Network]) -> None:
    """The number asked for is in effect; without one, it is left as it was."""
    network = tiny("distilbert-embedding")
    for threads in (2, 1):
        report = _load(network, threads).report()
        assert (report.threads, report.settings["num_interop_threads"]) == (threads, "1")
    torch.set_num_threads(2)
    assert _load(network, None).report().threads == 2

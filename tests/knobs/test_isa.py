"""Kernels keep to the instructions that were asked for, as the libraries say themselves, or the evidence says so."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from pinstripe.engines import engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, combined_setting, knob
from pinstripe.pool import InstanceEvidence, WorkerSpec
from pinstripe.testing.machines import container_2cpu

Effect = Callable[..., KnobEffect]
Try = Callable[..., InstanceEvidence]
# What the libraries say with each value, on a Sapphire Rapids: oneDNN 3.12 in torch 2.13, MKL 2024.2.
_MKL_512 = "Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512)"
_MKL_VNNI = f"{_MKL_512} with support of Intel(R) Deep Learning Boost (Intel(R) DL Boost)"
_MKL_AMX = (
    f"{_MKL_512} with support for INT8, BF16, FP16 (limited) instructions, and Intel(R) Advanced Matrix Extensions"
)
_SAID = {
    "sse41": ("Intel SSE4.1", "DEFAULT", "Intel(R) Streaming SIMD Extensions 4.2 (Intel(R) SSE4.2)"),
    "avx2": ("Intel AVX2", "AVX2", "Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2)"),
    "avx512": ("Intel AVX-512 with AVX512BW, AVX512VL, and AVX512DQ extensions", "AVX512", _MKL_512),
    "avx512-vnni": ("Intel AVX-512 with Intel DL Boost", "AVX512", _MKL_VNNI),
    "avx512-bf16": (
        "Intel AVX-512 with Intel DL Boost and bfloat16 support",
        "AVX512",
        f"{_MKL_VNNI} and bfloat16",
    ),
    "amx": (
        "Intel AVX10.1 and Intel AMX with bfloat16 and 8-bit integer support",
        "AVX512",
        f"{_MKL_AMX} (Intel(R) AMX) with INT8 and BF16",
    ),
}
_CASCADE_LAKE = ("avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "avx512_vnni", "fma", "sse2", "sse4_1")


def _context(value: str, isa: tuple[str, ...], engine_name: str = "torch-eager", model: str = "Intel") -> Context:
    machine = msgspec.structs.replace(container_2cpu(), isa=isa, model_name=model)
    return Context(host=Host(machine=machine), engine=engine(engine_name), chosen={"isa": value})


@pytest.mark.parametrize("value", _SAID)
def test_what_the_libraries_say_is_understood(reported: Effect, value: str) -> None:
    """Each value is told from all others by the words of oneDNN, torch and MKL."""
    onednn, capability, mkl = _SAID[value]
    effect = reported("isa", value, "torch-eager", onednn_isa=onednn, cpu_capability=capability, mkl_isa=mkl)
    assert (effect.effective, effect.problem) == (value, None)


@pytest.mark.parametrize(
    "words",
    [
        "Intel AVX",
        "Intel AVX2 with Intel DL Boost",
        "Intel AVX 10.1",
        "Intel AVX-512 with float16, Intel DL Boost and bfloat16 support",
        "Intel AVX10.1 and Intel AMX with bfloat16, float16 and 8-bit integer support",
    ],
)
def test_what_lies_between_the_values_is_none_of_them(reported: Effect, words: str) -> None:
    """A client's AVX2 with VNNI is more than avx2, and so on: it keeps its own words."""
    assert reported("isa", "avx2", "tf-graph", onednn_isa=words).problem == f"isa: asked avx2, oneDNN uses {words}"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"mkl_isa": _SAID["avx512"][2]}, "MKL uses Intel(R) Advanced Vector Extensions 512 (Intel(R) AVX-512)"),
        ({"mkl_isa": "Intel(R) Architecture"}, "MKL uses Intel(R) Architecture"),
        ({"cpu_capability": "AVX512"}, "torch uses AVX512"),
        ({"vector_isa": "avx512 avx512_vnni"}, "inductor uses avx512 avx512_vnni"),
    ],
)
def test_a_library_without_the_limit_is_named(reported: Effect, changed: dict[str, str], said: str) -> None:
    """All of them have to keep it; on AMD's processors MKL says nothing that would show it does."""
    kept = {"onednn_isa": "Intel AVX2", "cpu_capability": "AVX2", "mkl_isa": _SAID["avx2"][2], "vector_isa": "avx2"}
    assert reported("isa", "avx2", "torch-compile", **kept).problem is None
    effect = reported("isa", "avx2", "torch-compile", **kept | changed)
    assert effect.effective == "mixed"
    assert effect.problem is not None
    assert said in effect.problem


def test_silence_proves_nothing(reported: Effect) -> None:
    """An engine that does not say which instructions it uses is not taken to keep a limit."""
    problem = reported("isa", "avx2", "tf-graph").problem
    assert problem == "isa: asked avx2, oneDNN does not say which instructions it uses"


def test_a_library_that_was_asked_and_is_silent(reported: Effect) -> None:
    """MKL introduces itself once; had it done so before anybody listened, what it uses would not be known."""
    kept = {"onednn_isa": "Intel AVX2", "cpu_capability": "AVX2"}
    assert reported("isa", "avx2", "torch-eager", **kept).problem is None
    problem = reported("isa", "avx2", "torch-eager", **kept, mkl_isa="").problem
    assert problem == "isa: asked avx2, MKL does not say which instructions it uses"


@pytest.mark.parametrize("name", ["torch-eager", "tf-graph"])
def test_inherited_variables_do_not_count(name: str) -> None:
    """Neither oneDNN's older names nor what has the libraries speak before they are asked reach the worker."""
    environment = combined_setting(_context("avx2", _CASCADE_LAKE, name)).environment
    removed = {variable for variable, value in environment.items() if value is None}
    verbose = {"ONEDNN_VERBOSE"} if name == "torch-eager" else set()
    assert removed == {"DNNL_MAX_CPU_ISA", "DNNL_VERBOSE", "MKL_VERBOSE"} | verbose


@pytest.mark.parametrize("value", ["sse41", "avx2", "avx512", "avx512-vnni", "avx512-bf16", "amx"])
def test_bfloat16_needs_its_instructions(value: str) -> None:
    """A limit that leaves none for the precision is refused, in words of knobs; float32 has no such need."""
    isa = (*_CASCADE_LAKE, "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16")
    context = replace(_context(value, isa), precision="bfloat16")
    why = knob("isa").refusal(value, context)
    assert (why is None) is (value in {"avx512-bf16", "amx"})
    if why is not None:
        assert why == "it leaves no instructions for bfloat16; use avx512-bf16 or amx, or another precision"
    assert knob("isa").refusal(value, replace(context, precision="float32")) is None


@pytest.mark.parametrize(
    ("value", "isa", "said"),
    [
        ("avx512-bf16", _CASCADE_LAKE, "this CPU lacks avx512_bf16; use avx512-vnni"),
        ("amx", ("avx2", "fma", "sse2", "sse4_1"), "this CPU lacks avx512f; use avx2"),
        ("avx2", ("asimd", "bf16", "sve"), "its values are x86's, and this CPU is none; leave it at auto"),
    ],
)
def test_what_the_cpu_lacks_is_refused(value: str, isa: tuple[str, ...], said: str) -> None:
    """The library would ignore it in silence; the refusal says what can be had."""
    with pytest.raises(KnobError, match=f"^isa={value} cannot be had here: {said}$"):
        combined_setting(_context(value, isa))
    if "sse2" in isa:
        assert combined_setting(_context("avx2", isa)).environment["ONEDNN_MAX_CPU_ISA"] == "AVX2"


def test_mkl_on_amd_is_refused() -> None:
    """There MKL takes no limit, and torch multiplies in attention by it; TensorFlow has no MKL."""
    with pytest.raises(KnobError, match="MKL inside torch takes its limit on Intel's processors alone"):
        combined_setting(_context("avx2", _CASCADE_LAKE, model="AMD EPYC 9B14"))
    combined_setting(_context("avx2", _CASCADE_LAKE, "tf-graph", model="AMD EPYC 9B14"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("openvino", r"has kernels \(MLAS\) that take no limit"),
        ("onnxruntime", "MLAS"),
        ("tf-xla", "XLA"),
        ("fake", "computes nothing"),
    ],
)
def test_engines_without_a_limit(name: str, why: str) -> None:
    """Where kernels take what the CPU has, a limit is refused, and not set in vain."""
    with pytest.raises(KnobError, match=f"^isa=avx2 is not for {name}, which .*{why}"):
        combined_setting(_context("avx2", _CASCADE_LAKE, name))


@pytest.mark.parametrize("value", ["AVX2", "avx", "avx10", ""])
def test_unknown_values(value: str) -> None:
    """OneDNN would ignore them in silence."""
    with pytest.raises(KnobError, match="use sse41, avx2, avx512"):
        combined_setting(_context(value, _CASCADE_LAKE))


def test_torch_keeps_the_limit(torch_effect: Effect, host: Host) -> None:
    """Torch, oneDNN and MKL all say that they do; without the variables, the evidence says what they use."""
    context = Context(host=host, engine=engine("torch-eager"), chosen={"isa": "avx2"})
    if (why := knob("isa").refusal("avx2", context)) is not None:
        pytest.skip(why)
    assert torch_effect("isa", "avx2").problem is None
    assert "MKL uses" in torch_effect("isa", "avx2").why
    if "avx512f" in host.machine.isa:
        problem = torch_effect("isa", "avx2", others=True).problem
        assert problem is not None
        assert problem.startswith("isa: asked avx2, oneDNN uses Intel AVX")


def test_torch_without_a_limit_says_what_it_uses(torch_effect: Effect, host: Host) -> None:
    """`auto` asks for nothing; what the CPU has is recorded."""
    effect = torch_effect("isa", "auto", others=True)
    if "amx_bf16" in host.machine.isa and "amx_fp16" not in host.machine.isa:
        assert effect.effective == "amx"
    assert effect.problem is None
    assert "oneDNN uses " in effect.why


def _forgetful(spec: WorkerSpec) -> WorkerSpec:
    load = msgspec.structs.replace(spec.load, options={})
    return msgspec.structs.replace(spec, environment={}, load=load)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        ("torch-eager", {"gemm": "mkl", "primitive_cache": "7", "fpmath": "strict"}),
        ("torchscript", {"primitive_cache": "0", "fpmath": "strict"}),
        ("torch-compile", {"primitive_cache": "1024"}),
    ],
)
def test_workers_with_all_knobs_of_torch(try_knobs: Try, host: Host, name: str, knobs: dict[str, str]) -> None:
    """Of a real worker all is proved; one that started without any of it has a problem for each that is not so."""
    asked = {"isa": "avx2", "flush_denormals": "on", "interop_threads": "2", **knobs}
    if (why := knob("isa").refusal("avx2", Context(host=host, engine=engine(name)))) is not None:
        pytest.skip(why)
    assert try_knobs(name, **asked).problems == ()
    missed = [problem.partition(":")[0] for problem in try_knobs(name, spoil=_forgetful, **asked).problems]
    assert set(missed) == set(asked) - {"fpmath"} - (set() if "avx512f" in host.machine.isa else {"isa"})

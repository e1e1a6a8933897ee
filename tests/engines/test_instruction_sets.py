"""What libraries say of their instructions is heard, and what limits them is known."""

import os

import pytest

from pinstripe.engines import Artefact, LoadRequest, engine
from pinstripe.engines.instruction_sets import HEADER_ONLY, isa_limits, keeps_from_bfloat16, onednn_isa, said_isa
from pinstripe.engines.options import checked_options
from pinstripe.engines.overhearing import overheard
from pinstripe.engines.precision import has_bfloat16
from pinstripe.errors import EngineError
from pinstripe.machine import read_isa
from pinstripe.testing.fake_engine import fake_network

# As torch 2.13 writes them.
_ONEDNN = "onednn_verbose,v1,info,cpu,isa:Intel AVX-512 with Intel DL Boost"
_MKL = (
    "MKL_VERBOSE oneMKL 2024.0 Update 2 Product build 20240605 for Intel(R) 64 architecture Intel(R) Advanced Vector "
    "Extensions 2 (Intel(R) AVX2) enabled processors, Lnx 2.10GHz lp64 gnu_thread"
)


def test_the_words_are_found() -> None:
    """Those after the library's name, without what follows."""
    assert said_isa(["onednn_verbose,v1,info,gpu,runtime:none", _ONEDNN]) == "Intel AVX-512 with Intel DL Boost"
    assert said_isa([_MKL]) == "Intel(R) Advanced Vector Extensions 2 (Intel(R) AVX2)"
    assert said_isa(["MKL_VERBOSE SGEMM(N,N,64,64,64,0x7ffd)"]) == ""


def test_what_is_overheard_goes_no_further(capfd: pytest.CaptureFixture[str]) -> None:
    """Also what is written past Python; and afterwards, output is where it was."""
    assert overheard(lambda: os.write(1, b"one\ntwo\n")) == ["one", "two"]
    with pytest.raises(ZeroDivisionError):
        overheard(lambda: 1 // 0)
    os.write(1, b"three\n")
    assert capfd.readouterr().out == "three\n"


def test_only_the_introduction_is_listened_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants oneDNN's words for themselves gets them."""

    def call() -> None:
        os.write(1, f"{_ONEDNN}\n".encode())

    monkeypatch.setenv("ONEDNN_VERBOSE", HEADER_ONLY)
    assert onednn_isa(call) == {"onednn_isa": "Intel AVX-512 with Intel DL Boost"}
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")
    assert onednn_isa(call) == {}


def test_limits_are_known() -> None:
    """What compilers and kernels read, and nothing else."""
    environment = {"ATEN_CPU_CAPABILITY": "avx2", "HOME": "/root", "ONEDNN_MAX_CPU_ISA": ""}
    assert isa_limits(environment) == {"ATEN_CPU_CAPABILITY": "avx2"}


@pytest.mark.parametrize(
    ("environment", "limit"),
    [
        ({"ONEDNN_MAX_CPU_ISA": "avx2"}, "ONEDNN_MAX_CPU_ISA=avx2"),
        ({"DNNL_MAX_CPU_ISA": "AVX512_CORE_VNNI"}, "DNNL_MAX_CPU_ISA=AVX512_CORE_VNNI"),
        ({"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "DNNL_MAX_CPU_ISA": "AVX2"}, None),
        ({}, None),
    ],
)
def test_limits_without_bfloat16(environment: dict[str, str], limit: str | None) -> None:
    """OneDNN's newer variable goes before its older one."""
    assert keeps_from_bfloat16(environment) == limit


def test_bfloat16_under_a_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """OneDNN would compute it in some other way, many times more slowly."""
    if not has_bfloat16(read_isa()):
        pytest.skip("this CPU has no bfloat16")
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    artefact = Artefact(format="safetensors", path="/m", origin="model")
    request = LoadRequest(network=fake_network(), artefact=artefact, precision="bfloat16")
    torch_eager = engine("torch-eager")
    with pytest.raises(EngineError, match="ONEDNN_MAX_CPU_ISA=AVX2 leaves no instructions for bfloat16"):
        checked_options(torch_eager, request, torch_eager.options_type)

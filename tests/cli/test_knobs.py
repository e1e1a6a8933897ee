"""`pinstripe knobs`, and the options that turn them."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from rich.console import Console
from typer.main import get_command

from pinstripe.bench import read_records
from pinstripe.cli.knob_options import read_knobs
from pinstripe.cli.knobs import print_knobs
from pinstripe.cli.main import app
from pinstripe.engines import Precision
from pinstripe.errors import KnobError
from pinstripe.knobs import Host, knob_names
from pinstripe.machine import read_machine
from pinstripe.runtime import InstalledLibrary
from pinstripe.testing.machines import container_2cpu, uniform

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]

_JEMALLOC = InstalledLibrary(name="jemalloc", path="/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
_HOST = Host(machine=container_2cpu(), libraries=(_JEMALLOC,), huge_pages="madvise", kernel=(6, 1), glibc=(2, 36))


def _float32(*engines: str) -> list[tuple[str, Precision]]:
    return [(engine, "float32") for engine in engines]


def test_every_knob_has_an_option() -> None:
    """`bench` takes each knob by its name."""
    options = {name for one in get_command(app).commands["bench"].params for name in one.opts}  # type: ignore[attr-defined]
    assert {f"--{name.replace('_', '-')}" for name in knob_names()} <= options


def test_json(pinstripe: Run) -> None:
    """Programs get each knob with its values, and why one cannot be had."""
    done = pinstripe("knobs", "--json")
    assert done.returncode == 0
    listed = {one["name"]: one for one in json.loads(done.stdout)}
    assert tuple(listed) == knob_names()
    for one in listed.values():
        assert set(one) == {"name", "summary", "option", "accepts", "default", "engines", "values"}
        assert "fake" not in one["engines"]
        for value in one["values"]:
            assert value["available"] is (value["why_not"] is None)
    assert listed["openmp"]["engines"] == ["torch-compile", "torch-eager", "torchscript"]


def test_knobs_of_an_engine(pinstripe: Run) -> None:
    """With an engine only what concerns it is listed."""
    listed = {one["name"] for one in json.loads(pinstripe("knobs", "--engine", "onnxruntime", "--json").stdout)}
    assert "allocator" in listed
    assert "openmp" not in listed


def test_unknown_engine(pinstripe: Run) -> None:
    """A slip in the engine's name is one line."""
    done = pinstripe("knobs", "--engine", "onxruntime")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean onnxruntime?" in done.stderr


def test_what_is_printed() -> None:
    """A block each: option, what it does, values that are here, how to get the others."""
    knob = {
        "name": "allocator",
        "summary": "what serves memory",
        "option": "--allocator",
        "accepts": "glibc or tcmalloc",
        "default": "auto",
        "engines": ["openvino"],
        "values": [
            {"value": "glibc", "available": True, "why_not": None},
            {"value": "tcmalloc", "available": False, "why_not": "not installed; apt-get install libtcmalloc-minimal4"},
        ],
    }
    file = io.StringIO()
    print_knobs([knob], Console(file=file, width=40, color_system=None))
    assert file.getvalue().splitlines() == [
        "--allocator  what serves memory",
        "  ✓ glibc",
        "  ✗ tcmalloc: not installed; apt-get install libtcmalloc-minimal4",
        "  default auto; for all engines",
    ]


def test_lists_span_a_grid() -> None:
    """Every engine gets each combination of what concerns it; `auto` leaves a knob out."""
    asked = {"allocator": "auto,glibc,jemalloc", "openmp": "gnu", "spin": None}
    assert read_knobs(asked, _float32("torch-eager", "openvino"), _HOST) == {
        ("torch-eager", "float32"): [
            {"openmp": "gnu"},
            {"allocator": "glibc", "openmp": "gnu"},
            {"allocator": "jemalloc", "openmp": "gnu"},
        ],
        ("openvino", "float32"): [{}, {"allocator": "glibc"}, {"allocator": "jemalloc"}],
    }


def test_all_is_what_the_machine_has() -> None:
    """`all` leaves out what is not installed; named twice is once."""
    (chosen,) = read_knobs({"allocator": "all,glibc"}, _float32("fake"), _HOST).values()
    values = [one["allocator"] for one in chosen]
    assert values[0] == "glibc"
    assert "jemalloc" in values
    assert "tcmalloc" not in values
    assert len(set(values)) == len(values)


def test_a_knob_for_none_of_the_engines() -> None:
    """It would change nothing, so that it is an error with each engine's reason."""
    with pytest.raises(KnobError, match=r"^--openmp concerns none of the engines asked for: onnxruntime .*; openvino "):
        read_knobs({"openmp": "gnu"}, _float32("onnxruntime", "openvino"), _HOST)


def test_unknown_value() -> None:
    """A value that is none is refused with those that are."""
    with pytest.raises(KnobError, match=r"^--allocator 'libc' is not known; use glibc.*; or auto, or all$"):
        read_knobs({"allocator": "glibc,libc"}, _float32("fake"), _HOST)


def test_bench_records_what_took_effect(pinstripe: Run, tmp_path: Path) -> None:
    """Requested and effective of each knob are in the record, those that nobody asked for included."""
    records = tmp_path / "records.jsonl"
    limits = ("--min-time", "0.05", "--min-forwards", "1", "--repeats", "1", "--output", str(records), "--json")
    done = pinstripe("bench", "random:minilm-l6", "--engine", "fake", "--allocator", "auto,glibc", *limits)
    assert done.returncode == 0, done.stderr
    first, second = read_records(records)
    assert (first.configuration.knobs, second.configuration.knobs) == ({}, {"allocator": "glibc"})
    for record, requested in ((first, "auto"), (second, "glibc")):
        effects = {one.knob: one for one in record.evidence[0].knobs}
        assert (effects["allocator"].requested, effects["allocator"].effective) == (requested, "glibc")
        assert effects["allocator"].why
    trials = json.loads(done.stdout)["trials"]
    assert [trial["configuration"]["knobs"] for trial in trials] == [{}, {"allocator": "glibc"}]


def test_what_cannot_go_together_is_skipped(pinstripe: Run, tmp_path: Path) -> None:
    """Of a grid, combinations that cannot be had are left out and said; the others run."""
    limits = ("--min-time", "0.05", "--min-forwards", "1", "--repeats", "1", "--output", str(tmp_path / "r"), "--json")
    done = pinstripe("bench", "random:minilm-l6", "--engine", "fake", "--allocator", "glibc,glibc-tuned", *limits)
    assert len(json.loads(done.stdout)["trials"]) == 2
    refused = pinstripe("bench", "random:minilm-l6", "--engine", "fake", "--smt", "one,all", *limits)
    if all(len(core.cpus) == 1 for core in read_machine().cores):
        assert "skipped: fake 1x? smt=all: smt=all cannot be had here: no core here" in refused.stderr
    assert refused.returncode == 0
    assert json.loads(refused.stdout)["trials"]


def test_all_of_nothing() -> None:
    """Where a machine has none of a knob's values, `all` says why instead of measuring nothing."""
    host = Host(machine=container_2cpu(), huge_pages=None, kernel=(6, 1), glibc=(2, 36))
    with pytest.raises(KnobError, match=r"^--hugepages all: this machine has none of never, madvise"):
        read_knobs({"hugepages": "all"}, _float32("fake"), host)


def test_an_option_that_is_a_knob(pinstripe: Run) -> None:
    """What is a knob is not an option too: there would be two names for one configuration."""
    done = pinstripe("bench", "random:minilm-l6", "--engine", "torch-eager", "--option", "gemm=mkl")
    assert done.returncode == 2
    said = "gemm is a knob, not an option of torch-eager; write --gemm for bench, --knob gemm=mkl, or put it into knobs"
    assert said in done.stderr


def test_all_may_depend_on_another_knob() -> None:
    """GNU's OpenMP runtime cannot spin for a time, Intel's can: `all` is what each can."""
    intel = InstalledLibrary(name="iomp", path="/opt/libiomp5.so")
    host = Host(machine=container_2cpu(), libraries=(intel,))
    (chosen,) = read_knobs({"spin": "all", "openmp": "gnu,intel"}, _float32("torch-eager"), host).values()
    spins = {name: [one["spin"] for one in chosen if one["openmp"] == name] for name in ("gnu", "intel")}
    assert spins["gnu"] == ["0", "infinite"]
    assert set(spins["intel"]) > {"0", "1", "infinite"}


def test_all_may_depend_on_the_precision() -> None:
    """Fewer instructions are enough for float32 than for bfloat16."""
    machine = replace(uniform(), isa=("sse2", "sse4_1", "avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq"))
    machine = replace(machine, isa=(*machine.isa, "avx512_vnni", "avx512_bf16"))
    wanted: list[tuple[str, Precision]] = [("torch-eager", "float32"), ("torch-eager", "bfloat16")]
    choices = read_knobs({"isa": "all"}, wanted, Host(machine=machine))
    isas = {precision: [one["isa"] for one in chosen] for (_, precision), chosen in choices.items()}
    assert isas["float32"][0] == "sse41"
    assert isas["bfloat16"] == ["avx512-bf16"]

"""Idle threads spin for as long as was asked, or the evidence says otherwise."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.engines import Artefact, LoadRequest, OptionValue, engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, KnobEffect, Seen, combined_setting, knob
from pinstripe.pool import Pool, WorkerSpec, gather_evidence
from pinstripe.runtime import InstalledLibrary
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import container_2cpu

_MILLISECONDS = {str(number) for number in range(10_001)}
MakeContext = Callable[..., Context]
See = Callable[..., Seen]


@pytest.fixture(autouse=True)
def _no_preload(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing preloaded that a test does not preload itself."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)


def _context(name: str, cpus: tuple[int, ...] | None = (0, 1), **chosen: str) -> Context:
    libraries = (InstalledLibrary(name="iomp", path="/v/lib/libiomp5.so"),)
    host = Host(machine=container_2cpu(), libraries=libraries)
    return Context(host=host, engine=engine(name), cpus=cpus, chosen=chosen)


def _problem(seen: Seen, requested: str) -> str | None:
    found = knob("spin").effective(seen)
    return KnobEffect(knob="spin", requested=requested, effective=found.value, why=found.why).problem


@given(st.text(max_size=6) | st.integers(-5, 20_000).map(str))
def test_values(text: str) -> None:
    """Plain decimals from 0 to 10000 are values, and of words only `infinite`."""
    assert knob("spin").is_value(text) == (text == "infinite" or text in _MILLISECONDS)


@pytest.mark.parametrize(("value", "policy"), [("0", "passive"), ("infinite", "active")])
def test_gnus_runtime_waits_so_or_so(value: str, policy: str) -> None:
    """It is what computes where no other was asked for; a count of rounds left over would go before the policy."""
    for chosen in ({}, {"openmp": "gnu"}, {"openmp": "auto"}):
        environment = combined_setting(_context("torch-eager", None, spin=value, **chosen)).environment
        assert environment == {"OMP_WAIT_POLICY": policy, "GOMP_SPINCOUNT": None}


def test_gnus_runtime_knows_no_time() -> None:
    """Milliseconds are refused, and the runtimes that take them named."""
    with pytest.raises(KnobError, match="counts rounds, not time; use 0 or infinite, or openmp=intel or llvm"):
        combined_setting(_context("torch-eager", spin="5"))


def test_what_is_preloaded_already_takes_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a choice of runtime, the one that workers inherit is the one that is set."""
    monkeypatch.setenv("LD_PRELOAD", "/opt/libomp.so.5")
    assert combined_setting(_context("torch-eager", spin="5")).environment["KMP_BLOCKTIME"] == "5"


@pytest.mark.parametrize("value", ["0", "5", "infinite"])
def test_the_others_take_milliseconds(value: str) -> None:
    """KMP_BLOCKTIME, without what would override it."""
    environment = combined_setting(_context("torch-eager", None, openmp="intel", spin=value)).environment
    assert environment == {"KMP_BLOCKTIME": value, "KMP_LIBRARY": None, "OMP_WAIT_POLICY": None}


def test_onnxruntime_takes_a_time() -> None:
    """An option of the engine; for ever is refused."""
    assert combined_setting(_context("onnxruntime", spin="20")).options == {"spin": 20}
    with pytest.raises(KnobError, match="spin=infinite cannot be had here: onnxruntime takes a time; use a long one"):
        combined_setting(_context("onnxruntime", spin="infinite"))


@pytest.mark.parametrize(("name", "pool"), [("openvino", "TBB"), ("tf-eager", "thread pool of its own")])
def test_strangers(name: str, pool: str) -> None:
    """Engines whose library has no such setting are named with what they compute with."""
    assert f"computes with {pool} and" in (knob("spin").stranger(engine(name)) or "").replace("a thread", "thread")


def test_one_thread_never_waits() -> None:
    """An instance of one thread has none that idles, so nothing could be shown."""
    with pytest.raises(KnobError, match="an instance of one thread has none that waits"):
        combined_setting(_context("onnxruntime", (1,), spin="0"))
    unbound = replace(_context("onnxruntime", None, spin="0"), threads=1)
    with pytest.raises(KnobError, match="an instance of one thread has none that waits"):
        combined_setting(unbound)
    assert combined_setting(replace(unbound, threads=2)).options == {"spin": 0}


@pytest.mark.parametrize(("value", "otherwise"), [("0", "about "), ("infinite", "slept after ")])
def test_gnus_threads_are_seen(value: str, otherwise: str, openmp_context: MakeContext, seen_with_openmp: See) -> None:
    """What is asked for is seen; the same process without the variable spins for a while."""
    context = openmp_context(openmp="gnu", spin=value)
    assert _problem(seen_with_openmp(context), value) is None
    seen = seen_with_openmp(context, replace(combined_setting(context), environment={}))
    effective = knob("spin").effective(seen)
    assert otherwise in f"{effective.value} {effective.why}"
    assert (_problem(seen, value) or "").startswith(f"spin: asked {value}, idle threads of libgomp")


@pytest.mark.parametrize("runtime", ["intel", "llvm"])
@pytest.mark.parametrize("value", ["0", "infinite"])
def test_the_others_say_it(runtime: str, value: str, openmp_context: MakeContext, seen_with_openmp: See) -> None:
    """What is asked for is said by the runtime; without the variable it says its default of 200 ms."""
    context = openmp_context(openmp=runtime, spin=value)
    assert _problem(seen_with_openmp(context), value) is None
    seen = seen_with_openmp(context, replace(combined_setting(context), environment={"KMP_BLOCKTIME": None}))
    assert (_problem(seen, value) or "").endswith(" says 200 ms")


def _graph(path: Path) -> Artefact:
    """Write a graph that has enough to compute for two threads."""
    onnx = pytest.importorskip("onnx")
    helper, float_type, tokens = onnx.helper, onnx.TensorProto.FLOAT, ["batch", "sequence"]
    square = onnx.numpy_helper.from_array(np.ones((8, 8), np.float32), "square")
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["floats"], to=float_type),
        helper.make_node("MatMul", ["floats", "square"], ["last_hidden_state"]),
    ]
    ids = helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, tokens)
    result = helper.make_tensor_value_info("last_hidden_state", float_type, ["batch", 8])
    graph = helper.make_graph(nodes, "product", [ids], [result], [square])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return Artefact(format="onnx", path=str(path), origin="model")


def _idle_ms(pid: int, tid: int, wait_s: float) -> float:
    """Return the CPU time of a thread in a while: the first field of schedstat, in nanoseconds."""
    path = Path(f"/proc/{pid}/task/{tid}/schedstat")
    before = int(path.read_text().split()[0])
    time.sleep(wait_s)
    return (int(path.read_text().split()[0]) - before) / 1e6


def test_workers_with_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session says what was asked for, or that it was not told; and its idle thread behaves so."""
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path / "cache"))
    artefact = _graph(tmp_path / "model.onnx")

    def worker(asked: str, options: dict[str, OptionValue]) -> WorkerSpec:
        load = LoadRequest(network=fake_network(), artefact=artefact, threads=2, options=options)
        return WorkerSpec(engine="onnxruntime", load=load, cpus=None, knobs={"spin": asked}, output="raw")

    specs = [worker("0", {"spin": 0}), worker("10000", {"spin": 10_000}), worker("5", {})]

    async def gather() -> list[Any]:
        async with Pool(specs) as pool:
            evidence = [await gather_evidence(instance) for instance in pool.instances]
            # Loaded with one forward pass some moments ago: one still spins, for ten seconds or longer.
            idle = [_busiest_ms(one.process.pid) for one in evidence[:2]]
            return [*(one.problems for one in evidence), *idle]

    sleeper, spinner, missed, asleep_ms, awake_ms = asyncio.run(gather())
    assert sleeper == spinner == ()
    assert missed == ("spin: asked 5, session.intra_op.spin_duration_us is not set",)
    assert asleep_ms < awake_ms / 4


def _busiest_ms(pid: int) -> float:
    own = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    return max(_idle_ms(pid, tid, 0.1) for tid in own)

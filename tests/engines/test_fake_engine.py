"""The fake engine: known results at a known cost, and faults on demand."""

import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from pinstripe.engines import Artefact, LoadedModel, LoadRequest, engine
from pinstripe.errors import EngineError
from pinstripe.models import Network, TokenBatch
from pinstripe.testing.fake_engine import fake_network

_NOTHING = Artefact(format="none", path="", origin="model")
_CLASSES = fake_network(task="classification", labels=tuple(map(str, range(384))))


def _load(network: Network = _CLASSES, **options: Any) -> LoadedModel:
    return engine("fake").load(LoadRequest(network=network, artefact=_NOTHING, options=options))


def _batch(size: int = 8, length: int = 128) -> TokenBatch:
    ids = np.arange(size * length, dtype=np.int32).reshape(size, length)
    return TokenBatch(ids=ids, lengths=np.full(size, length, np.int32))


def _best_us(model: LoadedModel, batch: TokenBatch, repeats: int) -> float:
    """Return the shortest of several forwards: the machine may add to a cost, never take from it."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        model.forward(batch)
        times.append(time.perf_counter() - begin)
    return min(times) * 1e6


def test_costs_nothing_by_default() -> None:
    """8 texts of 128 tokens to 384 numbers each take well under 100 µs, to measure what is around an engine."""
    assert _best_us(_load(), _batch(), 200) < 100


@pytest.mark.parametrize("busy", [False, True])
def test_cost(busy: bool) -> None:  # noqa: FBT001 - given by parametrize
    """A forward takes its fixed cost and that of its positions: 2000 µs + 256 of 10 µs = 4560 µs."""
    model = _load(fixed_us=2000.0, per_token_us=10.0, busy=busy)
    assert 4560 <= _best_us(model, _batch(4, 64), 30) < 4560 + 50


def test_busy_cost_is_cpu_time() -> None:
    """A busy forward keeps the CPU, a sleeping one leaves it."""
    spent = []
    for busy in (True, False):
        begin = time.thread_time()
        _load(fixed_us=50_000.0, busy=busy).forward(_batch())
        spent.append(time.thread_time() - begin)
    assert spent[0] > 3 * spent[1]


def test_loading_takes_its_time() -> None:
    """Loading lasts as long as it is told to."""
    begin = time.monotonic()
    _load(load_s=0.2)
    assert time.monotonic() - begin >= 0.2


def test_results_differ_by_text_and_repeat_in_another_process() -> None:
    """Results are a fixed function of the ids, so that a mixed-up answer is noticed."""
    output = _load().forward(_batch())
    assert len(np.unique(output[:, 0])) == 8
    code = (
        "import numpy as np\n"
        "from pinstripe.engines import *\n"
        "from pinstripe.models import TokenBatch\n"
        "from pinstripe.testing.fake_engine import fake_network\n"
        "network = fake_network(task='classification', labels=('a', 'b'))\n"
        "nothing = Artefact(format='none', path='', origin='model')\n"
        "model = engine('fake').load(LoadRequest(network=network, artefact=nothing))\n"
        "print(model.forward(TokenBatch(ids=np.array([[5, 6]], np.int32), lengths=np.array([2], np.int32))).tolist())\n"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)]
    assert runs[0] == runs[1] != b""


def test_fails_on_demand() -> None:
    """The forward that should fail does, the others do not."""
    model = _load(fail_at=2)
    model.forward(_batch())
    with pytest.raises(RuntimeError, match="forward 2"):
        model.forward(_batch())
    model.forward(_batch())


def test_hangs_on_demand() -> None:
    """The forward that should hang does not come back."""
    model = _load(hang_at=1)
    thread = threading.Thread(target=model.forward, args=(_batch(),), daemon=True)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()


def test_crashes_on_demand() -> None:
    """The forward that should crash ends the process without a word."""
    code = (
        "import numpy as np\n"
        "from pinstripe.engines import *\n"
        "from pinstripe.models import TokenBatch\n"
        "from pinstripe.testing.fake_engine import fake_network\n"
        "nothing = Artefact(format='none', path='', origin='model')\n"
        "request = LoadRequest(network=fake_network(), artefact=nothing, options={'crash_at': 2})\n"
        "model = engine('fake').load(request)\n"
        "batch = TokenBatch(ids=np.array([[5]], np.int32), lengths=np.array([1], np.int32))\n"
        "model.forward(batch)\n"
        "print('one', flush=True)\n"
        "model.forward(batch)\n"
        "print('two', flush=True)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (70, "one\n", "")


def test_grows_on_demand() -> None:
    """Memory is really taken: 8 forwards of 16 MB each raise the peak size by at least 100 MB.

    In a process of its own: in this one, what other tests have left may be freed in between. Not by getrusage, whose
    peak an executed program inherits from its parent.
    """
    code = (
        "from pathlib import Path\n"
        "import numpy as np\n"
        "from pinstripe.engines import *\n"
        "from pinstripe.models import TokenBatch\n"
        "from pinstripe.testing.fake_engine import fake_network\n"
        "nothing = Artefact(format='none', path='', origin='model')\n"
        "request = LoadRequest(network=fake_network(), artefact=nothing, options={'grow_bytes': 16_000_000})\n"
        "model = engine('fake').load(request)\n"
        "batch = TokenBatch(ids=np.array([[5]], np.int32), lengths=np.array([1], np.int32))\n"
        "def peak_kb():\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith('VmHWM'))\n"
        "before_kb = peak_kb()\n"
        "for _ in range(8):\n"
        "    model.forward(batch)\n"
        "print(peak_kb() - before_kb)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert int(result.stdout) > 100_000


@pytest.mark.parametrize(
    "options",
    [{"fixed_us": -1.0}, {"crash_at": 0}, {"busy": "yes"}, {"load_s": "long"}, {"grow_bytes": 1.5}],
)
def test_bad_values(options: dict[str, Any]) -> None:
    """A value that makes no sense is refused by the option's name, on one line."""
    with pytest.raises(EngineError, match=next(iter(options))) as caught:
        _load(**options)
    assert "\n" not in str(caught.value)

"""What disturbs a trial is seen and said."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from pinstripe.bench import Record, Surroundings, read_records, summarize
from pinstripe.bench.watch import cpu_time_ns, watching
from pinstripe.cli.remarks import remarks
from pinstripe.engines import Artefact, LoadRequest
from pinstripe.machine import Counters, read_machine
from pinstripe.pool import Pool, WorkerSpec
from pinstripe.testing.fake_engine import fake_network

GOLDEN = Path(__file__).parent / "golden"
S = 10**9
BURN = "import time; end = time.process_time() + {}\nwhile time.process_time() < end: pass"
QUIET = Counters(nr_periods=20, nr_throttled=0, throttled_ns=0, steal_ns=0, busy_ns=4 * S)


@pytest.fixture
def record() -> Record:
    """A record of two instances with one CPU each, on a machine of two."""
    return read_records(GOLDEN / "format-1.jsonl")[0]


def _seen(**changes: object) -> Surroundings:
    """Two seconds in which the own processes kept both CPUs busy, with changes to what the kernel says of them."""
    quiet = Surroundings(
        elapsed_ns=2 * S,
        counters=QUIET,
        own_cpu_ns=4 * S,
        parent_cpu_ns=S // 10,
        clock_mhz=(3000.0, 3000.0),
        suspended_s=0.0,
    )
    return replace(quiet, **changes)


@pytest.mark.parametrize(
    ("seen", "expected", "says"),
    [
        (_seen(), (), ""),
        # 40 ms of 2 CPUs x 2 s are 1.0 %, 60 ms are 1.5 %.
        (_seen(counters=replace(QUIET, steal_ns=40_000_000)), (), ""),
        (_seen(counters=replace(QUIET, steal_ns=60_000_000)), ("steal",), "gave 1.5% of the instances' CPU time"),
        # 220 ms of foreign time, less a tick of 10 ms a CPU, are 5.0 % of 2 CPUs x 2 s; 620 ms are 15 %.
        (_seen(counters=replace(QUIET, busy_ns=4 * S + 220_000_000)), (), ""),
        (_seen(counters=replace(QUIET, busy_ns=4 * S + 620_000_000)), ("foreign-cpu",), "other processes used 15%"),
        # The kernel's count of busy time may lag behind.
        (_seen(own_cpu_ns=5 * S), (), ""),
        (_seen(counters=replace(QUIET, nr_throttled=1)), ("throttling",), "CPU quota in 5.0% of the periods"),
        (_seen(clock_mhz=(3000.0, 2900.0)), (), ""),
        (_seen(clock_mhz=(3000.0, 2400.0, 3000.0)), ("clock",), "frequency changed by 20%"),
        (_seen(suspended_s=7.0), ("suspension",), "suspended for 7 s"),
    ],
)
def test_disturbance_is_flagged_and_said(
    seen: Surroundings, expected: tuple[str, ...], says: str, record: Record
) -> None:
    """What a quiet machine has is not flagged; what is beyond is in the result and among the remarks."""
    (trial,) = summarize([replace(record, surroundings=seen)])

    assert trial.result is not None
    assert trial.result.disturbances.seen == expected
    assert says in " ".join(remarks([trial]))


def test_worst_repeat_counts(record: Record) -> None:
    """One disturbed repeat of two is enough to be told."""
    stolen = replace(QUIET, steal_ns=400_000_000)
    repeats = [replace(record, surroundings=_seen()), replace(record, repeat=1, surroundings=_seen(counters=stolen))]
    (trial,) = summarize(repeats)

    assert trial.result is not None
    assert trial.result.disturbances.steal_fraction == pytest.approx(0.1)


def test_what_the_system_does_not_say_is_unknown(record: Record) -> None:
    """Unknown is not quiet: null, and not flagged."""
    nothing = Counters(nr_periods=None, nr_throttled=None, throttled_ns=None, steal_ns=None, busy_ns=None)
    (trial,) = summarize([replace(record, surroundings=_seen(counters=nothing, own_cpu_ns=None, clock_mhz=()))])

    assert trial.result is not None
    found = trial.result.disturbances
    assert found.seen == ()
    assert (found.throttled_fraction, found.steal_fraction) == (None, None)
    assert (found.foreign_cpu_fraction, found.clock_change_fraction) == (None, None)


def test_outliers_are_counted_and_kept(record: Record) -> None:
    """One batch of 900 took fifty times as long: told, and still the slowest value."""
    assert record.measurement is not None
    latencies = (*(10_000_000 + index * 1000 for index in range(899)), 500_000_000)
    (trial,) = summarize([replace(record, measurement=replace(record.measurement, latency_ns=latencies))])

    assert trial.result is not None
    assert (trial.result.outliers, trial.result.n) == (1, 900)
    assert "1 of 900 batches took a time far from the others'" in " ".join(remarks([trial]))
    # Bounds by the binomial: with 900 values, p99 is bounded by the 5th from the top (4 or fewer above in 5.3 %: no;
    # 3 or fewer in 2.0 %), which makes it the 4th.
    assert trial.result.latency_bound_ms.p99 == latencies[896] / 1e6


def test_cpu_time_of_another_process() -> None:
    """The process clock counts what `time.process_time` says inside, and an ended process has none."""
    code = f"{BURN.format(0.3)}\nprint(time.process_time(), flush=True)\ninput()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as busy:
        assert busy.stdout is not None
        inside = float(busy.stdout.readline())
        assert inside <= cpu_time_ns(busy.pid) / 1e9 <= inside + 0.2
        busy.communicate("\n")
    with pytest.raises(OSError, match="Invalid argument"):
        cpu_time_ns(busy.pid)


def test_work_of_others_is_told_from_our_own() -> None:
    """A stranger that burns half a second of CPU time shows in the busy time beyond our own processes'."""
    machine = read_machine()
    network = fake_network()
    load = LoadRequest(network=network, artefact=Artefact(format="none", path="", origin="model"), threads=1)
    cpu = machine.allowed[-1]

    async def seen() -> Surroundings:
        async with (
            Pool([WorkerSpec(engine="fake", load=load, cpus=(cpu,), output="raw")]) as pool,
            watching(pool, machine) as watch,
        ):
            stranger = await asyncio.create_subprocess_exec(sys.executable, "-c", BURN.format(0.5))
            await stranger.wait()
            return watch.surroundings()

    began = time.process_time()
    surroundings = asyncio.run(seen())
    if surroundings.counters.busy_ns is None:
        pytest.skip("this system does not say how busy its CPUs are")
    assert surroundings.own_cpu_ns is not None
    assert surroundings.own_cpu_ns / 1e9 <= time.process_time() - began + 0.5
    assert surroundings.counters.busy_ns - surroundings.own_cpu_ns >= 0.35 * S

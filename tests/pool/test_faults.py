"""A crash is a result: what happens when workers die, hang, fail or refuse."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pinstripe.errors import EngineError, StartError, WorkerDiedError, WorkerError, WorkerHungError
from pinstripe.models import TokenBatch
from pinstripe.pool import Pool, WorkerSpec

MakeWorker = Callable[..., WorkerSpec]

BATCH = TokenBatch(ids=np.ones((1, 8), np.int32), lengths=np.full(1, 8, np.int32))


def _read(path: str) -> str:
    return Path(path).read_text()


def _gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def _wait_until(condition: Callable[[], bool], timeout_s: float = 10) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_killed_worker_is_noticed_within_a_second_and_named(fake_worker: MakeWorker) -> None:
    """A batch bound to an instance that is killed fails within 1 s, naming instance, pid and signal."""

    async def fault() -> tuple[float, str]:
        async with Pool([fake_worker(hang_at=2)], restart=False) as pool:
            running = asyncio.create_task(pool.submit(BATCH, instance=0))
            await asyncio.sleep(0.2)
            pid = pool.instances[0].process.pid
            began = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            with pytest.raises(WorkerDiedError) as caught:
                await running
            assert str(pid) in str(caught.value)
            return time.monotonic() - began, str(caught.value)

    seconds, message = asyncio.run(fault())

    assert seconds < 1
    assert "instance 0" in message
    assert "SIGKILL" in message


def test_batch_of_a_killed_worker_runs_elsewhere(fake_worker: MakeWorker) -> None:
    """Batches of a dead worker are run once more on the other one, and the dead one comes back."""

    async def fault() -> tuple[int, bool]:
        async with Pool([fake_worker(fixed_us=300_000.0)] * 2) as pool:
            await asyncio.gather(pool.submit(BATCH, instance=0), pool.submit(BATCH, instance=1))
            running = [asyncio.create_task(pool.submit(BATCH)) for _ in range(4)]
            await asyncio.sleep(0.1)
            os.kill(pool.instances[0].process.pid, signal.SIGKILL)
            results = await asyncio.gather(*running)
            again = await pool.submit(BATCH, instance=0)
            return len(results), again.instance == 0

    assert asyncio.run(asyncio.wait_for(fault(), 60)) == (4, True)


def test_batch_that_kills_two_workers_is_given_up(fake_worker: MakeWorker) -> None:
    """A poisonous batch takes down two workers at most, and fails with their last words."""

    async def fault() -> None:
        # The probe at start is forward 1, so the first batch of each worker is its second.
        async with Pool([fake_worker(crash_at=2)] * 2) as pool:
            with pytest.raises(WorkerDiedError, match="exited with code 70"):
                await pool.submit(BATCH)

    asyncio.run(asyncio.wait_for(fault(), 60))


def test_single_instance_retries_on_its_successor(fake_worker: MakeWorker) -> None:
    """With one instance there is no elsewhere: the batch waits for the restarted worker."""

    async def fault() -> int:
        async with Pool([fake_worker(fixed_us=200_000.0)]) as pool:
            running = asyncio.create_task(pool.submit(BATCH))
            await asyncio.sleep(0.1)
            first = pool.instances[0].process.pid
            os.kill(first, signal.SIGKILL)
            await running
            return pool.instances[0].process.pid - first

    assert asyncio.run(asyncio.wait_for(fault(), 60)) != 0


@pytest.mark.parametrize("suspend", [False, True], ids=["hangs", "is suspended"])
def test_worker_without_progress_is_stopped(
    suspend: bool,  # noqa: FBT001 - a case of the test
    fake_worker: MakeWorker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that hangs, or was suspended, is stopped after its limit and said to hang."""
    monkeypatch.setattr("pinstripe.pool.patience._LEAST_S", 1.5)

    async def fault() -> int:
        options = {"fixed_us": 300_000.0} if suspend else {"hang_at": 3}
        async with Pool([fake_worker(**options)], restart=False) as pool:
            await pool.submit(BATCH, instance=0)
            pid = pool.instances[0].process.pid
            running = asyncio.create_task(pool.submit(BATCH, instance=0))
            await asyncio.sleep(0.1)
            if suspend:
                os.kill(pid, signal.SIGSTOP)
            with pytest.raises(WorkerHungError, match="no progress"):
                await running
            return pid

    assert _gone(asyncio.run(asyncio.wait_for(fault(), 30)))


def test_batch_that_raises_costs_only_itself(fake_worker: MakeWorker) -> None:
    """An exception in the forward pass fails its batch by name; the worker goes on."""

    async def fault() -> int:
        async with Pool([fake_worker(fail_at=2)]) as pool:
            with pytest.raises(WorkerError, match="RuntimeError"):
                await pool.submit(BATCH)
            return (await pool.submit(BATCH)).instance

    assert asyncio.run(fault()) == 0


def test_engine_that_refuses_stops_the_start(fake_worker: MakeWorker) -> None:
    """A wrong option is a usage error, told before anything runs; no process is left."""

    async def open_pool() -> None:
        async with Pool([fake_worker(), fake_worker(no_such_option=1)]):
            pass

    before = _children()
    with pytest.raises(EngineError, match="no_such_option"):
        asyncio.run(open_pool())

    assert _children() == before


def test_worker_that_is_not_ready_in_time_stops_the_start(fake_worker: MakeWorker) -> None:
    """Loading has a bound; all workers are stopped when one exceeds it."""

    async def open_pool() -> None:
        async with Pool([fake_worker(), fake_worker(load_s=60.0)], load_timeout_s=1):
            pass

    before = _children()
    with pytest.raises(StartError, match="not ready within 1 s"):
        asyncio.run(open_pool())

    assert _children() == before


def test_missing_interpreter_is_said(fake_worker: MakeWorker) -> None:
    """A worker environment that does not exist is a clear error."""

    async def open_pool() -> None:
        async with Pool([fake_worker(python="/nowhere/python")]):
            pass

    with pytest.raises(EngineError, match="/nowhere/python"):
        asyncio.run(open_pool())


def test_closing_leaves_no_process(fake_worker: MakeWorker) -> None:
    """After closing, also in the middle of a batch, no worker exists and nobody waits for ever."""

    async def close_early() -> list[int]:
        async with Pool([fake_worker(hang_at=2)] * 2) as pool:
            pids = [instance.process.pid for instance in pool.instances]
            running = asyncio.create_task(pool.submit(BATCH))
            await asyncio.sleep(0.1)
        with pytest.raises(WorkerError):
            await running
        return pids

    assert all(map(_gone, asyncio.run(asyncio.wait_for(close_early(), 30))))


def test_killed_parent_leaves_no_process(tmp_path: Path) -> None:
    """Workers end when their parent is killed, even in the middle of a batch."""
    script = tmp_path / "parent.py"
    script.write_text(
        """
import asyncio
import numpy as np
from pinstripe.engines import Artefact, LoadRequest
from pinstripe.models import TokenBatch
from pinstripe.pool import Pool, WorkerSpec
from pinstripe.testing.fake_engine import fake_network

async def main():
    load = LoadRequest(network=fake_network(), artefact=Artefact(format="none", path="", origin="model"),
                       threads=1, options={"hang_at": 2})
    async with Pool([WorkerSpec(engine="fake", load=load, cpus=None)] * 2) as pool:
        running = pool.submit(TokenBatch(ids=np.ones((1, 8), np.int32), lengths=np.full(1, 8, np.int32)))
        print(*(instance.process.pid for instance in pool.instances), flush=True)
        await running

asyncio.run(main())
"""
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()

    assert len(workers) == 2
    assert _wait_until(lambda: all(map(_gone, workers)))


def test_worker_knows_nothing_of_the_parents_command_line(fake_worker: MakeWorker) -> None:
    """What starts a worker travels in its message: its command line has no path and no model."""

    async def command_line() -> str:
        async with Pool([fake_worker()]) as pool:
            return _read(f"/proc/{pool.instances[0].process.pid}/cmdline")

    _, *arguments = asyncio.run(command_line()).rstrip("\0").split("\0")

    assert arguments[:-1] == ["-P", "-m", "pinstripe.pool.worker"]
    assert arguments[-1].isdigit()


def test_evidence_shows_every_thread_on_its_core(fake_worker: MakeWorker) -> None:
    """A pinned worker's threads may run on its CPU only, and nothing is to complain of."""
    cpu = max(os.sched_getaffinity(0))

    async def evidence() -> tuple[set[tuple[int, ...] | None], tuple[str, ...], int]:
        async with Pool([fake_worker(cpus=(cpu,))]) as pool:
            (found,) = await pool.evidence()
            return {thread.cpus for thread in found.process.threads}, found.problems, found.engine.threads

    assert asyncio.run(evidence()) == ({(cpu,)}, (), 1)


def _children() -> set[str]:
    return {name for task in Path("/proc/self/task").iterdir() for name in (task / "children").read_text().split()}


def test_work_goes_on_beside_a_batch_that_waits_for_a_restart(fake_worker: MakeWorker) -> None:
    """A batch that may not return to the instance that died over it does not hold up those behind it."""

    async def fault() -> list[int]:
        async with Pool([fake_worker(fixed_us=100_000.0)] * 2) as pool:
            first, second = (instance.process.pid for instance in pool.instances)
            running = [asyncio.create_task(pool.submit(BATCH)) for _ in range(2)]
            await asyncio.sleep(0.03)
            os.kill(first, signal.SIGKILL)
            os.kill(second, signal.SIGKILL)
            await asyncio.sleep(0.1)
            later = [asyncio.create_task(pool.submit(BATCH)) for _ in range(4)]
            return [result.instance for result in await asyncio.gather(*running, *later)]

    assert len(asyncio.run(asyncio.wait_for(fault(), 60))) == 6


def test_instances_that_cannot_come_back_fail_what_waits(
    fake_worker: MakeWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When no instance can be started again, batches fail with the reason instead of waiting for ever."""
    monkeypatch.setattr("pinstripe.pool.pool._MOST_DEATHS", 1)

    async def fault() -> None:
        async with Pool([fake_worker(crash_at=2)] * 2) as pool:
            with pytest.raises(WorkerDiedError, match="code 70"):
                await asyncio.gather(*(pool.submit(BATCH) for _ in range(6)))
            with pytest.raises(WorkerDiedError, match="code 70"):
                await pool.submit(BATCH)

    asyncio.run(asyncio.wait_for(fault(), 60))


def test_files_in_the_working_directory_are_not_imported(
    fake_worker: MakeWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own socket.py beside the data does not replace the module that a worker needs."""
    for name in ("socket.py", "numpy.py", "msgspec.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)

    async def run() -> int:
        async with Pool([fake_worker()]) as pool:
            return (await pool.submit(BATCH)).instance

    assert asyncio.run(run()) == 0

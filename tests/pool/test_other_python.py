"""Workers in another Python environment, with the fake engine."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pinstripe
from pinstripe.engines import EngineReport
from pinstripe.engines.other_python import check_python
from pinstripe.errors import EngineError
from pinstripe.models import TokenBatch
from pinstripe.pool import Pool, WorkerSpec
from pinstripe.testing.bare_python import WORKER_NEEDS, make_bare_python

MakeWorker = Callable[..., WorkerSpec]

_BATCH = TokenBatch(ids=np.ones((2, 8), np.int32), lengths=np.full(2, 8, np.int32))


async def _run(spec: WorkerSpec) -> tuple[tuple[int, ...], EngineReport]:
    async with Pool([spec]) as pool:
        result = await pool.submit(_BATCH)
        return result.outputs["embedding"].shape, (await pool.evidence())[0].engine


def test_msgspec_and_numpy_are_enough(fake_worker: MakeWorker, tmp_path: Path) -> None:
    """A worker runs, and reports, where neither tokenizers nor the hub's client nor the command line is installed."""
    python = make_bare_python(tmp_path / "bare")
    shape, report = asyncio.run(_run(fake_worker(python=str(python))))

    assert shape == (2, 384)
    assert (report.engine, report.version) == ("fake", pinstripe.__version__)


@pytest.mark.parametrize(
    ("with_pinstripe", "packages", "missing"),
    [(False, WORKER_NEEDS, "pinstripe"), (True, ("msgspec",), "numpy")],
    ids=["no-pinstripe", "no-numpy"],
)
def test_what_is_missing_there_is_named(
    with_pinstripe: bool,  # noqa: FBT001 - a parameter
    packages: tuple[str, ...],
    missing: str,
    fake_worker: MakeWorker,
    tmp_path: Path,
) -> None:
    """An environment without pinstripe, or half installed, is one line with the command that mends it."""
    python = make_bare_python(tmp_path / "bare", packages, with_pinstripe=with_pinstripe)
    with pytest.raises(EngineError) as caught:
        asyncio.run(_run(fake_worker(python=str(python))))

    assert str(caught.value) == (
        f"{python} cannot run pinstripe: it has no {missing}; "
        f"run `{python} -m pip install pinstripe=={pinstripe.__version__}`"
    )


def test_another_protocol_is_refused(fake_worker: MakeWorker, tmp_path: Path) -> None:
    """A worker of a later pinstripe says so, and what to do."""
    later = "import pinstripe.pool.messages as messages\nmessages.PROTOCOL_VERSION = 99\n"
    python = make_bare_python(tmp_path / "bare", startup=later)
    with pytest.raises(EngineError, match=r"the worker speaks protocol 99, .*one pinstripe version in both"):
        asyncio.run(_run(fake_worker(python=str(python))))


def test_messages_that_are_not_understood_are_refused(fake_worker: MakeWorker, tmp_path: Path) -> None:
    """A worker that cannot even read the first message names the version to install."""
    other = "import pinstripe.pool.frames as frames\nfrom pinstripe.pool.messages import Ready\n"
    other += "keep = frames.FrameReader.__init__\n"
    other += "frames.FrameReader.__init__ = lambda self, kind: keep(self, Ready)\n"
    python = make_bare_python(tmp_path / "bare", startup=other)
    with pytest.raises(EngineError) as caught:
        asyncio.run(_run(fake_worker(python=str(python))))

    assert f"does not understand this one's messages; run `{python} -m pip install" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_interpreter_is_refused(fake_worker: MakeWorker, tmp_path: Path) -> None:
    """A path that is absent, a directory, an environment's directory, or no program: each is told apart."""
    (tmp_path / "text").write_text("")
    interpreter = tmp_path / "environment" / "bin" / "python"
    interpreter.parent.mkdir(parents=True)
    interpreter.symlink_to(sys.executable)
    for path, message in [
        ("", "--python is empty"),
        (tmp_path / "absent", "there is no such interpreter; name one with its path"),
        ("no-such-python-anywhere", "there is no such interpreter in PATH"),
        (tmp_path, "there is no bin/python in it"),
        (tmp_path / "environment", f"use {interpreter}"),
        (tmp_path / "text", "may not be executed"),
    ]:
        with pytest.raises(EngineError, match=message):
            asyncio.run(_run(fake_worker(python=str(path))))


def test_a_name_in_path_is_an_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a shell: found in PATH and not in the working directory, which the message tells."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "my-python").symlink_to(sys.executable)
    (tmp_path / "here").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    check_python("my-python")
    check_python("./here")
    with pytest.raises(EngineError, match=r"--python here: .*write \./here"):
        check_python("here")


@pytest.mark.parametrize(
    "lines",
    [("exit 0",), ("echo garbage", "echo more >&2", "exit 0"), ("exit 1",), ("echo bad option -- P >&2", "exit 2")],
    ids=["true", "garbage", "false", "other-options"],
)
def test_a_program_that_is_no_python_is_told(lines: tuple[str, ...], fake_worker: MakeWorker, tmp_path: Path) -> None:
    """What runs, but not as Python does, is named with the option that named it."""
    program = tmp_path / "program"
    program.write_text("\n".join(("#!/bin/sh", *lines, "")))
    program.chmod(0o755)
    with pytest.raises(EngineError) as caught:
        asyncio.run(_run(fake_worker(python=str(program))))

    assert str(caught.value) == f"{program} did not behave as a Python interpreter; name one with --python"

"""What is costly to make is made once: under concurrent starts, and after builders that were killed."""

import logging
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from pinstripe.cache import build_once, load_once_built
from pinstripe.errors import ExecutionError

# Builds for ever, after it has said so.
BUILDER = """
import sys, time
from pathlib import Path
from pinstripe.cache import build_once

def build(directory):
    (directory / "half").write_text("x")
    print(flush=True)
    time.sleep(600)

build_once(Path(sys.argv[1]), build)
"""


def write_content(directory: Path) -> None:
    """Build a directory of one file."""
    (directory / "content").write_text("whole")


@contextmanager
def builder_of(directory: Path) -> Iterator[int]:
    """Give the id of a process that is amid building a directory, and kill it at the end."""
    with subprocess.Popen([sys.executable, "-c", BUILDER, str(directory)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            yield process.pid
        finally:
            process.kill()


def unfinished(directory: Path) -> list[Path]:
    """Return what lies beside a directory besides its lock."""
    return [path for path in directory.parent.iterdir() if path != directory and path.suffix != ".lock"]


def test_built_once(tmp_path: Path) -> None:
    """A second call finds what the first one built."""
    directory = tmp_path / "deep" / "thing"
    assert build_once(directory, write_content) == directory
    build_once(directory, lambda _: pytest.fail("built again"))
    assert (directory / "content").read_text() == "whole"
    assert unfinished(directory) == []


def test_a_killed_builder_leaves_nothing_for_long(tmp_path: Path) -> None:
    """What a killed builder had begun is removed by the next one, and does not get into the result."""
    directory = tmp_path / "thing"
    with builder_of(directory):
        pass
    assert len(unfinished(directory)) == 1
    build_once(directory, write_content)
    assert [path.name for path in directory.iterdir()] == ["content"]
    assert unfinished(directory) == []


def test_others_are_left_alone(tmp_path: Path) -> None:
    """Cleaning up for one directory touches neither others nor what is being built for them."""
    other = tmp_path / "thing.unfinished-2"
    with builder_of(other):
        build_once(tmp_path / "thing", write_content)
        assert [path.read_text() for path in tmp_path.glob(".thing.unfinished-2.*/half")] == ["x"]


def test_waiting_names_the_builder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits is told for which process, and gives up after the limit."""
    monkeypatch.setattr("pinstripe.cache._SILENT_S", 0.1)
    monkeypatch.setattr("pinstripe.cache._WAIT_LIMIT_S", 0.4)
    with (
        builder_of(tmp_path / "thing") as builder,
        caplog.at_level(logging.WARNING),
        pytest.raises(ExecutionError, match=f"process {builder} on .*stop it"),
    ):
        build_once(tmp_path / "thing", write_content)
    assert f"waiting for process {builder} on {os.uname().nodename}" in caplog.text


def test_waiting_ends_with_the_result(tmp_path: Path) -> None:
    """Whoever waits takes what was built meanwhile."""
    directory = tmp_path / "thing"
    builds: list[Path] = []

    def build(unfinished: Path) -> None:
        time.sleep(0.3)
        builds.append(unfinished)
        write_content(unfinished)

    threads = [threading.Thread(target=build_once, args=(directory, build)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(builds) == 1
    assert (directory / "content").is_file()


def test_waiting_can_be_stopped(tmp_path: Path) -> None:
    """Another thread ends a wait for a builder that goes on."""
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    began_s = time.monotonic()
    with builder_of(tmp_path / "thing") as builder, pytest.raises(ExecutionError, match=f"process {builder} .*stopped"):
        build_once(tmp_path / "thing", write_content, stop=stop)
    assert time.monotonic() - began_s < 10


def read_content(directory: Path) -> str:
    """Read what `write_content` wrote, and nothing else."""
    path = directory / "content"
    text = path.read_text() if path.exists() else "nothing"
    if text != "whole":
        raise ValueError(text)
    return text


def test_what_is_damaged_is_made_anew(tmp_path: Path) -> None:
    """A file that was changed, or is absent, costs another build and no error; what is whole is left alone."""
    directory = tmp_path / "thing"
    for damage in ("changed", "absent", None):
        if damage == "changed":
            build_once(directory, write_content)
            (directory / "content").write_text("half")
        elif damage == "absent":
            (directory / "content").unlink()
        before = directory.stat()
        assert load_once_built(directory, write_content, read_content, ValueError) == "whole"
        assert (directory.stat().st_mtime_ns == before.st_mtime_ns) == (damage is None)
    assert unfinished(directory) == []


def test_what_cannot_be_loaded_twice_is_an_error(tmp_path: Path) -> None:
    """Damage that comes again is passed on, after two builds and no more."""
    builds: list[Path] = []

    def build(directory: Path) -> None:
        builds.append(directory)
        (directory / "content").write_text("always half")

    with pytest.raises(ValueError, match="always half"):
        load_once_built(tmp_path / "thing", build, read_content, ValueError)
    assert len(builds) == 2


def test_damage_that_several_see_is_mended_once(tmp_path: Path) -> None:
    """Instances that start together on a damaged directory get one new one, and none removes another's."""
    directory = build_once(tmp_path / "thing", write_content)
    (directory / "content").write_text("half")
    met = threading.Barrier(4)
    builds: list[Path] = []
    results: list[str] = []

    def build(unfinished: Path) -> None:
        builds.append(unfinished)
        write_content(unfinished)

    def load(built: Path) -> str:
        text = (built / "content").read_text()
        if text == "half":
            met.wait(20)  # all have seen it
        return read_content(built)

    def start() -> None:
        results.append(load_once_built(directory, build, load, ValueError))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == ["whole"] * 4
    assert len(builds) == 1


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    """A build that fails on a full disk is one clear error, and the next call builds."""

    def fail(directory: Path) -> None:
        write_content(directory)
        raise OSError(28, "No space left on device")

    with pytest.raises(ExecutionError, match="No space left on device; free space there or set PINSTRIPE_CACHE"):
        build_once(tmp_path / "thing", fail)
    assert unfinished(tmp_path / "thing") == []
    assert build_once(tmp_path / "thing", write_content).is_dir()


def test_a_full_disk_in_the_words_of_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library's error while nothing is free is told as what it is; with space left it stays the library's."""

    def fail(_: Path) -> None:
        raise RuntimeError("basic_ios::clear")

    with pytest.raises(RuntimeError, match="basic_ios"):
        build_once(tmp_path / "thing", fail)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=4096))
    with pytest.raises(ExecutionError, match=f"cannot write the cache {tmp_path}: .*No space left on device; free"):
        build_once(tmp_path / "thing", fail)


def test_unusable_place(tmp_path: Path) -> None:
    """A cache below a file is one clear error."""
    (tmp_path / "file").touch()
    with pytest.raises(ExecutionError, match="cannot write the cache"):
        build_once(tmp_path / "file" / "thing", write_content)


def test_others_may_read(tmp_path: Path) -> None:
    """The umask decides who may read the cache, such as another user of an image that was built as root."""
    mask = os.umask(0o022)
    try:
        directory = build_once(tmp_path / "thing", write_content)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755

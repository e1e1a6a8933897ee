"""What several processes write, line by line."""

import os
import queue
import threading
from collections.abc import Iterator
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.runtime.lines import LineCopier, PrefixedLines

Ends = queue.SimpleQueue[OSError | None]


@given(st.lists(st.binary(max_size=20)))
def test_however_bytes_come_lines_are_the_same(chunks: list[bytes]) -> None:
    """Every line once, in order, with its prefix; the last one gets an end. NULs and bad UTF-8 are bytes as others."""
    lines = PrefixedLines(b"[7] ")
    written = b"".join([*map(lines.feed, chunks), lines.flush()])
    whole = b"".join(chunks)
    expected = whole.split(b"\n")
    if not expected[-1]:
        del expected[-1]
    assert written == b"".join(b"[7] " + line + b"\n" for line in expected)


def test_endless_lines_are_broken() -> None:
    """By hand: at 4 bytes or more a line is given out as it is."""
    lines = PrefixedLines(b">", longest_bytes=4)
    assert [lines.feed(b"abc"), lines.feed(b"de"), lines.feed(b"f\ng"), lines.flush()] == [
        b"",
        b">abcde\n",
        b">f\n",
        b">g\n",
    ]


@pytest.fixture
def target() -> Iterator[tuple[int, int]]:
    """Give the two ends of a pipe that lines are copied to."""
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        try:
            os.close(fd)
        except OSError:
            continue


def test_lines_of_several_writers_are_never_mixed(target: tuple[int, int]) -> None:
    """Four writers with long lines in small pieces: what is read are whole lines, each writer's in its order."""
    ends: Ends = queue.SimpleQueue()
    copier = LineCopier(ends.put)

    def write(number: int) -> None:
        with copier.pipe(b"%d:" % number, target[1]) as fd:
            for line in range(50):
                for _ in range(10):
                    os.write(fd, b"%d" % number * 300)
                os.write(fd, b" %d\n" % line)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    found: dict[int, list[int]] = {number: [] for number in range(4)}
    with open(target[0], "rb", closefd=False) as lines:
        for _ in range(200):
            number, _, rest = lines.readline().partition(b":")
            text, _, line = rest.partition(b" ")
            assert text == number * 3000
            found[int(number)].append(int(line))
    copier.finish()
    assert ends.get(timeout=10) is None
    assert all(lines_of_one == list(range(50)) for lines_of_one in found.values())


def test_a_slow_reader_holds_up_the_writer(target: tuple[int, int]) -> None:
    """Nobody reads: the writer gets rid of what pipes and one buffer hold, and not more; memory stays bounded."""
    ends: Ends = queue.SimpleQueue()
    copier = LineCopier(ends.put)
    with copier.pipe(b"", target[1]) as fd:
        os.set_blocking(fd, False)
        written = idle = 0
        while idle < 20:
            try:
                written += os.write(fd, b"x" * 1023 + b"\n")
                idle = 0
            except BlockingIOError:
                idle += 1
                sleep(0.01)
    assert 1 << 16 <= written <= 1 << 19
    copier.finish()
    read = 0
    while read < written:
        read += len(os.read(target[0], 1 << 16))
    assert ends.get(timeout=10) is None
    assert read == written


def test_a_pipe_that_stays_open_is_not_waited_for(target: tuple[int, int]) -> None:
    """What is in it at the end is copied, a line without end too."""
    ends: Ends = queue.SimpleQueue()
    copier = LineCopier(ends.put)
    with copier.pipe(b"> ", target[1]) as fd:
        os.write(fd, b"one\ntwo")
        copier.finish()
        copier.finish()
        assert ends.get(timeout=10) is None
    assert os.read(target[0], 100) == b"> one\n> two\n"


def test_a_target_that_is_gone_is_told(target: tuple[int, int]) -> None:
    """As in `… | head`; and who still writes gets an error instead of waiting."""
    ends: Ends = queue.SimpleQueue()
    copier = LineCopier(ends.put)
    os.close(target[0])
    with copier.pipe(b"", target[1]) as fd:
        os.write(fd, b"line\n")
        assert isinstance(ends.get(timeout=10), BrokenPipeError)
        with pytest.raises(BrokenPipeError):
            os.write(fd, b"line\n")
    copier.finish()

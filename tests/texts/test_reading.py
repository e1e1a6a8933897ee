"""Files of texts, whole and broken."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.errors import TextError
from pinstripe.texts import LINE_LIMIT_BYTES, BadLine, TextFile, TextLine, read_texts


def _lines(path: Path, content: bytes, field: str = "text") -> list[TextLine | BadLine]:
    path.write_bytes(content)
    source = TextFile(path, field=field)
    with source.open() as file:
        return list(source.lines(file))


@pytest.mark.parametrize(
    ("line", "text", "name"),
    [
        (b'{"text": "a b"}', "a b", None),
        (b'{"text": "a", "id": 7, "kind": ["x"]}', "a", 7),
        (b'{"id": "n-1", "text": "a"}', "a", "n-1"),
        (b'{"text": "q", "text_pair": "p"}', ("q", "p"), None),
        (b'{"text": "a\\u0000b"}', "a\0b", None),
        (b'{"text": "\\ud83d\\ude00"}', "\N{GRINNING FACE}", None),
        ('{"text": "größe"}'.encode(), "größe", None),
    ],
)
def test_json_lines(tmp_path: Path, line: bytes, text: object, name: object) -> None:
    """What stands in the fields is taken as it is; other fields do not matter."""
    assert _lines(tmp_path / "a.jsonl", line + b"\n") == [TextLine(1, len(line) + 1, text, name)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{bad", "not valid JSON"),
        (b'{"text": "a"', "not valid JSON"),
        (b'{"txt": "a"}', "missing required field `text`"),
        (b'{"text": 5}', "Expected `str`, got `int`"),
        (b'{"text": null}', "Expected `str`, got `null`"),
        (b'["a"]', "Expected `object`, got `array`"),
        (b'{"text": ""}', "its text is empty"),
        (b'{"text": " \\n "}', "its text is empty"),
        (b'{"text": "a", "text_pair": ""}', "its text is empty"),
        (b'{"text": "a", "id": 1.5}', "at `$.id`"),
        (b'{"text": "a", "id": 123456789012345678901234567890}', "at `$.id`"),
        (b"", "it is empty"),
        (b'{"text": "\\ud800"}', "half of a surrogate pair"),
        (b'{"text": "\\udc00 and more"}', "half of a surrogate pair"),
        (b'{"text": "\\ud800\\u0041"}', "half of a surrogate pair"),
        (b'{"text": "\xff"}', "UTF-8"),
        (b"\0\0\0\0", "not valid JSON"),
    ],
)
def test_bad_json_lines_are_named_and_cost_only_themselves(tmp_path: Path, line: bytes, reason: str) -> None:
    """The lines around a bad one are read, with their own numbers."""
    before, bad, after = _lines(tmp_path / "a.jsonl", b'{"text": "a"}\n' + line + b'\n{"text": "z"}\n')

    assert isinstance(before, TextLine)
    assert isinstance(bad, BadLine)
    assert isinstance(after, TextLine)
    assert (before.number, bad.number, after.number, after.text) == (1, 2, 3, "z")
    assert reason in bad.reason
    assert "\n" not in bad.reason


def test_another_field(tmp_path: Path) -> None:
    """The field that holds the text can be named."""
    [line] = _lines(tmp_path / "a.ndjson", b'{"text": 1, "body": "b"}\n', field="body")
    assert isinstance(line, TextLine)
    assert line.text == "b"


@pytest.mark.parametrize("field", ["", "id", "text_pair", 'a"b', "a\\b", "a\nb"])
def test_names_that_no_field_can_have(tmp_path: Path, field: str) -> None:
    """A name that means something else, or that JSON writes in another way, is refused at once."""
    with pytest.raises(TextError, match="cannot be"):
        TextFile(tmp_path / "a.jsonl", field=field)


def test_plain_lines(tmp_path: Path) -> None:
    """Without a suffix that says JSON, a line is a text: byte order mark and line ends of any system are dropped."""
    lines = _lines(tmp_path / "a.txt", b'\xef\xbb\xbfone\r\n{"text": "x"}\n\xff\n\nlast')

    assert [(line.number, getattr(line, "text", None)) for line in lines] == [
        (1, "one"),
        (2, '{"text": "x"}'),
        (3, None),
        (4, None),
        (5, "last"),
    ]


def test_a_long_line_is_read_and_a_longer_one_skipped(tmp_path: Path) -> None:
    """10 MB in a line are a text; what no model could take is not even held in memory, and the next line is found."""
    long, longer = b"x" * 10_000_000, b"y" * (2 * LINE_LIMIT_BYTES + 5)
    first, second, third = _lines(tmp_path / "a.txt", long + b"\n" + longer + b"\nend\n")

    assert isinstance(first, TextLine)
    assert len(first.text) == 10_000_000
    assert isinstance(second, BadLine)
    assert "longer than 16 MiB" in second.reason
    assert isinstance(third, TextLine)
    assert (third.number, third.text) == (3, "end")
    assert third.end == len(long) + 1 + len(longer) + 1 + 4


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=8), st.integers(0, 7))
def test_reading_goes_on_from_any_line(tmp_path_factory: pytest.TempPathFactory, texts: list[str], stop: int) -> None:
    """From where a line ends, the rest is read as it is from the begin."""
    path = tmp_path_factory.mktemp("texts") / "a.jsonl"
    everything = _lines(path, b"".join(json.dumps({"text": text}).encode() + b"\n" for text in texts))
    stop = min(stop, len(everything))
    source = TextFile(path)

    with source.open() as file:
        file.seek(everything[stop - 1].end if stop else 0)
        assert list(source.lines(file, number=stop + 1)) == everything[stop:]


def test_all_texts_and_the_digest_that_sha256sum_prints(tmp_path: Path) -> None:
    """A file is known by what is in it."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "a"}\n{"text": "b"}')
    expected = subprocess.run(["/usr/bin/sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[
        0
    ]

    assert read_texts(path) == (["a", "b"], expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "holds no text"), (b'{"text": "a"}\n{"text": 1}\n', "line 2 of .* is bad: Expected `str`, got `int`")],
)
def test_files_that_cannot_be_taken_whole(tmp_path: Path, content: bytes, message: str) -> None:
    """Nothing is left out unseen where every text counts."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(TextError, match=message):
        read_texts(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    """A missing file, a directory and a pipe are refused at once, with their names."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path, reason in [
        (tmp_path / "absent.jsonl", "No such file"),
        (tmp_path, "no regular file"),
        (tmp_path / "pipe.jsonl", "no regular file"),
    ]:
        with pytest.raises(TextError, match=f"{path}.*{reason}"):
            read_texts(path)

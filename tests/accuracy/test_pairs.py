"""Files of rated pairs."""

from hashlib import sha256
from pathlib import Path

import pytest

from pinstripe.accuracy import ScoredPair, read_pairs
from pinstripe.errors import TextError


def test_what_is_in_a_file(tmp_path: Path) -> None:
    """A byte order mark, carriage returns, quotation marks and a missing last line end do no harm."""
    content = b'\xef\xbb\xbf5.0\ta "b"\tgr\xc3\xb6\xc3\x9fer\r\n-1e1\tx\ty'
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)

    pairs, digest = read_pairs(path)

    assert pairs == [ScoredPair(5.0, ('a "b"', "größer")), ScoredPair(-10.0, ("x", "y"))]
    assert digest == sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"score\tsentence1\tsentence2", "its score 'score' is no finite number"),
        (b"nan\ta\tb", "its score 'nan' is no finite number"),
        (b"inf\ta\tb", "its score 'inf' is no finite number"),
        (b"1\ta", "it has 2 fields"),
        (b"1\ta\tb\tc", "it has 4 fields"),
        (b"1,a,b", "it has 1 fields"),
        (b"", "it has 1 fields"),
        (b"1\ta\t ", "one of its texts is empty"),
        (b"1\ta\t\xff", "it is not UTF-8 at byte 4"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, reason: str) -> None:
    """The message has its number and what is wrong with it."""
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"1\ta\tb\n" + line + b"\n2\ta\tb\n")

    with pytest.raises(TextError, match=r"line 2 of .*pairs\.tsv is bad") as caught:
        read_pairs(path)

    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_pairs(tmp_path: Path) -> None:
    """An empty file and a missing one are said to be so."""
    (tmp_path / "empty.tsv").touch()

    with pytest.raises(TextError, match=r"empty\.tsv is empty"):
        read_pairs(tmp_path / "empty.tsv")
    with pytest.raises(TextError, match=r"cannot read .*none\.tsv: No such file"):
        read_pairs(tmp_path / "none.tsv")

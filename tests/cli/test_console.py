"""What commands print on terminals of all kinds, of data of all kinds."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from pinstripe.cli.console import can_show, standard_error, standard_output
from pinstripe.testing.machines import container_2cpu
from pinstripe.testing.trees import write_tree

Run = Callable[..., "subprocess.CompletedProcess[str]"]

GOLDEN = Path(__file__).parents[1] / "bench" / "golden" / "format-1.jsonl"
MAIN = (sys.executable, "-c", "from pinstripe.cli import main; main()")
POOR = [
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]
ODD_NAME = "[bold]x[/] :smile: [/nothing] [link=a]"


def run(*words: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    """Run pinstripe with some variables; outputs are bytes."""
    environment = {**os.environ, **variables}
    return subprocess.run([*MAIN, *words], env=environment, capture_output=True, timeout=100, check=False)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Records of a model with a name of markup and letters, with enough values for a bound."""
    record = json.loads(GOLDEN.read_text())
    record["network"]["name"] = f"{ODD_NAME} \u043c\u043e\u0434\u0435\u043b\u044c"
    record["configuration"]["options"]["[red]"] = "[/]"
    record["measurement"]["latency_ns"] *= 50
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record) + "\n")
    return path


@pytest.mark.parametrize("variables", POOR)
def test_poor_terminals(records: Path, variables: dict[str, str]) -> None:
    """Where signs are missing a table has ASCII in their place, and a name's letters are escaped."""
    shown = run("report", str(records), **variables)

    assert (shown.returncode, shown.stderr) == (0, b"")
    assert b"p99 ms (<=95 %)" in shown.stdout
    assert b"\\u043c\\u043e" in shown.stdout
    assert shown.stdout.isascii()


@pytest.mark.parametrize("variables", [*POOR, {"PYTHONIOENCODING": "utf-8"}])
def test_json_is_utf_8_everywhere(records: Path, variables: dict[str, str]) -> None:
    """A program reads the same whatever the locale."""
    shown = run("report", "--json", str(records), **variables)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout.decode("utf-8"))["trials"][0]["model"].endswith(
        "\u043c\u043e\u0434\u0435\u043b\u044c"
    )


@pytest.mark.parametrize("variables", [*POOR, {"PYTHONIOENCODING": "utf-8"}])
def test_doctor_on_all_terminals(tmp_path: Path, variables: dict[str, str]) -> None:
    """The map is of squares where there are some, and of letters elsewhere."""
    write_tree(container_2cpu(), tmp_path / "copy")
    shown = run("doctor", "--root", str(tmp_path / "copy"), **variables)
    assert shown.returncode == 0, shown.stderr
    assert ("\u25a0\u25a0 \u25a0\u25a0".encode() in shown.stdout) is (variables == {"PYTHONIOENCODING": "utf-8"})
    assert (b"## ##" in shown.stdout) is (variables != {"PYTHONIOENCODING": "utf-8"})


def test_data_is_no_markup(pinstripe: Run, records: Path, tmp_path: Path) -> None:
    """Brackets and colons in names and paths are shown as they are; the next command can be pasted into a shell."""
    table = pinstripe("report", str(records))
    assert f"{ODD_NAME} " in table.stdout
    assert "[red]=[/]" in table.stdout

    directory = tmp_path / "a [bold]x" / "it's [b]"
    write_tree(replace(container_2cpu(), model_name=ODD_NAME), directory)
    shown = pinstripe("doctor", "--root", str(directory))
    assert shown.returncode == 0, shown.stderr
    assert f"CPU     {ODD_NAME}" in shown.stdout
    command = shown.stdout.splitlines()[-1].strip()
    words = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\n' {command}"], capture_output=True, text=True, check=True
    ).stdout
    assert words.splitlines() == ["pinstripe", "place", "--root", str(directory)]


@pytest.mark.parametrize("columns", ["0", "1", "5"])
def test_no_width_is_80_columns(tmp_path: Path, columns: str) -> None:
    """Some terminals and services say that they have no columns."""
    write_tree(container_2cpu(), tmp_path / "copy")
    words = ("doctor", "--root", str(tmp_path / "copy"))
    assert run(*words, COLUMNS=columns).stdout == run(*words, COLUMNS="80").stdout != b""


def test_width_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow window is one; both streams are alike."""
    for columns, width in (("19", 80), ("20", 20), ("33", 33), ("200", 200)):
        monkeypatch.setenv("COLUMNS", columns)
        assert (standard_output().width, standard_error().width) == (width, width)
    assert standard_output(width=160).width == 160


def test_signs() -> None:
    """Latin-1 has a cross, and neither squares nor `less or equal`; no encoding at all is taken for UTF-8."""
    assert can_show("\u00d7", "latin-1")
    assert not can_show("\u00d7\u2264", "latin-1")
    assert can_show("\u2264", None)
    assert not can_show("\udcff", "utf-8")


def test_a_stream_of_the_interpreters_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output may be closed, or replaced by anything that can be written to."""
    for stream in (None, io.StringIO()):
        monkeypatch.setattr(sys, "stdout", stream)
        standard_output().print("words")
    assert isinstance(stream, io.StringIO)
    assert stream.getvalue() == "words\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [["doctor"], ["launch", "--", "echo", "words"], ["place"], ["place", "--json"]])
def test_closed_streams(tmp_path: Path, words: list[str], closed: str) -> None:
    """Whoever has closed a stream gets no traceback on the other, and the program runs."""
    command = ["sh", "-c", f'"$0" "$@" {closed}', *MAIN, *words]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)

    assert "Traceback" not in finished.stdout + finished.stderr
    assert finished.returncode == 0, finished.stderr

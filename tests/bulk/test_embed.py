"""`pinstripe embed`: every line of a file, once, in order, whatever happens."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pinstripe.testing.tiny_model import make_tiny_model

Embed = Callable[..., "subprocess.CompletedProcess[str]"]
Plan = Callable[..., Path]
WriteTexts = Callable[[Sequence[Any]], Path]

TEXTS = ["first", "a much longer text, which has to run earlier", "x", "two words", "first", "größe", "y " * 90]


def _texts(count: int) -> list[str]:
    return [f"{number:x} {'ab ' * (number * 7919 % 23)}" for number in range(count)]


def test_formats_hold_the_same_rows(
    embed: Embed, plan: Plan, write_texts: WriteTexts, expected: Callable[..., Any], tmp_path: Path
) -> None:
    """Each format has a row for each line, in the order of the input, with the vector of that very text."""
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = write_texts([*TEXTS[:6], {"id": "last", "text": TEXTS[6]}])
    for name in ("out.npy", "out.jsonl", "out.parquet"):
        result = embed(plan(), texts, "-o", name)
        assert result.returncode == 0, result.stderr
    vectors = expected(TEXTS)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    table = parquet.read_table(tmp_path / "out.parquet").to_pydict()

    assert np.array_equal(np.load(tmp_path / "out.npy"), vectors)
    assert [(row["line"], row.get("id")) for row in rows] == [(1 + i, "last" if i == 6 else None) for i in range(7)]
    assert np.array_equal(np.array([row["embedding"] for row in rows], np.float32), vectors)
    assert (table["line"], table["id"]) == (list(range(1, 8)), [None] * 6 + ["last"])
    assert np.array_equal(np.array(table["embedding"], np.float32), vectors)
    assert not list(tmp_path.glob("*.partial"))


def test_killed_and_started_again(
    command: Callable[..., list[str]], embed: Embed, plan: Plan, write_texts: WriteTexts, tmp_path: Path
) -> None:
    """After kill -9 at any moment the same command goes on; in the end the file is that of an undisturbed run."""
    texts = write_texts(_texts(20_000))
    slow = plan(fixed_us=5_000)
    journal = tmp_path / "out.npy.partial" / "journal.jsonl"
    chance = random.Random(0)  # noqa: S311 - moments to kill at
    for _ in range(5):
        before = journal.stat().st_size if journal.exists() else 0
        process = subprocess.Popen(
            command(slow, texts, "-o", "out.npy"), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not (journal.exists() and journal.stat().st_size > before):
            assert process.poll() is None
            time.sleep(0.01)
        time.sleep(0.15 * chance.random())
        process.kill()
        process.wait()
    result = embed(slow, texts, "-o", "out.npy", "--json")
    whole = embed(slow, texts, "-o", "whole.npy")

    assert (result.returncode, whole.returncode) == (0, 0), result.stderr
    summary = json.loads(result.stdout)
    assert summary["texts"] == 20_000
    assert summary["resumed"] >= 5 * 2048
    assert np.array_equal(np.load(tmp_path / "out.npy"), np.load(tmp_path / "whole.npy"))


def test_ctrl_c_says_what_is_kept(
    command: Callable[..., list[str]], plan: Plan, write_texts: WriteTexts, tmp_path: Path
) -> None:
    """An interrupted run ends in order with 130, names the rows that are done, and leaves no worker."""
    texts = write_texts(_texts(20_000))
    process = subprocess.Popen(
        command(plan(fixed_us=30_000), texts, "-o", "out.jsonl"), cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    journal = tmp_path / "out.jsonl.partial" / "journal.jsonl"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "texts are kept in out.jsonl.partial; the same command goes on with them" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out.jsonl").exists()


def test_groups_of_instances(embed: Embed, tiny: Path, write_texts: WriteTexts, tmp_path: Path) -> None:
    """Instances for short and for long texts leave the same rows in the same order, over several chunks."""
    texts = write_texts(_texts(5_000))
    common = (tiny, texts, "--engine", "fake", "--json")
    alike = embed(*common, "-o", "alike.npy", "--instances", "2", "--cores", "1")
    groups = embed(*common, "-o", "groups.npy", "--groups", "<=16: 1x1, rest: 1x1")

    assert (alike.returncode, groups.returncode) == (0, 0), groups.stderr
    assert "runs as fake ≤16:1x1 rest:1x1" in groups.stderr
    assert json.loads(groups.stdout)["instances"] == 2
    assert np.array_equal(np.load(tmp_path / "groups.npy"), np.load(tmp_path / "alike.npy"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--groups", "<=16: 1x1, 32-64: 1x1, rest: 1x1"), "--groups: lengths 17 to 31 belong to no group"),
        (("--groups", "<=16: 1x1, rest: 1x4096"), "(4097 cores in all): there"),
        (("--groups", "rest: 1x1", "--instances", "2"), "groups say how many instances there are"),
    ],
)
def test_groups_that_cannot_be(
    embed: Embed, tiny: Path, write_texts: WriteTexts, words: tuple[str, ...], said: str
) -> None:
    """Gaps, more cores than there are, and numbers beside groups: one line, and nothing is begun."""
    result = embed(tiny, write_texts(TEXTS), "-o", "out.npy", "--engine", "fake", *words)

    assert result.returncode == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_plan_says_the_groups(embed: Embed, plan: Plan, write_texts: WriteTexts) -> None:
    """Groups beside a plan are refused, as all is that it says."""
    result = embed(plan(), write_texts(TEXTS), "-o", "out.npy", "--groups", "rest: 1x1")

    assert result.returncode == 2
    assert "is a plan and says how the model runs" in result.stderr


BAD = ["good", b"{bad", {"txt": 1}, "", "also good", b'{"text": "\\ud800"}', {"text": "q", "text_pair": "p"}, "end"]


def test_bad_lines_are_refused_before_anything_runs(embed: Embed, plan: Plan, write_texts: WriteTexts) -> None:
    """The message names the first of them, on one line; nothing is left behind."""
    result = embed(plan(), write_texts(BAD), "-o", "out.npy")

    assert result.returncode == 2
    assert "has 5 bad lines (line 2: it is not valid JSON" in result.stderr
    assert "line 3: Object missing required field `text`" in result.stderr
    assert "and 2 more); mend them, or use --bad-lines skip" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_bad_lines_are_skipped_by_name(
    embed: Embed, plan: Plan, write_texts: WriteTexts, expected: Callable[..., Any], tmp_path: Path
) -> None:
    """What is skipped is listed with its reason; the rows that are left say which line they are of."""
    result = embed(plan(), write_texts(BAD), "-o", "out.jsonl", "--bad-lines", "skip", "--json")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    skipped = [json.loads(line) for line in (tmp_path / "out.jsonl.skipped.jsonl").read_text().splitlines()]

    assert result.returncode == 0, result.stderr
    assert [row["line"] for row in rows] == [1, 5, 8]
    assert np.array_equal(
        np.array([row["embedding"] for row in rows], np.float32), expected(["good", "also good", "end"])
    )
    assert [line["line"] for line in skipped] == [2, 3, 4, 6, 7]
    assert "pair" in skipped[4]["reason"]
    assert json.loads(result.stdout)["skipped"] == skipped


def test_a_pair_for_a_model_of_single_texts_is_named(embed: Embed, plan: Plan, write_texts: WriteTexts) -> None:
    """What only the model can tell is said with the line, too."""
    result = embed(plan(), write_texts(["a", {"text": "q", "text_pair": "p"}]), "-o", "out.npy")

    assert result.returncode == 2
    assert "1 bad line (line 2: it is a pair; embedding takes single texts)" in result.stderr


@pytest.mark.parametrize("name", ["out.csv", "absent/out.npy", "."])
def test_outputs_that_cannot_be(embed: Embed, plan: Plan, write_texts: WriteTexts, name: str) -> None:
    """A format that is unknown, a directory that is absent, a directory in the output's place."""
    result = embed(plan(), write_texts(["a"]), "-o", name)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1


def test_an_output_that_exists_is_kept(embed: Embed, plan: Plan, write_texts: WriteTexts, tmp_path: Path) -> None:
    """It is replaced with --force only, and only by a whole one."""
    (tmp_path / "out.npy").write_text("precious")
    texts = write_texts(["a", "b"])
    refused = embed(plan(), texts, "-o", "out.npy")
    kept = (tmp_path / "out.npy").read_text()
    forced = embed(plan(), texts, "-o", "out.npy", "--force")

    assert (refused.returncode, kept) == (2, "precious")
    assert "exists; name another file, or replace it with --force" in refused.stderr
    assert forced.returncode == 0
    assert np.load(tmp_path / "out.npy").shape == (2, 32)


@pytest.fixture
def interrupted(
    command: Callable[..., list[str]], plan: Plan, write_texts: WriteTexts, tmp_path: Path
) -> tuple[Path, Path]:
    """Unfinished work: two chunks are done, the engine crashed over a later one. Return the plan and the texts."""
    texts = write_texts(_texts(8_000))
    slow = plan(fixed_us=10_000)
    process = subprocess.Popen(
        command(slow, texts, "-o", "out.jsonl"), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    journal = tmp_path / "out.jsonl.partial" / "journal.jsonl"
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    return slow, texts


def test_changes_between_start_and_resume_are_refused(
    embed: Embed, interrupted: tuple[Path, Path], tiny: Path, plan: Plan, tmp_path: Path
) -> None:
    """Rows of two models, two prompts or two inputs never end up in one file; --force starts over."""
    slow, texts = interrupted
    content = texts.read_bytes()

    vocabulary = (tiny / "vocab.txt").read_text()
    (tiny / "vocab.txt").write_text(vocabulary.replace("\na\nb\n", "\nb\na\n"))
    assert "the model's tokenizer was another one or has changed" in embed(slow, texts, "-o", "out.jsonl").stderr
    make_tiny_model(tiny, seed=1)
    assert "the model was another one or has changed" in embed(slow, texts, "-o", "out.jsonl").stderr
    make_tiny_model(tiny)
    assert "field was 'text' and is 'body' now" in embed(slow, texts, "-o", "out.jsonl", "--field", "body").stderr or (
        "missing required field" in embed(slow, texts, "-o", "out.jsonl", "--field", "body").stderr
    )
    texts.write_bytes(content.replace(b'"0 ', b'"Z ', 1))
    changed = embed(slow, texts, "-o", "out.jsonl")
    assert changed.returncode == 2
    assert "has changed before line" in changed.stderr
    texts.write_bytes(content)
    (tmp_path / "out.jsonl.partial" / "rows.jsonl").write_bytes(b"")
    assert "rows are missing" in embed(slow, texts, "-o", "out.jsonl").stderr

    forced = embed(plan(), texts, "-o", "out.jsonl", "--force", "--json")
    assert forced.returncode == 0, forced.stderr
    assert json.loads(forced.stdout)["resumed"] == 0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 8_000


def test_a_longer_input_goes_on(embed: Embed, interrupted: tuple[Path, Path], tmp_path: Path) -> None:
    """Lines that were added behind what is done belong to the rest; a torn line of the journal costs its chunk only."""
    slow, texts = interrupted
    with texts.open("ab") as file:
        file.write(b'{"text": "one more"}\n')
    with (tmp_path / "out.jsonl.partial" / "journal.jsonl").open("ab") as file:
        file.write(b'{"line": 61')
    result = embed(slow, texts, "-o", "out.jsonl", "--json")

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["resumed"] >= 4096
    rows = [json.loads(line)["line"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert rows == list(range(1, 8_002))


def test_two_runs_for_one_output(
    command: Callable[..., list[str]], embed: Embed, plan: Plan, write_texts: WriteTexts, tmp_path: Path
) -> None:
    """The second one is turned away and disturbs nothing."""
    texts = write_texts(_texts(8_000))
    slow = plan(fixed_us=100_000)
    with subprocess.Popen(command(slow, texts, "-o", "out.npy"), cwd=tmp_path, stderr=subprocess.DEVNULL) as first:
        while not (tmp_path / "out.npy.partial" / "manifest.json").exists():
            time.sleep(0.02)
        second = embed(slow, texts, "-o", "out.npy")
        going_on = first.poll() is None
        first.kill()

    assert second.returncode == 1
    assert "another run is writing out.npy" in second.stderr
    assert going_on


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system can be mounted by root only")
def test_full_disk(embed: Embed, plan: Plan, write_texts: WriteTexts, tmp_path: Path) -> None:
    """What is written is kept, the message says so, and with room the same command goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=700k", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        texts = write_texts(_texts(8_000))  # 8,000 x 32 x 4 bytes = 1 MB
        full = embed(plan(), texts, "-o", disk / "out.npy")
        subprocess.run(["/bin/mount", "-o", "remount,size=4m", disk], check=True)
        again = embed(plan(), texts, "-o", disk / "out.npy", "--json")

        assert full.returncode == 1
        assert "No space left on device; what is done is kept" in full.stderr
        assert "Traceback" not in full.stderr
        assert again.returncode == 0, again.stderr
        assert json.loads(again.stdout)["resumed"] >= 2048
        assert np.load(disk / "out.npy").shape == (8_000, 32)
    finally:
        subprocess.run(["/bin/umount", disk], check=True)


def test_other_tasks(embed: Embed, write_texts: WriteTexts, tmp_path: Path) -> None:
    """A classifier's labels, a reranker's scores: as objects, as columns, as an array."""
    parquet = pytest.importorskip("pyarrow.parquet")
    classifier = make_tiny_model(
        tmp_path / "classifier", architecture="BertForSequenceClassification", id2label={"0": "bad", "1": "good"}
    )
    tagger = make_tiny_model(
        tmp_path / "tagger", architecture="BertForTokenClassification", id2label={"0": "O", "1": "B-X", "2": "I-X"}
    )
    texts = write_texts(["one", "two words"])
    for model, name in [
        (classifier, "c.jsonl"),
        (classifier, "c.npy"),
        (classifier, "c.parquet"),
        (tagger, "t.parquet"),
    ]:
        result = embed(model, texts, "-o", name, "--engine", "fake", "--instances", 1)
        assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    scores = np.load(tmp_path / "c.npy")
    column = parquet.read_table(tmp_path / "c.parquet")["result"].to_pylist()
    tokens = parquet.read_table(tmp_path / "t.parquet")["result"].to_pylist()[0]["tokens"]

    assert [row["result"]["label"] for row in rows] == [("bad", "good")[index] for index in scores.argmax(axis=1)]
    assert [row["label"] for row in column] == [row["result"]["label"] for row in rows]
    assert "".join(token["text"] for token in tokens) == "one"
    refused = embed(tagger, texts, "-o", "t.npy", "--engine", "fake", "--instances", 1)
    assert refused.returncode == 2
    assert "no fixed width" in refused.stderr


def test_only_files_of_its_own_are_removed(embed: Embed, plan: Plan, write_texts: WriteTexts, tmp_path: Path) -> None:
    """Whatever else has the names that are needed is refused by name, and left alone."""
    texts = write_texts(["a", b"{bad"])
    foreign = tmp_path / "a.npy.partial" / "mine.txt"
    foreign.parent.mkdir()
    foreign.write_text("precious")
    (tmp_path / "b.npy.partial").write_text("precious")
    (tmp_path / "c.npy.skipped.jsonl").write_text("precious")
    for name, said in [
        ("a.npy", "holds mine.txt; move it away"),
        ("b.npy", "is something else; move it away"),
        ("c.npy", "c.npy.skipped.jsonl exists"),
        (texts.name, "would replace the texts that are read"),
    ]:
        words = ["--force"] if name == texts.name else []
        result = embed(plan(), texts, "-o", name, "--bad-lines", "skip", *words)
        assert (result.returncode, said in result.stderr) == (2, True), result.stderr
    unharmed = embed(plan(), write_texts(["a"]), "-o", "c.npy")

    assert unharmed.returncode == 0, unharmed.stderr
    assert foreign.read_text() == "precious"
    assert (tmp_path / "b.npy.partial").read_text() == "precious"
    assert (tmp_path / "c.npy.skipped.jsonl").read_text() == "precious"


def test_nothing_done_is_no_obstacle(embed: Embed, plan: Plan, write_texts: WriteTexts) -> None:
    """A command that failed before its first row can be corrected and run again."""
    texts = write_texts(["a"])
    wrong = embed(plan(), texts, "-o", "out.npy", "--prompt", "nope")
    right = embed(plan(), texts, "-o", "out.npy")

    assert "no prompt 'nope'" in wrong.stderr
    assert (wrong.returncode, right.returncode) == (2, 0), right.stderr


def test_only_bad_lines(embed: Embed, plan: Plan, write_texts: WriteTexts) -> None:
    """Lines that are bad for the model's task alone count as well."""
    texts = write_texts([{"text": "q", "text_pair": "p"}] * 3)
    result = embed(plan(), texts, "-o", "out.npy", "--bad-lines", "skip")

    assert result.returncode == 2
    assert "holds no text" in result.stderr


@pytest.mark.slow
def test_a_million_texts_in_bounded_memory(plan: Plan, tmp_path: Path) -> None:
    """Ten times as many texts take no more memory; both are far below the size of the results."""
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from pinstripe.cli import main\n"
        "try:\n    main()\nfinally:\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    print(next(line.split()[1] for line in lines if line.startswith('VmHWM')), file=sys.stderr)\n"
    )
    peaks_kb = []
    for count in (100_000, 1_000_000):
        texts = tmp_path / f"{count}.txt"
        texts.write_text("".join(f"text {number}\n" for number in range(count)))
        words = ["embed", str(plan()), str(texts), "-o", str(tmp_path / f"{count}.npy")]
        result = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        peaks_kb.append(int(result.stderr.splitlines()[-1]))
        assert np.load(tmp_path / f"{count}.npy", mmap_mode="r").shape == (count, 32)

    assert peaks_kb[1] < peaks_kb[0] * 1.2

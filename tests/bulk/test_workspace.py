"""Unfinished work: what is kept, what is gone on with, what is refused."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from pinstripe.bulk import BulkJob, rows_kept, survey_texts, workspace_path
from pinstripe.bulk.chunk import read_chunks
from pinstripe.bulk.journal import Checkpoint, Journal
from pinstripe.bulk.manifest import Manifest, make_manifest
from pinstripe.bulk.rows import Rows
from pinstripe.bulk.workspace import Workspace
from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact
from pinstripe.errors import OutputError, TextError, UsageError
from pinstripe.testing.fake_engine import fake_network

WriteTexts = Callable[[Sequence[Any]], Path]
NOTHING = Artefact(format="none", path="", origin="model")


def _manifest(job: BulkJob, *, task: str = "embedding", artefact: Artefact = NOTHING) -> Manifest:
    return make_manifest(job, fake_network(task=task), Configuration(engine="fake"), artefact)


def _rows(count: int, width: int = 2) -> Rows:
    vectors = np.arange(count * width, dtype=np.float32).reshape(count, width)
    return Rows(list(range(1, count + 1)), [None] * count, vectors, [])


@pytest.fixture
def job(tmp_path: Path, write_texts: WriteTexts) -> BulkJob:
    """Three texts to an array."""
    return BulkJob(source=write_texts(["a", "b", "c"]), output=tmp_path / "out.npy")


def test_an_output_that_appears_meanwhile_is_kept(job: BulkJob) -> None:
    """Somebody else's file is not replaced; when it is out of the way, the same work is finished."""
    workspace = Workspace(job, _manifest(job))
    workspace.append(_rows(3), Checkpoint())
    job.output.write_text("precious")
    with pytest.raises(OutputError, match="was made by somebody meanwhile"):
        workspace.finish()
    workspace.close()
    assert job.output.read_text() == "precious"
    job.output.unlink()

    again = Workspace(job, _manifest(job))
    again.finish()
    again.close()
    assert np.load(job.output).shape == (3, 2)


def test_a_reranker_is_finished_twice(job: BulkJob) -> None:
    """An end between the last write and the move is no harm, for an array with one axis neither."""
    manifest = _manifest(job, task="reranking")
    workspace = Workspace(job, manifest)
    workspace.append(_rows(3, width=1), Checkpoint())
    workspace._sink.finish()
    workspace.close()

    again = Workspace(job, manifest)
    again.finish()
    again.close()
    assert np.load(job.output).tolist() == [0, 1, 2]


def test_files_of_others_stay_where_they_are(job: BulkJob) -> None:
    """What somebody has put into the directory of unfinished work survives its end."""
    workspace = Workspace(job, _manifest(job))
    workspace.append(_rows(3), Checkpoint())
    note = job.output.with_name("out.npy.partial") / "note.txt"
    note.write_text("mine")
    workspace.finish()
    workspace.close()

    assert note.read_text() == "mine"
    assert [path.name for path in note.parent.iterdir()] == ["note.txt"]


def test_refusing_bad_lines_may_become_skipping_them(job: BulkJob) -> None:
    """The way out that the message names is open."""
    workspace = Workspace(job, _manifest(job))
    workspace.append(_rows(1), Checkpoint())
    workspace.close()
    skipping = BulkJob(source=job.source, output=job.output, bad_lines="skip")

    again = Workspace(skipping, _manifest(skipping))
    again.close()
    assert again.checkpoint.rows == 1


def test_another_graph_is_another_model(job: BulkJob, tmp_path: Path) -> None:
    """A graph that came with the model counts with all its bytes, those of the weights beside it included."""
    graph, weights = tmp_path / "model.onnx", tmp_path / "model.onnx.data"
    artefact = Artefact(format="onnx", path=str(graph), origin="model")
    graph.write_bytes(b"graph")
    weights.write_bytes(b"one")
    workspace = Workspace(job, _manifest(job, artefact=artefact))
    workspace.append(_rows(1), Checkpoint())
    workspace.close()
    weights.write_bytes(b"two")

    with pytest.raises(UsageError, match="graph was"):
        Workspace(job, _manifest(job, artefact=artefact))


def test_what_differs_is_named(job: BulkJob) -> None:
    """An override is not called another model, and another model not an override."""
    mine = _manifest(job)
    network = mine.model
    cases = {
        "the model's max tokens was 64 and is 512 now": replace(network, max_tokens=64),
        "the model was another one or has changed (other then, fake now)": replace(network, fingerprint="other"),
        "the model's tokenizer was another one": replace(network, tokenizer_fingerprint="other", max_tokens=64),
    }
    for said, theirs in cases.items():
        assert said in (mine.difference(replace(mine, model=theirs)) or "")
    assert mine.difference(mine) is None


@pytest.mark.parametrize("end", [b"", b"{", b'{"line": 9}'])
def test_a_journal_that_was_cut_off(tmp_path: Path, end: bytes) -> None:
    """Only whole lines count, and what is added later does not stick to a part of one."""
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.append(Checkpoint(line=5, rows=4))
    journal.close()
    with path.open("ab") as file:
        file.write(end)
    journal = Journal(path)
    assert journal.last.line == 5
    journal.append(Checkpoint(line=7, rows=6))
    journal.close()

    assert Journal.read(path).line == 7


def test_a_last_line_that_has_grown_is_a_change(tmp_path: Path) -> None:
    """Its text was done when it was shorter; more lines behind a whole one are no change."""
    source = tmp_path / "texts.txt"
    source.write_text("a\nb")
    job = BulkJob(source=source, output=tmp_path / "out.npy")
    [chunk] = read_chunks(job, "embedding", 1, Checkpoint(), 3)
    workspace = Workspace(job, _manifest(job))
    workspace.append(_rows(2), chunk.checkpoint)
    workspace.close()
    source.write_text("a\nb and more\n")
    with pytest.raises(UsageError, match="has changed before line 3"):
        Workspace(job, _manifest(job))


@pytest.mark.parametrize("now", ["a\nb\n", "a\nb\nc and mo", "a\nb\nc and more\nd\n", ""])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, now: str) -> None:
    """Fewer lines than were surveyed, or a last line that has grown, end the work; nothing is left out unseen."""
    source = tmp_path / "texts.txt"
    source.write_text("a\nb\nc")
    job = BulkJob(source=source, output=tmp_path / "out.npy")
    size = survey_texts(job, "embedding", threading.Event()).size_bytes
    source.write_text(now)

    with pytest.raises(TextError, match="has changed while it was read"):
        list(read_chunks(job, "embedding", 1, Checkpoint(), size))


def test_lines_that_are_added_later_wait(tmp_path: Path) -> None:
    """What was not surveyed is not read."""
    source = tmp_path / "texts.txt"
    source.write_text("a\nb\n")
    job = BulkJob(source=source, output=tmp_path / "out.npy")
    size = survey_texts(job, "embedding", threading.Event()).size_bytes
    with source.open("a") as file:
        file.write("c\n")
    [chunk] = read_chunks(job, "embedding", 1, Checkpoint(), size)

    assert (chunk.texts, chunk.last) == (["a", "b"], True)


def test_a_survey_stops_when_nobody_waits(tmp_path: Path) -> None:
    """Ctrl-C does not wait for the end of a long file."""
    source = tmp_path / "texts.txt"
    source.write_text("a\n" * 1000)
    stop = threading.Event()
    stop.set()

    assert survey_texts(BulkJob(source=source, output=source), "embedding", stop).texts == 1


def test_other_knobs_are_another_job(tmp_path: Path) -> None:
    """Some knobs change how numbers are rounded, so that rows of two of them must not stand in one file."""
    job = BulkJob(source=tmp_path / "in.txt", output=tmp_path / "out.npy")
    plain, knobs = Configuration(engine="fake"), {"allocator": "glibc"}
    manifests = [make_manifest(job, fake_network(), one, NOTHING) for one in (plain, replace(plain, knobs=knobs))]

    assert manifests[1].difference(manifests[0]) == "knobs was none and is allocator=glibc now"


def test_work_without_a_row_leaves_nothing(job: BulkJob) -> None:
    """What ends before the first rows were written removes what it has made; with a row it stays."""
    partial = workspace_path(job.output)
    Workspace(job, _manifest(job)).close()
    assert not partial.exists()

    partial.mkdir()
    Workspace(job, _manifest(job)).close()
    assert partial.exists()

    begun = Workspace(job, _manifest(job))
    begun.append(_rows(1), Checkpoint())
    begun.close()
    assert rows_kept(job) == 1

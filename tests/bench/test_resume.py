"""Going on with a run: what may be pooled, and what may not."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pinstripe import __version__
from pinstripe.bench import Record, Session, check_resumable, read_records, summarize, trial_key
from pinstripe.configuration import TextSet, Workload
from pinstripe.errors import UsageError

PATH = Path("mine.jsonl")
GOLDEN = Path(__file__).parent / "golden" / "format-1.jsonl"


@pytest.fixture
def record() -> Record:
    """A record of this version."""
    return replace(read_records(GOLDEN)[0], pinstripe=__version__)


def _session(record: Record, **changes: Any) -> Session:
    shared = {name: getattr(record, name) for name in ("run", "network", "machine", "host", "limits")}
    return Session(**{**shared, **changes})


def test_equal_conditions_go_on(record: Record) -> None:
    """The same model under another name, read from another directory, is the same model."""
    moved = replace(record.network, name="other", directory="/elsewhere", revision="abc")

    check_resumable([record, replace(record, repeat=1)], _session(record, network=moved), (), PATH)
    check_resumable([], _session(record), (), PATH)


@pytest.mark.parametrize(
    ("part", "changes", "says"),
    [
        ("network", {"fingerprint": "f00"}, "the model changed since .*fingerprint 636d.*, now f00"),
        ("network", {"max_tokens": 77}, "the model changed since .*max_tokens 256, now 77"),
        ("machine", {"cpu_quota": 1.5}, "the machine changed since .*cpu_quota None, now 1.5"),
        ("machine", {"allowed": (0,)}, "the machine changed since .*allowed"),
        ("machine", {"isa": ("avx2",)}, "the machine changed since .*isa"),
        ("host", {"kernel": "7.0"}, "the software changed since .*kernel 6.18.*, now 7.0"),
        ("host", {"libraries": {"numpy": "9.9"}}, "libraries: numpy 2.4.6, now 9.9"),
        ("host", {"libraries": {}}, "libraries: numpy 2.4.6, now None"),
        ("limits", {"min_s": 0.05}, "how long is measured changed since .*min_s 0.1, now 0.05"),
    ],
)
def test_what_differs_is_refused_by_name(part: str, changes: dict[str, Any], says: str, record: Record) -> None:
    """Measurements under other conditions are never pooled; the message says what is not the same, on one line."""
    changed = replace(getattr(record, part), **changes)

    with pytest.raises(UsageError, match=says) as error:
        check_resumable([record], _session(record, **{part: changed}), (), PATH)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_another_version_is_refused(record: Record) -> None:
    """Code that measured differently may have measured something else."""
    with pytest.raises(UsageError, match=r"pinstripe changed since \(0\.0\.1, now"):
        check_resumable([replace(record, pinstripe="0.0.1")], _session(record), (), PATH)


def test_several_runs_are_refused(record: Record) -> None:
    """A file that two runs were appended to has no one run to go on with."""
    with pytest.raises(UsageError, match=r"mine\.jsonl holds 2 runs"):
        check_resumable([record, replace(record, run="other")], _session(record), (), PATH)


def _of_texts(file: str, digit: str, batch: int = 2) -> Workload:
    return Workload(scenario="offline", batch=batch, texts=TextSet(file=file, sha256=digit * 64, texts=5))


@pytest.mark.parametrize("file", ["a.jsonl", "b.jsonl"])
def test_other_texts_are_refused(file: str, record: Record) -> None:
    """Other texts are other work, under the same file's name and under another; both files are named."""
    measured = replace(record, workload=_of_texts("a.jsonl", "1"))

    with pytest.raises(
        UsageError, match=rf"the texts changed since \(5 of a\.jsonl .*1{{8}}, now 5 of {file} .*2{{8}}\)"
    ):
        check_resumable([record, measured], _session(record), [record.workload, _of_texts(file, "2")], PATH)


def test_renamed_texts_are_the_same(record: Record) -> None:
    """Where a file of texts lies may change; batches of another size are another trial, compared with the first."""
    old, new, larger = (_of_texts(name, "1", size) for name, size in (("a.jsonl", 2), ("dir/b.jsonl", 2), ("b", 4)))
    records = [replace(record, workload=one, repeat=repeat) for repeat, one in enumerate((old, new, larger))]

    check_resumable(records[:1], _session(record), [new, larger], PATH)
    assert trial_key(record.configuration, old) == trial_key(record.configuration, new)
    assert trial_key(record.configuration, old) != trial_key(record.configuration, larger)
    assert [trial.workload for trial in summarize(records)] == [old, larger]

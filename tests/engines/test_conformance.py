"""Every engine through the one conformance suite."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinstripe.engines import Artefact, LoadRequest, Precision, engine, engine_names
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import EngineConformance
from pinstripe.testing.fake_engine import fake_network

# All families are compared with transformers in test_families.py, and their heads in test_agreement.py.
_FLOAT32_MODELS = (
    "minilm",
    "bert-classification",
    "bert-fill-mask",
    "bert-question-answering",
    "bert-reranking",
    "distilbert-embedding",
    "modernbert-embedding",
    "roberta-embedding",
)
_REDUCED_MODELS = ("minilm", "bert-question-answering", "distilbert-embedding")
# It takes 15 to 60 s to compile one.
_COMPILED_MODELS = ("minilm", "distilbert-embedding")


def _models(name: str, precision: Precision) -> tuple[str, ...]:
    if name == "torch-compile":
        return _COMPILED_MODELS
    return _FLOAT32_MODELS if precision == "float32" else _REDUCED_MODELS


def _subjects() -> list[Any]:
    """Return all of engine, precision and model."""
    subjects = []
    for name in engine_names():
        if name == "fake" or name.startswith("tf-"):  # TensorFlow has an environment and tests of its own
            continue
        for precision in engine(name).precisions:
            for model in _models(name, precision):
                marks = (pytest.mark.slow, pytest.mark.timeout(600)) if name == "torch-compile" else ()
                subjects.append(pytest.param((name, precision, model), marks=marks, id=f"{name}-{precision}-{model}"))
    return subjects


class TestRealEngines(EngineConformance):
    """Engines that run a network."""

    @pytest.fixture(scope="class", autouse=True, params=_subjects())
    @classmethod
    def _subject(
        cls,
        request: pytest.FixtureRequest,
        network: Callable[[str], Network],
        artefact: Callable[[str, Network, Precision], Artefact],
        needs: Callable[[str, Precision], None],
        shared_cache: Path,
    ) -> None:
        name, precision, model = request.param
        needs(name, precision)
        subject = network(model)
        loaded = LoadRequest(
            network=subject,
            artefact=artefact(name, subject, precision),
            precision=precision,
            threads=2 if model == "minilm" else 1,
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PINSTRIPE_CACHE", str(shared_cache))
            _set_up(cls, name, loaded)


class TestFakeEngine(EngineConformance):
    """The engine that runs none."""

    @pytest.fixture(
        scope="class",
        autouse=True,
        params=[
            fake_network(),
            fake_network(task="classification", labels=tuple(map(str, range(384)))),
            fake_network(task="reranking"),
            fake_network(task="token-classification", labels=("a", "b")),
            fake_network(task="fill-mask", vocab_size=50),
            fake_network(task="question-answering"),
        ],
        ids=lambda network: network.task,
    )
    @classmethod
    def _subject(cls, request: pytest.FixtureRequest) -> None:
        nothing = Artefact(format="none", path="", origin="model")
        _set_up(cls, "fake", LoadRequest(network=request.param, artefact=nothing, threads=2))


def _set_up(suite: type[EngineConformance], name: str, load_request: LoadRequest) -> None:
    suite.engine_name = name
    suite.load_request = load_request
    suite.model = engine(name).load(load_request)

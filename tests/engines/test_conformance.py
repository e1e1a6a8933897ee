"""Every engine through the one conformance suite."""

from collections.abc import Callable

import pytest

from pinstripe.engines import Artefact, LoadRequest, engine, engine_names
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import EngineConformance
from pinstripe.testing.fake_engine import fake_network

_MODELS = (
    "minilm",
    "bert-classification",
    "bert-fill-mask",
    "bert-question-answering",
    "bert-reranking",
    "bert-token-classification",
    "distilbert-embedding",
    "roberta-embedding",
)
_REAL = [(name, model) for name in engine_names() if name != "fake" for model in _MODELS]


class TestRealEngines(EngineConformance):
    """Engines that run a network."""

    @pytest.fixture(scope="class", autouse=True, params=_REAL, ids="-".join)
    @classmethod
    def _subject(
        cls,
        request: pytest.FixtureRequest,
        network: Callable[[str], Network],
        artefact: Callable[[str, Network], Artefact],
    ) -> None:
        name, model = request.param
        subject = network(model)
        threads = 2 if model == "minilm" else 1
        _set_up(cls, name, LoadRequest(network=subject, artefact=artefact(name, subject), threads=threads))


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

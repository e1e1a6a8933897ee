"""Predicted times of batches."""

import itertools
import random
import statistics
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinstripe.dispatch.cost_model import CostModel

Sizes = Callable[[random.Random], tuple[int, int]]

MINILM = (500_000.0, 40_000.0, 20.0)
OVERHEAD = (50_000_000.0, 400_000.0, 0.0)
ATTENTION = (100_000.0, 10_000.0, 200.0)
MACHINES = pytest.mark.parametrize("true", [MINILM, OVERHEAD, ATTENTION], ids=["minilm", "overhead", "attention"])
SEEDS = pytest.mark.parametrize("seed", range(3))
PROBES = [(1, 8), (8, 8), (1, 64), (4, 32), (1, 512), (8, 512)]


def mixed(random_source: random.Random) -> tuple[int, int]:
    """Queries and documents, alone and in batches."""
    short = random_source.random() < 0.5
    return random_source.choice([1, 1, 2, 4, 8]), random_source.randint(4, 40) if short else random_source.randint(
        41, 512
    )


def batches(
    true: tuple[float, float, float],
    *,
    count: int,
    seed: int = 0,
    noise: float = 0.0,
    sizes: Sizes = mixed,
) -> Iterator[tuple[int, int, float]]:
    """Yield batches and their times on a machine with these coefficients and normal relative noise."""
    source = random.Random(seed)  # noqa: S311 - a test's own numbers
    for _ in range(count):
        texts, tokens = sizes(source)
        yield texts, tokens, time_of(true, texts, tokens) * (1 + noise * source.gauss(0, 1))


def time_of(true: tuple[float, float, float], texts: int, tokens: int) -> float:
    """Return a machine's time for a batch."""
    return true[0] + true[1] * texts * tokens + true[2] * texts * tokens**2


def learn(model: CostModel, seen: Iterator[tuple[int, int, float]], slow: Callable[[int], float] = lambda _: 1) -> None:
    """Show a model batches, each slower by a factor of its number."""
    for number, (texts, tokens, duration_ns) in enumerate(seen):
        model.observe(texts, tokens, duration_ns * slow(number))


def worst(model: CostModel, true: tuple[float, float, float], probes: list[tuple[int, int]] = PROBES) -> float:
    """Return the largest factor, at least 1, between a prediction and the truth."""
    ratios = [model.predict_ns(*probe) / time_of(true, *probe) for probe in probes]
    return max(*ratios, 1 / min(ratios))


@MACHINES
@pytest.mark.parametrize("cores", [1, 8])
def test_exact_times_give_the_coefficients(true: tuple[float, float, float], cores: int) -> None:
    """Whatever the prior, 300 batches without noise leave the machine's coefficients, and no error."""
    model = CostModel(cores)
    learn(model, batches(true, count=300))

    assert model.coefficients == pytest.approx(true, rel=0.02, abs=1.0)
    assert worst(model, true) < 1.01
    assert model.error < 0.01


@MACHINES
@SEEDS
def test_noise_averages_out(true: tuple[float, float, float], seed: int) -> None:
    """From 400 batches with 10 % noise predictions are within 7 %."""
    model = CostModel()
    learn(model, batches(true, count=400, noise=0.1, seed=seed))

    assert worst(model, true) < 1.07


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.2])
def test_error_is_the_noise(noise: float) -> None:
    """With normal noise the error is its standard deviation: each time within a factor of 2, on average within 12 %.

    The median of 47 absolute values has a standard error of 17 % of itself (0.787 / 0.6745 / sqrt(47), the asymptotic
    variance of a median), the mean of 28 of them 3 %.
    """
    model = CostModel()
    seen = batches(MINILM, count=100 + 28 * 47, noise=noise)
    learn(model, itertools.islice(seen, 100))
    errors = []
    for _ in range(28):
        learn(model, itertools.islice(seen, 47))
        errors.append(model.error)

    assert statistics.mean(errors) == pytest.approx(noise, rel=0.12)
    assert noise / 2 < min(errors) < max(errors) < 2 * noise


def test_relative_errors_count_alike() -> None:
    """A query of 1 ms is predicted as well as a document of 500 ms, though all its time is within the noise of that."""
    true = (800_000.0, 25_000.0, 0.0)
    model = CostModel()
    sizes = [(1, 8), (8, 2000)]
    learn(model, batches(true, count=200, noise=0.1, sizes=lambda source: source.choice(sizes)))

    assert model.predict_ns(1, 8) == pytest.approx(1_000_000, rel=0.1)
    assert model.predict_ns(8, 2000) == pytest.approx(400_800_000, rel=0.1)


@pytest.mark.parametrize("at", [0, 1, 5, 200], ids=str)
def test_a_stall_moves_nothing(at: int) -> None:
    """A batch that takes 100 times as long changes predictions by less than 5 %, some batches later if it is early."""
    stalled, calm = CostModel(), CostModel()
    learn(stalled, batches(MINILM, count=at + 10, noise=0.05), slow=lambda number: 100 if number == at else 1)
    learn(calm, batches(MINILM, count=at + 10, noise=0.05))

    for probe in PROBES[:4]:
        assert stalled.predict_ns(*probe) == pytest.approx(calm.predict_ns(*probe), rel=0.25 if at < 10 else 0.05)


@MACHINES
@SEEDS
def test_a_third_of_slow_batches_moves_little(true: tuple[float, float, float], seed: int) -> None:
    """Every batch takes three times as long with a chance of a third: still within 12 % of the usual time."""
    source = random.Random(seed + 100)  # noqa: S311 - a test's own numbers
    model = CostModel()
    learn(
        model,
        batches(true, count=400, noise=0.05, seed=seed),
        slow=lambda _: 3 if source.random() < 1 / 3 else 1,
    )

    assert worst(model, true) < 1.12


@SEEDS
def test_slow_first_batches_are_forgotten(seed: int) -> None:
    """The first 8 batches take 10 times as long: after 40 more there is no trace."""
    model = CostModel()
    learn(model, batches(MINILM, count=48, noise=0.05, seed=seed), slow=lambda number: 10 if number < 8 else 1)

    assert worst(model, MINILM) < 1.2


@pytest.mark.parametrize("factor", [0.5, 1.5, 3.0])
@SEEDS
def test_a_slower_machine_is_noticed(factor: float, seed: int) -> None:
    """After 400 batches all take longer, or shorter: 72 batches later predictions are within 25 %."""
    model = CostModel()
    learn(model, batches(MINILM, count=472, noise=0.05, seed=seed), slow=lambda number: factor if number >= 400 else 1)

    assert worst(model, (factor * MINILM[0], factor * MINILM[1], factor * MINILM[2])) < 1.25


def test_a_slower_machine_is_slower_for_what_was_not_seen_since() -> None:
    """Documents have not come since the machine became slower, but queries of many sizes: they are slower too."""
    model = CostModel()
    learn(model, batches(MINILM, count=400, noise=0.05))
    queries = batches(
        MINILM, count=100, noise=0.05, sizes=lambda source: (source.choice([1, 2, 4, 8]), source.randint(4, 40))
    )
    learn(model, queries, slow=lambda _: 2)

    assert model.predict_ns(8, 512) == pytest.approx(2 * time_of(MINILM, 8, 512), rel=0.25)


def test_a_long_run_of_one_size_erases_nothing() -> None:
    """After 5000 batches of one size the others are still known, within 10 %."""
    model = CostModel()
    learn(model, batches(OVERHEAD, count=300, noise=0.05))
    learn(model, batches(OVERHEAD, count=5000, noise=0.05, seed=1, sizes=lambda _: (1, 16)))

    assert worst(model, OVERHEAD) < 1.1


@settings(deadline=None)  # a busy machine is slow
@given(st.integers(1, 64), st.integers(1, 512), st.floats(1e4, 1e10), st.integers(1, 40), st.integers(1, 64))
def test_one_size_keeps_the_shape_of_the_prior(
    texts: int, tokens: int, duration_ns: float, count: int, cores: int
) -> None:
    """Batches of one size, however many, scale all predictions alike."""
    model, prior = CostModel(cores), CostModel(cores)
    for _ in range(count):
        model.observe(texts, tokens, duration_ns)

    scale = duration_ns / prior.predict_ns(texts, tokens)
    for probe in PROBES:
        assert model.predict_ns(*probe) == pytest.approx(scale * prior.predict_ns(*probe), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "sizes",
    [lambda source: (source.randint(1, 8), 64), lambda source: (1, source.randint(4, 64))],
    ids=["one length", "alone"],
)
def test_extrapolation_is_not_absurd(sizes: Sizes, seed: int) -> None:
    """From one length, or short texts alone, eight times the length is predicted within a factor of 1.5."""
    model = CostModel()
    learn(model, batches(MINILM, count=100, noise=0.1, seed=seed, sizes=sizes))

    assert worst(model, MINILM, [(1, 16), (1, 64), (8, 64)]) < 1.5
    assert worst(model, MINILM, [(1, 512), (8, 512)]) < 1.5


def test_before_anything_is_known() -> None:
    """A token takes 40 us of one core, 10 us of four, and longer texts longer; half of that may be wrong."""
    one, four = CostModel(), CostModel(cores=4)

    assert 40_000 * 100 < one.predict_ns(1, 100) < 40_000 * 120
    assert 10_000 * 800 < four.predict_ns(8, 100) < 10_000 * 1000
    assert one.error == pytest.approx(0.5)


@pytest.mark.parametrize("true", [MINILM, (60_000.0, 5_000.0, 3.0), (4_000_000.0, 900_000.0, 300.0)])
def test_few_batches_do(true: tuple[float, float, float]) -> None:
    """A machine of another scale: after one batch all sizes are within a factor of 2, after three within 1.6."""
    model = CostModel()
    model.observe(1, 20, time_of(true, 1, 20))
    after_one = worst(model, true)
    model.observe(1, 30, time_of(true, 1, 30))
    model.observe(2, 200, time_of(true, 2, 200))

    assert after_one < 2
    assert worst(model, true) < 1.6


def test_of_two_batches_the_slower_is_doubted() -> None:
    """One batch of 1 ms and one of 100 ms, of one size: what takes longer was held up."""
    for order in ([1e6, 1e8], [1e8, 1e6]):
        model = CostModel()
        for duration_ns in order:
            model.observe(1, 16, duration_ns)

        assert model.predict_ns(1, 16) == pytest.approx(1e6, rel=0.3)


OBSERVED = st.lists(st.tuples(st.integers(1, 4096), st.integers(1, 8192), st.floats(0, 1e13)), max_size=80)


@settings(deadline=None)  # a busy machine is slow
@given(OBSERVED, st.integers(1, 128), st.integers(1, 4096), st.integers(1, 8192))
def test_whatever_was_seen_more_takes_no_less(
    seen: list[tuple[int, int, float]], cores: int, texts: int, tokens: int
) -> None:
    """Predictions are above 0, finite, and grow with texts and with tokens; coefficients are not negative."""
    model = CostModel(cores)
    for one in seen:
        model.observe(*one)

    here = model.predict_ns(texts, tokens)
    assert 0 < here < float("inf")
    assert model.predict_ns(texts + 1, tokens) >= here
    assert model.predict_ns(texts, tokens + 1) >= here
    assert min(model.coefficients) >= 0
    assert 0 <= model.error < float("inf")


@settings(deadline=None)  # a busy machine is slow
@given(OBSERVED)
def test_same_observations_same_predictions(seen: list[tuple[int, int, float]]) -> None:
    """There is no chance in it."""
    first, second = CostModel(), CostModel()
    for one in seen:
        first.observe(*one)
        second.observe(*one)

    assert first.coefficients == second.coefficients


def test_predictions_are_of_the_three_terms() -> None:
    """`coefficients` say what `predict_ns` does: a + b * 3 * 50 + c * 3 * 2500."""
    model = CostModel()
    learn(model, batches(MINILM, count=50, noise=0.1))
    fixed, linear, square = model.coefficients

    assert model.predict_ns(3, 50) == pytest.approx(fixed + 150 * linear + 7500 * square)

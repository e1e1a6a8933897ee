"""What measures a workload on groups of instances, in virtual time."""

import numpy as np
import pytest

from pinstripe.bench import Limits, Measurement, TokenizedTexts
from pinstripe.bench.driver import make_driver
from pinstripe.bench.inputs import fixed_texts
from pinstripe.configuration import InstanceGroup, TextSet, Workload
from pinstripe.errors import ConfigurationError
from pinstripe.models import EncodedText
from pinstripe.simulate import SimulatedExecutor, lay_out, run_simulated
from pinstripe.testing.fake_engine import fake_network

GROUPS = (InstanceGroup(instances=1, cores=1, max_tokens=16), InstanceGroup(instances=1, cores=4))
LENGTHS = [8] * 30 + [64] * 6
TEXTS = TokenizedTexts(
    rows=tuple(EncodedText(np.ones(length, np.int32)) for length in LENGTHS),
    cut=0,
    pad=fixed_texts(fake_network(), 8).pad,
)


def _seconds(cores: int, texts: int, tokens: int) -> float:
    return texts * tokens / cores / 1000


def test_a_file_is_shared_between_groups() -> None:
    """30 texts of 8 tokens and 6 of 64 are 624 ms of one core at 1 ms a token, and five take a fifth or so."""
    workload = Workload(
        scenario="offline", batch=1, texts=TextSet(file="a", sha256="", texts=len(LENGTHS), order="sorted")
    )
    drive = make_driver(workload, fake_network(), GROUPS, TEXTS)

    async def measured() -> Measurement:
        executor = SimulatedExecutor(lay_out(GROUPS, socket_cores=5), _seconds)
        return await drive(executor, Limits(min_s=0.001, min_forwards=1, max_s=0.001), lambda: None)

    result = run_simulated(measured())

    assert result.samples == 36
    assert result.tokens == 30 * 8 + 6 * 64
    assert all(result.engine_ns)
    assert result.window_ns == pytest.approx(624e6 / 5, rel=0.5)


def test_an_even_split_over_uneven_instances_is_refused() -> None:
    """Single-stream would wait for the smallest instance; the message says what does not."""
    workload = Workload(scenario="single-stream", batch=2, sequence_tokens=8)

    with pytest.raises(ConfigurationError, match="use multi-stream"):
        make_driver(workload, fake_network(), GROUPS)

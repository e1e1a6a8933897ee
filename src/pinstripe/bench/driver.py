"""From a workload to what drives an executor."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pinstripe.bench.inputs import TokenizedTexts, fixed_batch
from pinstripe.bench.measurement import Measurement
from pinstripe.bench.scenarios import Limits, offline, single_stream
from pinstripe.bench.text_scenarios import offline_texts, single_stream_texts
from pinstripe.configuration import Workload
from pinstripe.errors import ConfigurationError
from pinstripe.models import Network, forward_flops
from pinstripe.pool import Executor

__all__ = ["Driver", "make_driver", "sample_flops"]

Driver: TypeAlias = Callable[[Executor, Limits, Callable[[], None]], Awaitable[Measurement]]
"""Submits a workload's batches in its scenario's way, and measures that; tells when the window opens."""


def make_driver(workload: Workload, network: Network, instances: int, texts: TokenizedTexts | None = None) -> Driver:
    """Return what measures a workload.

    Args:
        workload: What is asked.
        network: The model.
        instances: Capacity of the executors that will be measured.
        texts: The tokens of the workload's texts, where it has some.

    Raises:
        ConfigurationError: The network takes no texts of that length, the batch does not divide over the instances, or
            the texts' tokens are missing.
    """
    if workload.sequence_tokens is not None:
        part = fixed_batch(network, workload.shard(instances), workload.sequence_tokens)
        scenario = {"single-stream": single_stream, "offline": offline}[workload.scenario]
        return lambda executor, limits, on_open: scenario(executor, part, limits, on_open)
    if texts is None:
        raise ConfigurationError(f"the workload {workload.label} lacks the tokens of its texts; tokenize them first")
    if workload.scenario == "single-stream":
        batches = texts.batches(workload.rule)
        return lambda executor, limits, on_open: single_stream_texts(executor, batches, limits, on_open)
    # As bulk work does it, so that what is measured is what will be had.
    shared = texts.batches(workload.rule, last_for=instances)
    return lambda executor, limits, on_open: offline_texts(executor, shared, limits, on_open)


def sample_flops(workload: Workload, network: Network, texts: TokenizedTexts | None = None) -> float | None:
    """Return the floating-point operations of a text of the workload, the mean of all; see `forward_flops`."""
    lengths = [workload.sequence_tokens or 0] if workload.texts is None or texts is None else texts.lengths
    flops = forward_flops(network, lengths)
    return None if flops is None else flops / len(lengths)

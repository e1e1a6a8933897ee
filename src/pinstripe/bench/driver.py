"""From a workload to what drives an executor."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pinstripe.bench.inputs import TokenizedTexts, fixed_batch, fixed_texts
from pinstripe.bench.measurement import Measurement
from pinstripe.bench.multi_stream import multi_stream
from pinstripe.bench.scenarios import Limits, offline, single_stream
from pinstripe.bench.server import server
from pinstripe.bench.text_scenarios import offline_texts, single_stream_texts
from pinstripe.configuration import DispatchRule, InstanceGroup, Workload
from pinstripe.dispatch import Dispatcher
from pinstripe.errors import ConfigurationError
from pinstripe.models import Network, forward_flops
from pinstripe.pool import Executor, Setup

__all__ = ["Driver", "groups_of", "make_driver", "sample_flops"]

Driver: TypeAlias = Callable[[Executor, Limits, Callable[[], None]], Awaitable[Measurement]]
"""Submits a workload's batches in its scenario's way, and measures that; tells when the window opens."""


def groups_of(setup: Setup) -> tuple[InstanceGroup, ...]:
    """Return the groups of a setup's instances; instances that are alike are one."""
    if setup.configuration.groups:
        return setup.configuration.groups
    # Where the kernel places them, or CPUs were named, an equal share.
    cores = setup.configuration.cores or max(1, len(setup.specs[0].cores) // len(setup.specs))
    return (InstanceGroup(instances=len(setup.specs), cores=cores),)


def make_driver(
    workload: Workload,
    network: Network,
    groups: Sequence[InstanceGroup],
    texts: TokenizedTexts | None = None,
    times: NDArray[np.int64] | None = None,
) -> Driver:
    """Return what measures a workload.

    Args:
        workload: What is asked.
        network: The model.
        groups: Those of the instances of the executors that will be measured; at least one.
        texts: The tokens of the workload's texts, where it has some.
        times: The times of its trace, likewise.

    Raises:
        ConfigurationError: The network takes no texts of that length, the batch does not divide over the instances, or
            the texts' tokens are missing.
    """
    if workload.texts is not None and texts is None:
        raise ConfigurationError(f"the workload {workload.label} lacks the tokens of its texts; tokenize them first")
    if workload.scenario == "single-stream" and len(groups) > 1:
        raise ConfigurationError(
            "single-stream splits a batch evenly, which makes no sense over instances of different sizes; "
            "use multi-stream, which dispatches it"
        )
    if workload.dispatched:
        return _dispatched(workload, network, groups, texts, times)
    instances = sum(group.instances for group in groups)
    if texts is None or workload.sequence_tokens is not None:
        part = fixed_batch(network, workload.shard(instances), workload.sequence_tokens or 0)
        scenario = {"single-stream": single_stream, "offline": offline}[workload.scenario]
        return lambda executor, limits, on_open: scenario(executor, part, limits, on_open)
    if workload.scenario == "single-stream":
        batches = texts.batches(workload.rule)
        return lambda executor, limits, on_open: single_stream_texts(executor, batches, limits, on_open)
    # As bulk work does it, so that what is measured is what will be had.
    if len(groups) > 1:
        return _offline_groups(workload, groups, texts)
    shared = texts.batches(workload.rule, last_for=instances)
    return lambda executor, limits, on_open: offline_texts(executor, shared, limits, on_open)


def _offline_groups(workload: Workload, groups: Sequence[InstanceGroup], texts: TokenizedTexts) -> Driver:
    """Return what gives batches of each length class to groups of instances."""
    batches = texts.batches(workload.rule, groups, last_for=sum(group.instances for group in groups))

    async def drive(executor: Executor, limits: Limits, on_open: Callable[[], None]) -> Measurement:
        dispatcher = Dispatcher(executor, pad=texts.pad, rule=DispatchRule(), groups=groups)
        try:
            # All that there is, so that each group finds what suits it.
            return await offline_texts(dispatcher, batches, limits, on_open, in_flight=len(batches))
        finally:
            await dispatcher.close()

    return drive


def _dispatched(
    workload: Workload,
    network: Network,
    groups: Sequence[InstanceGroup],
    texts: TokenizedTexts | None,
    times: NDArray[np.int64] | None,
) -> Driver:
    """Return what sends a workload's texts through a dispatcher."""
    source = texts if workload.texts is not None and texts else fixed_texts(network, workload.sequence_tokens or 0)
    rule = workload.dispatch or DispatchRule()

    async def drive(executor: Executor, limits: Limits, on_open: Callable[[], None]) -> Measurement:
        dispatcher = Dispatcher(executor, pad=source.pad, rule=rule, groups=groups)
        try:
            if workload.arrivals is not None:
                return await server(dispatcher, source.rows, workload.arrivals, limits, times=times, on_open=on_open)
            return await multi_stream(dispatcher, source.rows, workload.batch or 1, limits, on_open)
        finally:
            await dispatcher.close()

    return drive


def sample_flops(workload: Workload, network: Network, texts: TokenizedTexts | None = None) -> float | None:
    """Return the floating-point operations of a text of the workload, the mean of all; see `forward_flops`."""
    lengths = [workload.sequence_tokens or 0] if workload.texts is None or texts is None else texts.lengths
    flops = forward_flops(network, lengths)
    return None if flops is None else flops / len(lengths)

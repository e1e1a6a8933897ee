"""The noise floor: how different a configuration looks from itself."""

import math
from collections.abc import Callable

import msgspec

from pinstripe.bench.comparison import Ratio, paired_ratio
from pinstripe.bench.run import Grid, Session, run_grid
from pinstripe.configuration import Workload
from pinstripe.errors import ExecutionError
from pinstripe.pool import Setup

__all__ = ["NoiseFloor", "measure_noise"]


class NoiseFloor(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A comparison of a configuration with itself (an A/A test).

    Attributes:
        ratio: A compared with B; 1 within the interval, unless chance (1 in 20) or a fault of the machine has it
            otherwise.
        floor_percent: Half the width of the interval, in percent: differences below it cannot be told from noise with
            as many rounds of the same length.
        rates: Samples per second of A, a value a round.
        base_rates: Likewise of B.
    """

    ratio: Ratio
    floor_percent: float
    rates: tuple[float, ...]
    base_rates: tuple[float, ...]


async def measure_noise(
    session: Session,
    setup: Setup,
    workload: Workload,
    *,
    rounds: int,
    on_step: Callable[[int, Setup, Workload], None],
) -> NoiseFloor:
    """Compare a configuration with itself, in turn and in fresh processes, exactly as `run_grid` compares others.

    Takes `2 * rounds` measurements, each as long as the session's limits say plus the start of its workers.

    Args:
        session: As for `run_grid`; no record is kept.
        setup: The configuration.
        workload: What is asked of it.
        rounds: At least 2; from 6 on the interval is a bootstrap's.
        on_step: As for `run_grid`: told before each measurement in which round, what, under which workload.

    Raises:
        ExecutionError: A measurement failed; the message is its reason.
        EngineError: The engine refuses the configuration.
    """
    grid = Grid(rows=((setup, (workload,)),) * 2, skipped=())
    arms: tuple[list[float], list[float]] = ([], [])
    order: list[float] = []
    async for record in run_grid(grid, session, repeats=rounds, on_step=on_step):
        if record.measurement is None:
            raise ExecutionError(f"the noise floor cannot be measured: {record.failure and record.failure.message}")
        order.append(record.measurement.samples_per_s)
        if len(order) % 2 == 0:
            # `run_grid` rotates: the second row has the first turn in every other round.
            first, second = order[-2:] if record.repeat % 2 == 0 else order[:-3:-1]
            arms[0].append(first)
            arms[1].append(second)
    ratio = paired_ratio(arms[0], arms[1])
    return NoiseFloor(
        ratio=ratio, floor_percent=_half_width_percent(ratio), rates=tuple(arms[0]), base_rates=tuple(arms[1])
    )


def _half_width_percent(ratio: Ratio) -> float:
    if ratio.low is None or ratio.high is None:
        return math.inf
    return (math.sqrt(ratio.high / ratio.low) - 1) * 100

"""Scenarios, clocks, statistics, records."""

from pinstripe.bench.inputs import fixed_batch
from pinstripe.bench.measurement import Measurement, Warmup
from pinstripe.bench.record import FORMAT, Failure, Host, Record, RecordFile, read_records
from pinstripe.bench.result import LatencyMs, Result, Trial, summarize
from pinstripe.bench.run import Grid, Session, Skipped, make_grid, run_grid
from pinstripe.bench.scenarios import Limits, offline, single_stream
from pinstripe.bench.statistics import Ratio, paired_ratio, percentile

__all__ = [
    "FORMAT",
    "Failure",
    "Grid",
    "Host",
    "LatencyMs",
    "Limits",
    "Measurement",
    "Ratio",
    "Record",
    "RecordFile",
    "Result",
    "Session",
    "Skipped",
    "Trial",
    "Warmup",
    "fixed_batch",
    "make_grid",
    "offline",
    "paired_ratio",
    "percentile",
    "read_records",
    "run_grid",
    "single_stream",
    "summarize",
]

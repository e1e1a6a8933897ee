"""Scenarios, clocks, statistics, records."""

from pinstripe.bench.comparison import DECIDING_PAIRS, Ratio, RatioMethod, Verdict, paired_ratio
from pinstripe.bench.disturbances import Disturbance, Disturbances
from pinstripe.bench.inputs import TokenizedTexts, fixed_batch, tokenize
from pinstripe.bench.measurement import Measurement, Warmup
from pinstripe.bench.noise import NoiseFloor, measure_noise
from pinstripe.bench.record import FORMAT, Failure, Host, Record, RecordFile, read_records, trial_key
from pinstripe.bench.result import LatencyBoundMs, LatencyMs, Result, Trial, summarize
from pinstripe.bench.resume import check_resumable
from pinstripe.bench.run import Grid, Session, Skipped, make_grid, run_grid
from pinstripe.bench.scenarios import Limits, offline, single_stream
from pinstripe.bench.watch import Surroundings

__all__ = [
    "DECIDING_PAIRS",
    "FORMAT",
    "Disturbance",
    "Disturbances",
    "Failure",
    "Grid",
    "Host",
    "LatencyBoundMs",
    "LatencyMs",
    "Limits",
    "Measurement",
    "NoiseFloor",
    "Ratio",
    "RatioMethod",
    "Record",
    "RecordFile",
    "Result",
    "Session",
    "Skipped",
    "Surroundings",
    "TokenizedTexts",
    "Trial",
    "Verdict",
    "Warmup",
    "check_resumable",
    "fixed_batch",
    "make_grid",
    "measure_noise",
    "offline",
    "paired_ratio",
    "read_records",
    "run_grid",
    "single_stream",
    "summarize",
    "tokenize",
    "trial_key",
]

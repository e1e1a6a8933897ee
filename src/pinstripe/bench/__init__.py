"""Scenarios, clocks, statistics, records."""

from pinstripe.bench.comparison import DECIDING_PAIRS, Ratio, RatioMethod, Verdict, paired_ratio
from pinstripe.bench.disturbances import Disturbance, Disturbances
from pinstripe.bench.inputs import TokenizedTexts, fixed_batch, tokenize
from pinstripe.bench.load_result import ClassLatency, LoadResult
from pinstripe.bench.measurement import Load, Measurement, Warmup
from pinstripe.bench.multi_stream import multi_stream
from pinstripe.bench.noise import NoiseFloor, measure_noise
from pinstripe.bench.record import FORMAT, Failure, Host, Record, RecordFile, read_records, trial_key
from pinstripe.bench.result import LatencyBoundMs, LatencyMs, Result, Trial, summarize
from pinstripe.bench.resume import check_resumable
from pinstripe.bench.run import Grid, Session, Skipped, make_grid, run_grid
from pinstripe.bench.scenarios import Limits, offline, single_stream
from pinstripe.bench.server import server
from pinstripe.bench.watch import Surroundings

__all__ = [
    "DECIDING_PAIRS",
    "FORMAT",
    "ClassLatency",
    "Disturbance",
    "Disturbances",
    "Failure",
    "Grid",
    "Host",
    "LatencyBoundMs",
    "LatencyMs",
    "Limits",
    "Load",
    "LoadResult",
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
    "multi_stream",
    "offline",
    "paired_ratio",
    "read_records",
    "run_grid",
    "server",
    "single_stream",
    "summarize",
    "tokenize",
    "trial_key",
]

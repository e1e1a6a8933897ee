"""Requests that arrive as they do in life, and what became of them."""

from pinstripe.load.embedding_api import ApiName
from pinstripe.load.endpoint import Endpoint, endpoints
from pinstripe.load.fine_loop import new_fine_loop
from pinstripe.load.http_target import HttpTarget
from pinstripe.load.peak import Peak, PeakStep, find_peak
from pinstripe.load.report import LoadPercentiles, LoadReport, judge
from pinstripe.load.run import LoadRun, run_closed_loop, run_load
from pinstripe.load.sample_texts import SAMPLE_TEXTS
from pinstripe.load.schedule import schedule
from pinstripe.load.target import Target
from pinstripe.load.trace import read_trace

__all__ = [
    "SAMPLE_TEXTS",
    "ApiName",
    "Endpoint",
    "HttpTarget",
    "LoadPercentiles",
    "LoadReport",
    "LoadRun",
    "Peak",
    "PeakStep",
    "Target",
    "endpoints",
    "find_peak",
    "judge",
    "new_fine_loop",
    "read_trace",
    "run_closed_loop",
    "run_load",
    "schedule",
]

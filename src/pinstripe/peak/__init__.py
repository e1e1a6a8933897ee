"""How many floating-point operations a second do these cores really give? Large matrix products, measured."""

from pinstripe.peak.description import GemmRate, Peak, PeakPrecision, ProbePlace, ProbeResult
from pinstripe.peak.measuring import machine_place, measure_peak, probe_places

__all__ = [
    "GemmRate",
    "Peak",
    "PeakPrecision",
    "ProbePlace",
    "ProbeResult",
    "machine_place",
    "measure_peak",
    "probe_places",
]

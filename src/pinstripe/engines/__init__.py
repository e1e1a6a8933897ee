"""How does the forward pass run? One file an engine, imported only when used."""

from pinstripe.engines.exporting.calibration import Calibration
from pinstripe.engines.options import shown
from pinstripe.engines.precision import check_precision
from pinstripe.engines.prepare import prepare
from pinstripe.engines.protocol import (
    Artefact,
    ArtefactFormat,
    Engine,
    EngineReport,
    GraphEngine,
    LoadedModel,
    LoadRequest,
    OptionValue,
    Precision,
    Quantization,
    Threading,
)
from pinstripe.engines.registry import engine, engine_names

__all__ = [
    "Artefact",
    "ArtefactFormat",
    "Calibration",
    "Engine",
    "EngineReport",
    "GraphEngine",
    "LoadRequest",
    "LoadedModel",
    "OptionValue",
    "Precision",
    "Quantization",
    "Threading",
    "check_precision",
    "engine",
    "engine_names",
    "prepare",
    "shown",
]

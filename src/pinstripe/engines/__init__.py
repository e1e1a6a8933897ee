"""How does the forward pass run? One file an engine, imported only when used."""

from pinstripe.engines.prepare import prepare
from pinstripe.engines.protocol import (
    Artefact,
    ArtefactFormat,
    Engine,
    EngineReport,
    LoadedModel,
    LoadRequest,
    OptionValue,
    Precision,
)
from pinstripe.engines.registry import engine, engine_names

__all__ = [
    "Artefact",
    "ArtefactFormat",
    "Engine",
    "EngineReport",
    "LoadRequest",
    "LoadedModel",
    "OptionValue",
    "Precision",
    "engine",
    "engine_names",
    "prepare",
]

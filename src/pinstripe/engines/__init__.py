"""How does the forward pass run? One file an engine, imported only when used."""

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

__all__ = [
    "Artefact",
    "ArtefactFormat",
    "Engine",
    "EngineReport",
    "LoadRequest",
    "LoadedModel",
    "OptionValue",
    "Precision",
]

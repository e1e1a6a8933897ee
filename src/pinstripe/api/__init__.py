"""A model as a Python object: texts in, vectors and answers out."""

from pinstripe.api.artefacts import artefact_finder
from pinstripe.api.async_model import AsyncModel, open_async
from pinstripe.api.defaults import default_configuration
from pinstripe.api.model import Model, open_model
from pinstripe.api.opening import Opening
from pinstripe.api.stopping import run_stoppable
from pinstripe.api.text_batch import TextBatch, prefetched
from pinstripe.api.wanted import Wanted

__all__ = [
    "AsyncModel",
    "Model",
    "Opening",
    "TextBatch",
    "Wanted",
    "artefact_finder",
    "default_configuration",
    "open_async",
    "open_model",
    "prefetched",
    "run_stoppable",
]

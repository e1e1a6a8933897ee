"""The file that a configuration's engine loads."""

import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact, Calibration, engine, prepare
from pinstripe.models import Network, check_texts, load_tokenizer
from pinstripe.texts import read_texts

__all__ = ["artefact_finder"]

_CALIBRATION_TEXTS: Final = 300
"""As many as NNCF takes by default (`nncf.quantize`, `subset_size`)."""


def artefact_finder(network: Network, stop: threading.Event | None = None) -> Callable[[Configuration], Artefact]:
    """Return the function that finds or makes the file for a configuration of this model; it may take minutes.

    With `stop` another thread can end that. It raises EngineError, ExecutionError (see `pinstripe.engines.prepare`) and
    TextError for calibration texts.
    """
    return partial(_artefact, network, stop)


def _artefact(network: Network, stop: threading.Event | None, configuration: Configuration) -> Artefact:
    calibration = configuration.calibration
    return prepare(
        engine(configuration.engine),
        network,
        precision=configuration.precision,
        options=configuration.options,
        file=configuration.file,
        calibration=None if calibration is None else _calibration(network, Path(calibration)),
        python=configuration.python or sys.executable,
        stop=stop,
    )


def _calibration(network: Network, path: Path) -> Calibration:
    """Return some of a file's texts, evenly spread over it: files are often sorted by topic or length."""
    texts, _ = read_texts(path)
    count = min(len(texts), _CALIBRATION_TEXTS)
    chosen = [texts[number * len(texts) // count] for number in range(count)]
    check_texts(network.task, chosen)
    return Calibration(load_tokenizer(network).encode(chosen))

"""What outputs are compared with: those of float32."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Final

import numpy as np

from pinstripe.accuracy.inputs import Inputs, Rated
from pinstripe.accuracy.running import ONE_BATCH, OnProgress, ignore, predict_all, read_report
from pinstripe.accuracy.similarity import similarities
from pinstripe.accuracy.statistics import spearman
from pinstripe.api import AsyncModel, Opening, Wanted
from pinstripe.engines import engine
from pinstripe.errors import EngineError, WorkerError
from pinstripe.models import Answer, Network

__all__ = ["Reference", "correlation", "measure_reference", "reference_opening"]

_PREFERRED: Final = ("torch-eager", "onnxruntime", "openvino")
"""Best first. PyTorch's eager mode is what the models' authors ran, and needs no export that might go wrong."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Answers of the reference.

    Attributes:
        inputs: What it was run on.
        answers: One for each text.
        spearman: Correlation with people's scores; None without any.
        engine: Its engine.
        version: Version of that engine's library.
    """

    inputs: Inputs
    answers: tuple[Answer, ...]
    spearman: float | None
    engine: str
    version: str


def reference_opening(
    opening: Opening, engine_name: str | None = None, *, pythons: Mapping[str, str] | None = None
) -> Opening:
    """Return how the reference of a model runs: in float32, as one instance on all cores.

    Args:
        opening: What is going to be compared with it; model, revision and overrides are the same.
        engine_name: Its engine; None for torch-eager, or the next one where that is not installed.
        pythons: Interpreters of the environments that engines are installed in, by engine; this one's for others.

    Raises:
        EngineError: No engine is installed, or none has that name.
    """
    interpreters = pythons or {}
    name = _usable(interpreters) if engine_name is None else engine(engine_name).name
    wanted = Wanted(engine=name, python=interpreters.get(name), instances=1)
    return replace(opening, wanted=wanted, configuration=None)


async def measure_reference(opening: Opening, inputs: Inputs, on_progress: OnProgress = ignore) -> Reference:
    """Run the reference over texts; the result serves for any number of `measure_accuracy`.

    Args:
        opening: See `reference_opening`.
        inputs: The texts.
        on_progress: Called after each batch.

    Raises:
        PinstripeError: The model cannot be had so, or could not be run, or gives something that is not a finite number.
        WorkerError: It finds all rated pairs equally alike, so that nothing can be said of their order.
    """
    async with AsyncModel(replace(opening, batching=ONE_BATCH).prepare) as model:
        report = await read_report(model)
        answers = await predict_all(model, inputs.texts, f"reference, {report.engine} float32", on_progress)
        value = correlation(model.network, answers, inputs.rated)
    if inputs.rated is not None and value is None:
        raise WorkerError(
            f"{report.engine} float32 finds all pairs of {inputs.rated.source.name} equally alike; check the model"
        )
    return Reference(inputs, tuple(answers), value, report.engine, report.version)


def correlation(network: Network, answers: Sequence[Answer], rated: Rated | None) -> float | None:
    """Return Spearman's correlation of a model's similarities, or of a reranker's scores, with people's scores.

    Args:
        network: The model.
        answers: One for each of the inputs.
        rated: What people said; None for nothing.

    Returns:
        -1 to 1; None if people said nothing, or if all similarities are equal.
    """
    if rated is None:
        return None
    values = np.array(answers, dtype=np.float32)
    if rated.second is None:
        return spearman(values[rated.first], rated.scores)
    found = similarities(values[rated.first], values[rated.second], network.similarity)
    return spearman(found, rated.scores)


def _usable(pythons: Mapping[str, str]) -> str:
    for name in _PREFERRED:
        if name in pythons or all(find_spec(one) is not None for one in engine(name).distributions):
            return name
    raise EngineError(f"no engine is installed that could be the reference; pip install 'pinstripe[{_PREFERRED[0]}]'")

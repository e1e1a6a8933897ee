"""From a way to run a model to how accurate it is that way."""

from dataclasses import replace

from msgspec.structs import asdict

from pinstripe.accuracy.accuracy import Accuracy
from pinstripe.accuracy.comparison import compare
from pinstripe.accuracy.floor import judge
from pinstripe.accuracy.invariance import measure_invariance
from pinstripe.accuracy.reference import Reference, correlation
from pinstripe.accuracy.running import ONE_BATCH, OnProgress, count_cut, ignore, predict_all, read_report
from pinstripe.api import AsyncModel, Opening

__all__ = ["measure_accuracy"]


async def measure_accuracy(opening: Opening, reference: Reference, on_progress: OnProgress = ignore) -> Accuracy:
    """Run a model over the reference's texts and compare, then over some of them alone and among longer ones.

    Args:
        opening: How it runs; `batching` does not matter. One instance is enough.
        reference: What `measure_reference` returned for the same model.
        on_progress: Called after each batch.

    Raises:
        PinstripeError: The model cannot be had so, or could not be run, or gives something that is not a finite number.
    """
    inputs = reference.inputs
    async with AsyncModel(replace(opening, batching=ONE_BATCH).prepare) as model:
        report = await read_report(model)
        ran, network = model.configuration, model.network
        cut = await count_cut(model, inputs.texts)
        answers = await predict_all(model, inputs.texts, f"{ran.engine} {ran.precision}", on_progress)
        invariance = await measure_invariance(model, inputs.texts, on_progress)
    comparison = compare(network.task, reference.answers, answers)
    found = correlation(network, answers, inputs.rated)
    return Accuracy(
        **asdict(comparison),
        model=network.name,
        revision=network.revision,
        fingerprint=network.fingerprint,
        task=network.task,
        engine=ran.engine,
        version=report.version,
        precision=ran.precision,
        quantization=model.artefact.quantization,
        options=ran.options,
        knobs=ran.knobs,
        reference_engine=reference.engine,
        reference_version=reference.version,
        spearman=found,
        reference_spearman=reference.spearman,
        batch_invariance=invariance,
        cut=cut,
        texts=inputs.source,
        pairs=inputs.rated.source if inputs.rated else None,
        floor=judge(comparison, batch_invariance=invariance, spearman=found, reference_spearman=reference.spearman),
    )

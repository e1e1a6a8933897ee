"""What `pinstripe accuracy` found out, for people."""

import textwrap
from collections.abc import Iterator

from rich.console import Console

from pinstripe.accuracy import Accuracy, Comparison, Source

__all__ = ["print_accuracy"]


def print_accuracy(accuracy: Accuracy, console: Console) -> None:
    """Print the verdict, why, and the numbers."""
    name = f"{accuracy.engine} {accuracy.precision}"
    verdict = "accurate enough" if accuracy.floor.passed else "below the floor"
    console.print(f"{verdict}: {name}, {accuracy.model}", soft_wrap=True)
    for reason in accuracy.floor.reasons:
        console.print(f"  {reason}", soft_wrap=True)
    rows = list(_rows(accuracy))
    width = max(len(title) for title, _ in rows)
    for title, value in rows:
        begin = f"{title:<{width}}  "
        words = textwrap.TextWrapper(console.width - len(begin), break_long_words=False, break_on_hyphens=False).wrap(
            value
        )
        console.print(begin + f"\n{' ' * len(begin)}".join(words), soft_wrap=True)


def _rows(accuracy: Accuracy) -> Iterator[tuple[str, str]]:
    yield "reference", f"float32 of {accuracy.reference_engine} {_short(accuracy.reference_version)}"
    how = f", file quantized: {accuracy.quantization}" if accuracy.quantization != "none" else ""
    options = "".join(f", {option}={value}" for option, value in {**accuracy.options, **accuracy.knobs}.items())
    yield "judged", f"{accuracy.precision} of {accuracy.engine} {_short(accuracy.version)}{options}{how}"
    yield "task", accuracy.task
    if accuracy.texts is not None:
        yield "texts", _source(accuracy.texts)
    if accuracy.pairs is not None:
        yield "pairs", _source(accuracy.pairs)
    if accuracy.cut:
        yield "cut", f"{_texts(accuracy.cut)} with more tokens than the model takes"
    yield from _numbers(accuracy)
    if accuracy.pairs is not None and accuracy.reference_spearman is not None:
        yield "Spearman", _spearman(accuracy.spearman, accuracy.reference_spearman)
    invariance = "; ".join(f"{title} {value}" for title, value in _numbers(accuracy.batch_invariance))
    yield "batch invariance", f"{invariance} ({_texts(accuracy.batch_invariance.n)} alone and among longer ones)"


def _short(version: str) -> str:
    """Return a version without the commit that OpenVINO puts behind it."""
    return version.partition("-")[0]


def _texts(count: int) -> str:
    return f"{count:,} text{'' if count == 1 else 's'}"


def _source(source: Source) -> str:
    where = "that come with pinstripe" if source.name == "sample" else f"of {source.name}"
    share = f"{source.used:,}" if source.used == source.total else f"{source.used:,} of {source.total:,}"
    return f"{share} {where}"


def _numbers(comparison: Comparison) -> Iterator[tuple[str, str]]:
    if comparison.cosine is not None:
        cosine = comparison.cosine
        yield "cosine", f"min {cosine.min:.5f}, p1 {cosine.p1:.5f}, mean {cosine.mean:.5f}"
    if comparison.label_agreement is not None:
        yield "same labels", f"{comparison.label_agreement:.2%}"
    if comparison.answer_agreement is not None:
        yield "same answers", f"{comparison.answer_agreement:.2%}"
    if comparison.answer_f1 is not None:
        yield "F1 of answers", f"{comparison.answer_f1:.4f}"
    if comparison.largest_probability_difference is not None:
        yield "largest difference", f"{comparison.largest_probability_difference:.2g} of a probability"
    if comparison.largest_difference is not None:
        ranks = "undefined" if comparison.rank_correlation is None else f"{comparison.rank_correlation:.5f}"
        if comparison.cosine is None:
            yield "rank correlation", ranks
        yield "largest difference", f"{comparison.largest_difference:.2g}"


def _spearman(own: float | None, reference: float) -> str:
    if own is None:
        return f"undefined, as all similarities are equal; the reference's is {reference:.4f}"
    return f"{own:.4f}; the reference's is {reference:.4f} (loss {reference - own:.4f})"

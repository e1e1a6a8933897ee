"""What was found out about an engine and a precision."""

import msgspec

from pinstripe.accuracy.comparison import Comparison
from pinstripe.accuracy.floor import Verdict
from pinstripe.engines import OptionValue, Precision, Quantization
from pinstripe.models import Task

__all__ = ["Accuracy", "Source"]


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where texts come from.

    Attributes:
        name: Path of the file; `sample` for the texts that come with pinstripe.
        sha256: Digest of its content, in hexadecimal.
        used: Texts, or pairs, of it that were used: evenly spread over it, repetitions left out.
        total: Texts, or pairs, in it.
    """

    name: str
    sha256: str
    used: int
    total: int


class Accuracy(Comparison, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A comparison with the reference, and what was compared.

    Attributes:
        model: As the user named it.
        revision: Commit of a hub model.
        fingerprint: See `Network`.
        task: What the model is for.
        engine: Engine that was judged.
        version: Version of its library, as it says itself.
        precision: Precision, read back from the engine.
        quantization: How the file it loaded was quantized; `none` for one that quantizes while loading, if at all.
        options: Its options.
        knobs: The knobs that were asked for.
        reference_engine: Engine whose float32 it was compared with.
        reference_version: Version of its library.
        spearman: Spearman's correlation between the model's similarities (a reranker's scores) and people's scores;
            None without pairs, and where all similarities are equal.
        reference_spearman: The same of the reference; None without pairs.
        batch_invariance: The judged engine with itself: each of some texts alone, and padded among longer ones.
        cut: Texts, or pairs, with more tokens than the model takes, of which only the begin was compared.
        texts: Where the texts come from; None where they are those of the pairs.
        pairs: Where the pairs with people's scores come from; None without.
        floor: Whether that is good enough.
    """

    model: str
    revision: str | None
    fingerprint: str
    task: Task
    engine: str
    version: str
    precision: Precision
    quantization: Quantization
    options: dict[str, OptionValue]
    knobs: dict[str, str]
    reference_engine: str
    reference_version: str
    spearman: float | None
    reference_spearman: float | None
    batch_invariance: Comparison
    cut: int
    texts: Source | None
    pairs: Source | None
    floor: Verdict

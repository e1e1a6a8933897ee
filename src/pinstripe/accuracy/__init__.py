"""What does a faster engine or precision cost in quality? Outputs against those of float32, on real text."""

from pinstripe.accuracy.accuracy import Accuracy, Source
from pinstripe.accuracy.comparison import Comparison, CosineSummary, compare
from pinstripe.accuracy.floor import Verdict, judge
from pinstripe.accuracy.inputs import Inputs, Rated, check_judgeable, read_inputs
from pinstripe.accuracy.measuring import measure_accuracy
from pinstripe.accuracy.pairs import ScoredPair, read_pairs
from pinstripe.accuracy.reference import Reference, measure_reference, reference_opening
from pinstripe.accuracy.running import Progress
from pinstripe.accuracy.statistics import spearman

__all__ = [
    "Accuracy",
    "Comparison",
    "CosineSummary",
    "Inputs",
    "Progress",
    "Rated",
    "Reference",
    "ScoredPair",
    "Source",
    "Verdict",
    "check_judgeable",
    "compare",
    "judge",
    "measure_accuracy",
    "measure_reference",
    "read_inputs",
    "read_pairs",
    "reference_opening",
    "spearman",
]

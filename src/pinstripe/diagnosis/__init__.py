"""What on this machine makes models slow, and how to mend it? Pure functions of what was read."""

from pinstripe.diagnosis.activity import Activity
from pinstripe.diagnosis.diagnose import diagnose
from pinstripe.diagnosis.finding import Certainty, Finding, Severity
from pinstripe.diagnosis.observations import Observations, observe

__all__ = ["Activity", "Certainty", "Finding", "Observations", "Severity", "diagnose", "observe"]

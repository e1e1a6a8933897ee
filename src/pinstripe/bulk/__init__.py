"""A whole file of texts through a model: bounded in memory, and resumable."""

from pinstripe.bulk.job import BadLines, BulkJob
from pinstripe.bulk.output import check_job, skipped_path, workspace_path
from pinstripe.bulk.run import Progress, Summary, run_bulk
from pinstripe.bulk.survey import Survey, survey_texts
from pinstripe.bulk.workspace import rows_kept

__all__ = [
    "BadLines",
    "BulkJob",
    "Progress",
    "Summary",
    "Survey",
    "check_job",
    "rows_kept",
    "run_bulk",
    "skipped_path",
    "survey_texts",
    "workspace_path",
]

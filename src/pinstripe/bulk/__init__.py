"""A whole file of texts through a model: bounded in memory, and resumable."""

from pinstripe.bulk.job import BadLines, BulkJob, Survey, survey
from pinstripe.bulk.run import Progress, Summary, run_bulk
from pinstripe.bulk.workspace import check_job, rows_kept, skipped_path, workspace_path

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
    "survey",
    "workspace_path",
]

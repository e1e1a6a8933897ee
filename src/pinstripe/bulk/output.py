"""Where results go, and whether they can."""

from pathlib import Path

from pinstripe.bulk.job import BulkJob
from pinstripe.bulk.sinks import check_format
from pinstripe.errors import UsageError

__all__ = ["check_job", "skipped_path", "workspace_path"]


def workspace_path(output: Path) -> Path:
    """Return the directory of unfinished work for an output."""
    return output.with_name(f"{output.name}.partial")


def skipped_path(output: Path) -> Path:
    """Return the file that names the lines that were skipped."""
    return output.with_name(f"{output.name}.skipped.jsonl")


def check_job(job: BulkJob) -> None:
    """Raise if the output could not be made, before anything is begun.

    Raises:
        UsageError: It exists or is the input, its directory does not exist, its format is unknown or needs a library
            that is missing, or something else has the name of the directory of unfinished work.
    """
    check_format(job.output)
    try:
        _check_names(job)
    except OSError as error:
        raise UsageError(f"{job.output} cannot be used: {error.strerror}; name another file") from error


def _check_names(job: BulkJob) -> None:
    if not job.output.parent.is_dir():
        raise UsageError(f"there is no directory {job.output.parent}; make it, or name another file")
    if job.output.is_dir():
        raise UsageError(f"{job.output} is a directory; name a file")
    written = [job.output, *([skipped_path(job.output)] if job.bad_lines == "skip" else [])]
    for path in written:
        if path.exists() and job.source.exists() and path.samefile(job.source):
            raise UsageError(f"{path} would replace the texts that are read; name another file")
        if path.exists() and not job.force:
            raise UsageError(f"{path} exists; name another file, or replace it with --force")
    partial = workspace_path(job.output)
    if partial.is_symlink() or (partial.exists() and not partial.is_dir()):
        raise UsageError(f"{partial} is needed for unfinished work, and is something else; move it away")

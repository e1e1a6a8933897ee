"""Torch's compute threads."""

from typing import Any

from pinstripe.errors import EngineError

__all__ = ["set_threads"]


def set_threads(torch: Any, threads: int | None) -> None:
    """Set the number of compute threads of this process, and one for whole operators; None leaves both.

    Raises:
        EngineError: OpenMP allows fewer.
    """
    if threads is None:
        return
    torch.set_num_threads(threads)
    if torch.get_num_interop_threads() != 1:  # may be set only once in a process
        torch.set_num_interop_threads(1)
    if (effective := torch.get_num_threads()) != threads:
        raise EngineError(f"torch computes with {effective} threads instead of {threads}; unset OMP_THREAD_LIMIT")

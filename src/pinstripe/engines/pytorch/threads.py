"""Torch's compute threads."""

from typing import Any

from pinstripe.errors import EngineError

__all__ = ["set_threads"]


def set_threads(torch: Any, threads: int | None, interop_threads: int | None = None) -> None:
    """Set the threads of this process.

    Args:
        torch: The library.
        threads: Compute threads of one operator; None leaves their number.
        interop_threads: Threads for whole operators beside each other; None for one, or to leave that, too, if
            `threads` is None.

    Raises:
        EngineError: OpenMP allows fewer, or this process uses another number already.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    wanted = 1 if interop_threads is None and threads is not None else interop_threads
    if wanted is not None and torch.get_num_interop_threads() != wanted:
        try:
            torch.set_num_interop_threads(wanted)
        except RuntimeError as error:  # it may be set only once, and not once they run
            raise EngineError(
                f"torch has {torch.get_num_interop_threads()} interop threads in this process, and it is too late for "
                f"{wanted}; start another one"
            ) from error
    if threads is not None and (effective := torch.get_num_threads()) != threads:
        raise EngineError(f"torch computes with {effective} threads instead of {threads}; unset OMP_THREAD_LIMIT")

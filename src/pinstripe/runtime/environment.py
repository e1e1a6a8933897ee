"""Explicit thread counts for a child process."""

from collections.abc import Mapping

from pinstripe.runtime.thread_binding import BINDING_VARIABLES

__all__ = ["thread_environment"]

# Where an instance's threads may run is set by the affinity of its process, which all libraries respect; more finely
# only by the knob for OpenMP, which knows the instance's CPUs. Any of these, left over from the parent's environment,
# would narrow the main thread to one CPU (and so all that it starts), place threads outside the instance's cores, or
# cap their number below what is asked for.
_FIGHT_WITH_PINNING = (
    *BINDING_VARIABLES,
    "KMP_ALL_THREADS",
    "KMP_DEVICE_THREAD_LIMIT",
    "KMP_HW_SUBSET",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_THREAD_LIMIT",
)


def thread_environment(threads: int | None, inherited: Mapping[str, str]) -> dict[str, str | None]:
    """Return the variables that give a child its number of compute threads, for `StartRequest.environment`.

    Args:
        threads: Compute threads of the child, at least 1; None leaves everything as it is inherited (the baseline).
        inherited: The environment that the child would inherit.

    Returns:
        Values by name; None removes a variable that is there now and would fight with the pinning.
    """
    if threads is None:
        return {}
    count = str(threads)
    return {
        # libgomp, libiomp5, libomp. Their own default counts CPUs, and ignores control groups' quotas.
        "OMP_NUM_THREADS": count,
        # A team must not shrink with the load average: one thread runs on each core, always.
        "OMP_DYNAMIC": "false",
        # These two go before OMP_NUM_THREADS in their libraries, so an inherited value would win over ours.
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        # Tokenizers' own thread pool would compete with the model for its cores.
        "TOKENIZERS_PARALLELISM": "false",
        "RAYON_NUM_THREADS": count,
    } | {name: None for name in _FIGHT_WITH_PINNING if name in inherited}

"""Which OpenMP runtime computes in this process, and where its threads may run."""

import msgspec

from pinstripe.runtime.libraries import ThreadingLibrary

__all__ = ["OpenmpObservation", "TeamThread", "observe_openmp"]


class TeamThread(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thread of the team that computes.

    Attributes:
        tid: Its id.
        cpus: CPUs it may run on, ascending.
    """

    tid: int
    cpus: tuple[int, ...]


class OpenmpObservation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The OpenMP runtime that serves parallel regions.

    Attributes:
        name: Which one: others may be mapped and idle.
        path: Its file.
        team: The threads of a parallel region, as each of them said itself.
        settings: Settings that the runtime says of itself, by its own names.
    """

    name: ThreadingLibrary
    path: str
    team: tuple[TeamThread, ...]
    settings: dict[str, str] = {}


def observe_openmp(threads: int | None) -> OpenmpObservation | None:
    """Run a parallel region in this process and return what took part; None without an OpenMP runtime.

    Args:
        threads: Threads of the region; None for the runtime's own choice.
    """
    del threads
    return None

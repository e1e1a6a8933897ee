"""The OpenVINO library, and its core in this process."""

import sys
from functools import cache
from typing import Any

from pinstripe.engines.importing import import_library

__all__ = ["import_openvino", "openvino_core"]


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry, which would report every import and conversion over the network.

    Raises:
        EngineError: It is not installed.
    """
    # Only the user's home directory has a switch for it; OpenVINO falls back to a stub where the package is absent.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type] # None blocks an import
    return import_library("openvino", extra="openvino")


@cache
def openvino_core() -> Any:
    """Return the one core of this process, which stays until it ends.

    On CPUs with AMX a core's CPU plugin gives the thread that loads it a stack of its own for signals, and later
    that of before (`SigAltStackSetup`, seen in 2026.4). Of two cores that go in the order they came, the second
    leaves the stack of the first, which is unmapped by then: the next signal that Python handles is written to memory
    that is somebody else's by now, or ends the process with SIGSEGV.

    Raises:
        EngineError: OpenVINO is not installed.
    """
    return import_openvino().Core()

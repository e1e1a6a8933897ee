"""What the process that exports is told, and where it leaves its result."""

from typing import Final, Literal

import msgspec

from pinstripe.models import Network

__all__ = ["GRAPH_FILES", "REQUEST_FILE", "USAGE_EXIT", "ExportFormat", "ExportRequest"]

ExportFormat = Literal["onnx", "openvino"]

GRAPH_FILES: Final[dict[ExportFormat, str]] = {"onnx": "model.onnx", "openvino": "model.xml"}
REQUEST_FILE: Final = "request.json"
USAGE_EXIT: Final = 2
"""Exit code for what the user can change; the last line of standard error then says it."""


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to export.

    Attributes:
        network: The model.
        format: The graph's format.
    """

    network: Network
    format: ExportFormat

"""What the process that exports and quantizes is told, and where it leaves its result."""

from typing import Final, Literal

import msgspec

from pinstripe.engines.protocol import Quantization
from pinstripe.models import Network

__all__ = [
    "CALIBRATION_FILE",
    "GRAPH_FILES",
    "MESSAGE",
    "REQUEST_FILE",
    "USAGE_EXIT",
    "WRITE_EXIT",
    "ExportRequest",
    "GraphFormat",
    "QuantizeRequest",
    "Request",
]

GraphFormat = Literal["onnx", "openvino"]

GRAPH_FILES: Final[dict[GraphFormat, str]] = {"onnx": "model.onnx", "openvino": "model.xml"}
REQUEST_FILE: Final = "request.json"
CALIBRATION_FILE: Final = "calibration.npz"
"""Arrays of one token batch a text: `ids0` [1, tokens] and so on."""
MESSAGE: Final = "pinstripe: "
"""How the line on standard error begins that says why there is no result; libraries write others, also after it."""
USAGE_EXIT: Final = 2
"""Exit code for what the user can change."""
WRITE_EXIT: Final = 3
"""Exit code for a disk that is full, or cannot be written."""


class ExportRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="export"):
    """Write a float32 graph of a model.

    Attributes:
        network: The model.
        format: The graph's format.
    """

    network: Network
    format: GraphFormat


class QuantizeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="quantize"):
    """Write an int8 graph of a float32 one.

    Attributes:
        network: The model.
        format: The graph's format.
        source: The float32 graph's file.
        quantization: How; `static` needs token batches in `CALIBRATION_FILE` beside the request.
    """

    network: Network
    format: GraphFormat
    source: str
    quantization: Quantization


Request = ExportRequest | QuantizeRequest

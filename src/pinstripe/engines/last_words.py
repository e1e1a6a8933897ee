"""What a process wrote at its end, without the chatter of libraries."""

import re
from typing import Final

__all__ = ["last_words"]

_CHATTER: Final = re.compile(
    r"[WI]\d{4} \d\d:\d\d:\d\d"  # torch and glog: W1130 12:51:32.680000 …
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S* *(\[[VIW]:|: [IW] )"  # ONNX Runtime's and TensorFlow's
    r"|WARNING: All log messages before absl::"
    r"|Failed to load \S*torchao"  # kernels for other hardware
    r"|.*\w+Warning: "
)
"""How lines begin that are notes or warnings, for the authors of a program."""


def last_words(said: str, count: int) -> str:
    """Return the last lines on one line; an empty text if nothing was said but what libraries log.

    Args:
        said: What was written.
        count: How many lines at most.
    """
    lines = [line.strip() for line in said.splitlines()]
    return " | ".join([line for line in lines if line and not _CHATTER.match(line)][-count:])

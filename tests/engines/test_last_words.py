"""What is shown of what a process wrote."""

import subprocess
import sys

import pytest

from pinstripe.engines.last_words import last_words

# Seen on standard error of torch 2.13 with torchao 0.18, onnxruntime 1.32 and tensorflow 2.21.
CHATTER = (
    "Failed to load /lib/torchao/_C_mxfp8.cpython-310-x86_64-linux-gnu.so: Could not load this library: /lib/x.so",
    "W1130 12:51:32.680000 19551 torch/utils/_pytree.py:630] <enum 'KernelPreference'> is an Enum subclass",
    "2026-11-30 12:48:59.123456789 [W:onnxruntime:, graph.cc:108 MergeShapeInfo] Error merging shape info",
    "2026-11-30 12:48:59.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is",
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I0000 00:00:1764506939.123456   12345 port.cc:153] oneDNN custom operations are on",
    "/lib/onnx.py:12: TracerWarning: Converting a tensor to a Python boolean",
)


@pytest.mark.parametrize("line", CHATTER)
def test_chatter_is_left_out(line: str) -> None:
    """Neither before nor after what matters is it shown, nor alone."""
    assert last_words(f"{line}\nit broke\n{line}\n", 4) == "it broke"
    assert last_words(f"{line}\n", 4) == ""


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: Failed to load model",
        "E1130 12:51:32.680000 19551 it.cc:1] failed",
        "2026-11-30 12:48:59.1 [E:onnxruntime:, x.cc:1 f] no such operator",
        "Segmentation fault",
        "W is not a weight",
    ],
)
def test_errors_are_kept(line: str) -> None:
    """An error stays, however it is logged."""
    assert last_words(f"first\n\n{line}\n", 2) == f"first | {line}"


def test_torchao_leaves_nothing_to_show() -> None:
    """What the installed version writes when it is imported is all left out."""
    pytest.importorskip("torchao")
    finished = subprocess.run([sys.executable, "-c", "import torchao"], capture_output=True, text=True, check=True)
    assert last_words(finished.stderr, 4) == ""

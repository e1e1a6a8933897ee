"""Options that people write, and what they are told."""

import pytest

from pinstripe.engines import OptionValue, engine
from pinstripe.engines.options import read_options
from pinstripe.errors import EngineError


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("openvino", {"group_size": 16}, "openvino does not take group_size=16; use auto, 32, 64 or 128"),
        ("tf-graph", {"onednn": "yes"}, "does not take onednn=yes; use true or false"),
        ("openvino", {"quantization": True}, "does not take quantization=true; use dynamic or static"),
        ("fake", {"fixed_us": -1}, "does not take fixed_us=-1; use a number"),
        (
            "openvino",
            {"spin": 1},
            r"has no option spin; its options: quantization \(dynamic or static\), group_size",
        ),
        ("torchscript", {"gemm": "mkl"}, "torchscript has no option gemm; its options: flush_denormals"),
    ],
)
def test_a_refusal_says_what_can_be_had(name: str, options: dict[str, OptionValue], said: str) -> None:
    """Every option's values are named, in the words that people write."""
    one = engine(name)
    with pytest.raises(EngineError, match=said):
        read_options(one, options, one.options_type)


def test_static_scales_are_for_int8() -> None:
    """An option without effect is refused, and not carried along."""
    openvino = engine("openvino")
    with pytest.raises(EngineError, match="quantization=static is for int8, and float32 was asked for"):
        openvino.quantization("float32", {"quantization": "static"})  # type: ignore[attr-defined] # of graph engines

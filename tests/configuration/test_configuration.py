"""Configurations: what may be said together, and how it reads in a table."""

import pytest

from pinstripe.configuration import Configuration
from pinstripe.errors import ConfigurationError


def test_a_label_names_the_precision_only_if_it_is_not_float32() -> None:
    """Tables show what is unusual."""
    assert Configuration(engine="openvino", instances=2, cores=1).label == "openvino 2x1"
    assert Configuration(engine="openvino", precision="int8", instances=2, cores=1).label == "openvino int8 2x1"
    static = Configuration(
        engine="openvino", precision="int8", cores=1, calibration="a.txt", options={"quantization": "static"}
    )
    assert static.label == "openvino int8 1x1 calibration=a.txt quantization=static"


def test_calibration_needs_int8() -> None:
    """Texts for scales that nothing uses are a mistake."""
    with pytest.raises(ConfigurationError, match=r"--calibration a.txt is for int8, and bfloat16 was asked for"):
        Configuration(engine="openvino", precision="bfloat16", calibration="a.txt")

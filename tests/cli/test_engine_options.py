"""Words about engines, precisions and interpreters, read."""

import sys
from pathlib import Path

import pytest

from pinstripe.api import Wanted
from pinstripe.cli.engine_options import python_of, read_engines, read_pythons, read_wanted, read_ways
from pinstripe.errors import KnobError, UsageError


def _ways(engines: list[str], **changes: object) -> list[dict[str, object]]:
    usual: dict[str, object] = {
        "precisions": ["float32"],
        "options": [],
        "file": None,
        "calibration": None,
        "pythons": {},
    }
    return read_ways(engines, **{**usual, **changes})  # type: ignore[arg-type] # a test names only what matters to it


def test_engines_times_precisions() -> None:
    """The grid spans engines and precisions, engines first."""
    ways = _ways(["openvino", "onnxruntime"], precisions=["float32", "int8"])

    assert [(way["engine"], way["precision"]) for way in ways] == [
        ("openvino", "float32"),
        ("openvino", "int8"),
        ("onnxruntime", "float32"),
        ("onnxruntime", "int8"),
    ]


def test_options_span_the_grid_of_their_engine_only() -> None:
    """An option named with its engine goes to that one; its usual value is no configuration of its own."""
    ways = _ways(["openvino", "onnxruntime"], options=["onnxruntime.optimization=all,basic"])

    assert [(way["engine"], way["options"]) for way in ways] == [
        ("openvino", {}),
        ("onnxruntime", {}),
        ("onnxruntime", {"optimization": "basic"}),
    ]


def test_calibration_goes_where_it_is_used() -> None:
    """A file of texts is for the static quantization alone."""
    ways = _ways(
        ["openvino"],
        precisions=["float32", "int8"],
        options=["openvino.quantization=dynamic,static"],
        calibration="texts.txt",
    )

    used = [(way["precision"], way["options"]) for way in ways if way.get("calibration")]
    assert used == [("int8", {"quantization": "static"})]


def test_calibration_that_nothing_uses() -> None:
    """It is kept, so that it is refused where the file is made, and not silently dropped."""
    assert [way["calibration"] for way in _ways(["onnxruntime"], calibration="texts.txt")] == ["texts.txt"]


def test_pythons() -> None:
    """An interpreter is for one engine or, without a name, for all that have none of their own."""
    pythons = read_pythons([sys.executable, f"tf-graph={sys.executable}"])

    assert pythons == {None: sys.executable, "tf-graph": sys.executable}
    assert python_of("openvino", {"tf-graph": "elsewhere"}) is None
    assert python_of("openvino", {None: "here", "tf-graph": "elsewhere"}) == "here"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/no/such/python", "--python /no/such/python: there is no such interpreter"),
        (f"tf-grph={sys.executable}", "did you mean tf-graph"),
    ],
)
def test_bad_pythons(text: str, said: str) -> None:
    """A typing error is said at once, before anything is exported."""
    with pytest.raises(UsageError, match=said):
        read_pythons([text])


def test_a_path_with_an_equals_sign(tmp_path: Path) -> None:
    """Only what stands for an engine before the sign is one."""
    path = tmp_path / "a=b"
    path.touch(0o755)

    assert read_pythons([str(path)]) == {None: str(path)}


def test_unknown_engine() -> None:
    """It is not skipped as an impossible part of the grid would be."""
    with pytest.raises(UsageError, match="did you mean openvino"):
        read_engines("onnxruntime,openvin", {})


def test_what_is_wanted() -> None:
    """Options may be named with their engine or without."""
    wanted = read_wanted(
        "onnxruntime", precision="int8", options=["onnxruntime.optimization=basic"], calibration=None, pythons=[]
    )

    assert wanted == Wanted(engine="onnxruntime", precision="int8", options={"optimization": "basic"})


def test_options_of_no_engine() -> None:
    """What only means something for one engine needs its name."""
    with pytest.raises(UsageError, match="optimization is for a certain engine"):
        read_wanted(None, precision="float32", options=["optimization=basic"], calibration=None, pythons=[])
    with pytest.raises(UsageError, match="--precision 'int4' is not known"):
        read_wanted(None, precision="int4", options=[], calibration=None, pythons=[])


def test_knobs_that_are_wanted() -> None:
    """A knob may be written as bench's option is; `auto` asks for nothing; twice is a slip."""
    said = ["flush-denormals=on", "spin=auto", "smt=all"]
    wanted = read_wanted("torch-eager", precision="float32", options=[], calibration=None, pythons=[], knobs=said)
    assert wanted.knobs == {"flush_denormals": "on", "smt": "all"}
    with pytest.raises(UsageError, match=r"^--knob names spin twice, as 0 and as 1; leave one out"):
        read_wanted(None, precision="float32", options=[], calibration=None, pythons=[], knobs=["spin=0", "spin=1"])
    with pytest.raises(KnobError, match="no knob is named 'alocator'"):
        read_wanted(None, precision="float32", options=[], calibration=None, pythons=[], knobs=["alocator=glibc"])

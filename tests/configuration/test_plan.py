"""Plans: files that people write."""

from pathlib import Path

import pytest

from pinstripe.configuration import BatchRule, Configuration, DispatchRule, InstanceGroup, read_plan
from pinstripe.errors import ConfigurationError
from pinstripe.models import Overrides

WHOLE = """
# how our model runs best here
format = 1
model = "org/model"
revision = "abc"

[overrides]
pooling = ["mean"]

[configuration]
engine = "onnxruntime"
instances = 4
cores = 12
options = { optimization = "basic" }
knobs = { spin = "0", allocator = "jemalloc" }

[batching]
tokens = 2048
"""


def _read(tmp_path: Path, content: str) -> object:
    (tmp_path / "plan.toml").write_text(content)
    return read_plan(tmp_path / "plan.toml")


def test_everything_is_read(tmp_path: Path) -> None:
    """Each field of the file reaches the plan."""
    (tmp_path / "plan.toml").write_text(WHOLE)
    plan = read_plan(tmp_path / "plan.toml")

    assert (plan.model, plan.revision, plan.overrides) == ("org/model", "abc", Overrides(pooling=("mean",)))
    assert plan.configuration == Configuration(
        engine="onnxruntime",
        instances=4,
        cores=12,
        options={"optimization": "basic"},
        knobs={"spin": "0", "allocator": "jemalloc"},
    )
    assert plan.batching == BatchRule(tokens=2048)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("format = 1", "format = 2"), "format 2 of a plan is not known"),
        (('model = "org/model"', ""), "missing required field `model`"),
        (("instances = 4", "instance = 4"), "unknown field `instance`"),
        (("instances = 4", 'instances = "4"'), r"Expected `int`, got `str` - at `\$.configuration.instances`"),
        (("instances = 4", "instances = 0"), "0 instances were asked for"),
        (("cores = 12", 'bind = "0-3"'), "cannot bind to CPUs by number"),
        (("cores = 12", 'threads = "framework"\npin = "none"'), "baseline, which no plan may run"),
        (('spin = "0"', "spin = 0"), r"Expected `str`, got `int`.*; the values of knobs stand in quotes$"),
        (('spin = "0"', 'spin = "-1"'), "plan.toml is not a valid plan: spin cannot be '-1'; use 0 to 10000"),
        (('spin = "0"', 'spun = "0"'), "plan.toml is not a valid plan: no knob is named 'spun'; did you mean spin"),
        (('spin = "0"', 'smt = "all"'), r'write smt = "all" beside knobs, not in it'),
        (("tokens = 2048", "tokens = 0"), r"`\$.batching.tokens`"),
        (("[batching]", "[batching"), "not a valid plan"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    """A slip of the hand is said, with the place, and nothing is guessed."""
    with pytest.raises(ConfigurationError, match=message):
        _read(tmp_path, WHOLE.replace(*change))


GROUPED = """
model = "org/model"

[configuration]
engine = "openvino"

[[configuration.groups]]
max_tokens = 32
instances = 2
cores = 1

[[configuration.groups]]
instances = 1
cores = 8

[dispatch]
policy = "fifo"
patience_ms = 50
"""


def test_groups_are_read(tmp_path: Path) -> None:
    """Groups of instances in their order, and how work is given to them."""
    (tmp_path / "plan.toml").write_text(GROUPED)
    plan = read_plan(tmp_path / "plan.toml")

    assert plan.configuration.groups == (
        InstanceGroup(instances=2, cores=1, max_tokens=32),
        InstanceGroup(instances=1, cores=8),
    )
    assert plan.configuration.instances == 3
    assert plan.dispatch == DispatchRule(policy="fifo", patience_ms=50)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("max_tokens = 32\n", ""), "lengths above 0 belong to group 1, which has no max_tokens, and to group 2"),
        (("cores = 8", "cores = 8\nmax_tokens = 20"), "group 2 ends at 20 tokens, and group 1 ends at 32"),
        (("cores = 8", "cores = 8\nmax_tokens = 64"), "lengths above 64 belong to no group"),
        (("cores = 8", ""), r"missing required field `cores` - at `\$.configuration.groups"),
        (("cores = 8", "cores = 8\nmin_tokens = 1"), "unknown field `min_tokens`"),
        (('engine = "openvino"', 'engine = "openvino"\ncores = 4'), "leave out instances and cores"),
        (('policy = "fifo"', 'policy = "lifo"'), r"Invalid enum value 'lifo' - at `\$.dispatch.policy`"),
    ],
)
def test_groups_that_cannot_be(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    """Gaps, a wrong order and slips are said, with the place."""
    with pytest.raises(ConfigurationError, match=message):
        _read(tmp_path, GROUPED.replace(*change))


def test_files_that_are_no_plan(tmp_path: Path) -> None:
    """A missing file, bytes that are no text, and a file that is far too large."""
    with pytest.raises(ConfigurationError, match="cannot read the plan"):
        read_plan(tmp_path / "absent.toml")
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="not a valid plan"):
        read_plan(tmp_path / "a.toml")
    (tmp_path / "b.toml").write_bytes(b"#" * 2_000_000)
    with pytest.raises(ConfigurationError, match="larger than any plan"):
        read_plan(tmp_path / "b.toml")

"""Groups of instances: which lengths each is for, and what cannot be said beside them."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinstripe.configuration import Configuration, InstanceGroup, check_groups, group_of
from pinstripe.errors import ConfigurationError


def group(instances: int, cores: int, max_tokens: int | None = None) -> InstanceGroup:
    """Return a group."""
    return InstanceGroup(instances=instances, cores=cores, max_tokens=max_tokens)


THREE = (group(2, 1, 32), group(1, 4, 128), group(1, 8))


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ((group(0, 1),), "group 1 has 0x1"),
        ((group(1, 1, 32), group(1, -1)), "group 2 has 1x-1"),
        ((group(1_000_000_000, 1),), "group 1 has 1000000000x1 (instances x cores); use 1 to 8192"),
        ((group(5000, 1, 32), group(5000, 1)), "the groups have 10000 instances in all"),
        ((group(1, 1, 32), group(1, 1, 128)), "lengths above 128 belong to no group"),
        (
            (group(1, 1, 32), group(1, 1), group(1, 1)),
            "lengths above 32 belong to group 2, which has no max_tokens, and",
        ),
        ((group(1, 1, 128), group(1, 1, 32), group(1, 1)), "group 2 ends at 32 tokens, and group 1 ends at 128"),
        ((group(1, 1, 32), group(1, 1, 32), group(1, 1)), "group 2 ends at 32 tokens, and group 1 ends at 32"),
        ((group(1, 1, 0), group(1, 1)), "group 1 ends at 0 tokens, and lengths begin at 1"),
    ],
)
def test_each_length_belongs_to_one_group(groups: tuple[InstanceGroup, ...], said: str) -> None:
    """What leaves a length to none or to several is refused in one line that names the lengths."""
    with pytest.raises(ConfigurationError) as caught:
        check_groups(groups)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.integers(1, 1000))
def test_the_group_of_a_length(tokens: int) -> None:
    """A text goes to the first group whose end it does not pass."""
    assert group_of(THREE, tokens) == (0 if tokens < 33 else 1 if tokens < 129 else 2)


def test_no_groups_and_one() -> None:
    """Groups need not be there, and one of all lengths is fine."""
    check_groups(())
    check_groups((group(2, 1),))

    assert group_of((group(2, 1),), 10_000) == 0


def test_the_label_shows_the_groups() -> None:
    """Tables show the lengths and sizes instead of instances x cores."""
    assert Configuration(engine="openvino", groups=THREE).label == "openvino ≤32:2x1 ≤128:1x4 rest:1x8"


def test_groups_decide_the_number_of_instances() -> None:
    """Two, one and one are four, whoever asks; and what they need is known to placement in their order."""
    configuration = Configuration(engine="openvino", groups=THREE)

    assert (configuration.instances, configuration.cores) == (4, None)
    assert configuration.wish.sizes == (1, 1, 4, 8)
    assert (configuration.wish.instances, configuration.wish.cores) == (None, None)
    assert Configuration(engine="openvino").wish.sizes == ()


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"instances": 3}, "groups say how many instances there are (4) and how many cores each has"),
        ({"cores": 1}, "leave out instances and cores"),
        ({"bind": "0-3"}, "groups and --bind 0-3 both say where"),
        ({"threads": "framework", "pin": "none"}, "groups and --threads framework both say where"),
    ],
)
def test_what_contradicts_groups(others: dict[str, object], said: str) -> None:
    """Numbers of instances and cores, CPUs and the unpinned baseline do not go with groups."""
    with pytest.raises(ConfigurationError) as caught:
        Configuration(engine="openvino", groups=THREE, **others)  # type: ignore[arg-type]

    assert said in str(caught.value)


def test_records_with_groups_and_from_before_them() -> None:
    """What is written is read again as it was; a configuration from before groups has none."""
    configuration = Configuration(engine="openvino", groups=THREE)
    written = msgspec.json.encode(configuration)
    old = msgspec.json.decode(msgspec.json.encode(Configuration(engine="openvino", instances=2, cores=1)))
    del old["groups"]

    assert msgspec.json.decode(written, type=Configuration) == configuration
    assert msgspec.convert(old, Configuration) == Configuration(engine="openvino", instances=2, cores=1)

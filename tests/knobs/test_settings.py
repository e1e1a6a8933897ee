"""From knobs to how a worker starts."""

import pytest

from pinstripe.engines import engine
from pinstripe.errors import KnobError
from pinstripe.knobs import Context, Host, combined_setting, knob, knob_names, preload_variable
from pinstripe.knobs.settings import _merged
from pinstripe.testing.machines import c5_metal, container_2cpu, uniform


def _context(engine_name: str = "fake", **chosen: str) -> Context:
    return Context(host=Host(machine=container_2cpu()), engine=engine(engine_name), chosen=chosen)


def test_unknown_knobs_are_named() -> None:
    """A slip gets the name that was meant; anything else all there are."""
    with pytest.raises(KnobError, match=r"no knob is named 'alocator'; did you mean allocator\?"):
        combined_setting(_context(alocator="glibc"))
    with pytest.raises(KnobError, match="no knob is named 'x'; choose one of smt, "):
        combined_setting(_context(x="1"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("smt", "both"), ("allocator", "ptmalloc"), ("spin", "-1"), ("spin", "08"), ("spin", ""), ("isa", "avx9000")],
)
def test_unknown_values_list_the_known_ones(name: str, value: str) -> None:
    """A value that does not exist is refused with those that do; libraries would ignore it silently."""
    with pytest.raises(KnobError, match=f"^{name} cannot be '{value}'; use "):
        combined_setting(_context("torch-eager", **{name: value}))


def test_what_the_machine_lacks_is_refused() -> None:
    """A value that exists, but not here, is refused with the reason; elsewhere it is taken."""
    alone = uniform(smt=1)
    with pytest.raises(KnobError, match=r"^smt=all cannot be had here: no core here has a second hardware thread"):
        combined_setting(Context(host=Host(machine=alone), engine=engine("fake"), chosen={"smt": "all"}))
    combined_setting(Context(host=Host(machine=c5_metal()), engine=engine("fake"), chosen={"smt": "all"}))


def test_a_knob_that_the_engine_does_not_know() -> None:
    """An OpenMP runtime for an engine without OpenMP is refused, and the engine named."""
    with pytest.raises(KnobError, match=r"^openmp=intel is not for onnxruntime, which "):
        combined_setting(_context("onnxruntime", openmp="intel"))


def test_auto_changes_nothing() -> None:
    """Nothing asked for, nothing set."""
    names = [name for name in knob_names() if name != "smt"]
    setting = combined_setting(_context("torch-eager", **dict.fromkeys(names, "auto")))
    assert (setting.environment, setting.preload, setting.huge_pages, setting.options) == ({}, (), "inherit", {})


def test_preloads_go_before_inherited_ones() -> None:
    """What the user preloads already stays, after ours, each once."""
    inherited = {"LD_PRELOAD": "/a/libfirst.so:/a/libsecond.so"}
    assert preload_variable(("/b/lib.so",), (), inherited) == {"LD_PRELOAD": "/b/lib.so:/a/libfirst.so:/a/libsecond.so"}
    swapped = {"LD_PRELOAD": "/a/libsecond.so:/a/libfirst.so"}
    assert preload_variable(("/a/libsecond.so",), (), inherited) == swapped
    assert preload_variable(("/a/libfirst.so",), (), inherited) == preload_variable((), (), inherited) == {}


def test_preloads_that_a_worker_must_not_get() -> None:
    """They are taken out, and the variable where nothing is left; what is wanted all the same stays."""
    inherited = {"LD_PRELOAD": "/a/libfirst.so libsecond.so"}
    assert preload_variable((), ("libsecond.so",), inherited) == {"LD_PRELOAD": "/a/libfirst.so"}
    assert preload_variable((), ("/a/libfirst.so", "libsecond.so"), inherited) == {"LD_PRELOAD": None}
    wanted = preload_variable(("libsecond.so",), ("libsecond.so",), inherited)
    assert wanted == {"LD_PRELOAD": "libsecond.so:/a/libfirst.so"}
    assert preload_variable((), ("/c/lib.so",), inherited) == preload_variable((), ("/c/lib.so",), {}) == {}


@pytest.mark.parametrize("path", ["/opt/my libs/libjemalloc.so.2", "/opt/a:b/libjemalloc.so.2"])
def test_paths_that_the_loader_would_split(path: str) -> None:
    """ld.so splits its list at spaces and colons, and would only warn that the parts do not exist."""
    with pytest.raises(KnobError, match="its path has a space or colon"):
        preload_variable((path,), (), {})


@pytest.mark.parametrize("name", knob_names())
def test_every_knob_describes_itself(name: str) -> None:
    """Its values are values, its default is one or `auto`, and what it lists is not `auto`."""
    one = knob(name)
    assert one.name == name
    assert one.values()
    assert all(one.is_value(value) for value in one.values())
    assert "auto" not in one.values()
    assert one.default == "auto" or one.is_value(one.default)
    assert not one.is_value("no such value")
    assert not one.is_value("")
    assert one.summary
    assert one.accepts


def test_inherited_settings_of_the_c_library_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking glibc for huge pages keeps what a worker inherits of its tunables; a named allocator begins anew."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=2:glibc.cpu.x86_shstk=off")
    host = Host(machine=container_2cpu(), huge_pages="madvise", kernel=(6, 1), glibc=(2, 36))

    def tunables(**chosen: str) -> set[str]:
        setting = combined_setting(Context(host=host, engine=engine("fake"), chosen=chosen))
        return set((setting.environment["GLIBC_TUNABLES"] or "").split(":"))

    huge = "glibc.malloc.hugetlb=1"
    assert tunables(hugepages="always") == {"glibc.malloc.arena_max=2", "glibc.cpu.x86_shstk=off", huge}
    for chosen in ({"allocator": "glibc", "hugepages": "always"}, {"hugepages": "always", "allocator": "glibc"}):
        assert tunables(**chosen) == {"glibc.cpu.x86_shstk=off", huge}
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0")  # nothing there that concerns malloc
    for allocator in ("auto", "glibc", "glibc-tuned"):
        for chosen in (
            {"allocator": allocator, "hugepages": "always"},
            {"hugepages": "always", "allocator": allocator},
        ):
            assert {"glibc.pthread.rseq=0", huge} <= tunables(**chosen)


def test_inherited_settings_of_jemalloc_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A jemalloc that is inherited, not asked for, is asked for huge pages besides what it was told already."""
    monkeypatch.setenv("LD_PRELOAD", "libjemalloc.so.2")
    monkeypatch.setenv("MALLOC_CONF", "narenas:3")
    host = Host(machine=container_2cpu(), huge_pages="madvise", kernel=(6, 1), glibc=(2, 36))
    setting = combined_setting(Context(host=host, engine=engine("fake"), chosen={"hugepages": "always"}))
    assert setting.environment == {"MALLOC_CONF": "narenas:3,thp:always"}


@pytest.mark.parametrize("name", knob_names())
@pytest.mark.parametrize("text", ["9" * 5000, "-1", "+1", "1.5", "1e3", "٣", " 1", "1 ", "0x10", "True", "é", "a,b"])
def test_no_value_breaks_a_knob(name: str, text: str) -> None:
    """Whatever people write, it is a value or it is not."""
    assert not knob(name).is_value(text)


def test_two_knobs_want_one_variable() -> None:
    """What one removes another may set; two values exclude each other; settings in lists stand side by side."""
    assert _merged("OMP_WAIT_POLICY", "passive", None) == "passive"
    assert _merged("OMP_WAIT_POLICY", None, "active") == "active"
    assert _merged("MALLOC_CONF", "thp:always", "dirty_decay_ms:-1") == "thp:always,dirty_decay_ms:-1"
    with pytest.raises(KnobError, match="two knobs set OMP_WAIT_POLICY, to 'passive' and to 'active'"):
        _merged("OMP_WAIT_POLICY", "passive", "active")

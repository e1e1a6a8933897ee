"""Finding allocators and OpenMP runtimes on disk."""

import sys
from pathlib import Path

import pytest

from pinstripe.runtime.installed import find_libraries, python_directories

OWN = Path(sys.executable).read_bytes()[:64]
"""A head that says: for this processor."""
FOREIGN = OWN[:18] + b"\xff\xfe" + OWN[20:]
MULTIARCH = "usr/lib/x86_64-linux-gnu"


def lay(root: Path, *paths: str, content: bytes = OWN) -> None:
    """Write shared objects below a root."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)


def found(root: Path, *directories: Path) -> dict[str, str]:
    """Return the names by path below the root."""
    libraries = find_libraries(root, directories).own
    return {str(Path(library.path).relative_to(root)): library.name for library in libraries}


def test_distributions_names(tmp_path: Path) -> None:
    """Debian's packages put versioned files, without a plain `.so`, into the multi-architecture directory."""
    files = {
        f"{MULTIARCH}/libtcmalloc_minimal.so.4": "tcmalloc",
        f"{MULTIARCH}/libjemalloc.so.2": "jemalloc",
        f"{MULTIARCH}/libmimalloc.so.2.0": "mimalloc",
        f"{MULTIARCH}/libgomp.so.1.0.0": "gomp",
        "usr/lib64/libomp.so.5": "omp",
        "usr/local/lib/libiomp5.so": "iomp",
    }
    lay(tmp_path, *files)
    lay(tmp_path, f"{MULTIARCH}/libz.so.1", f"{MULTIARCH}/libc.so.6", f"{MULTIARCH}/libjemalloc_notes.txt")
    assert found(tmp_path) == files


def test_links_count_once(tmp_path: Path) -> None:
    """A library and the links to it are one; a link to nowhere is none."""
    lay(tmp_path, f"{MULTIARCH}/libjemalloc.so.2.0.1")
    (tmp_path / MULTIARCH / "libjemalloc.so.2").symlink_to("libjemalloc.so.2.0.1")
    (tmp_path / MULTIARCH / "libtcmalloc.so.4").symlink_to("gone")
    assert list(found(tmp_path)) == [f"{MULTIARCH}/libjemalloc.so.2.0.1"]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(FOREIGN, id="another processor"),
        pytest.param(b"/* script */", id="text"),
        pytest.param(b"", id="empty"),
    ],
)
def test_unusable_files(tmp_path: Path, content: bytes) -> None:
    """What this processor cannot load cannot be preloaded."""
    lay(tmp_path, f"{MULTIARCH}/libjemalloc.so.2", content=content)
    assert found(tmp_path) == {}


def test_slow_builds_do_not_count(tmp_path: Path) -> None:
    """Nobody wants a slow one preloaded."""
    lay(tmp_path, f"{MULTIARCH}/libtcmalloc_debug.so.4", f"{MULTIARCH}/libmimalloc-secure.so.2")
    assert found(tmp_path) == {}


def test_loader_configuration(tmp_path: Path) -> None:
    """Directories of the loader's configuration are searched, through includes, and circles of them end."""
    lay(tmp_path, "opt/fast/libjemalloc.so.2", "opt/other/libtcmalloc.so.4")
    (tmp_path / "etc/ld.so.conf.d").mkdir(parents=True)
    (tmp_path / "etc/ld.so.conf").write_text("include ld.so.conf.d/*.conf\n# /no/such\n/opt/other # yes\n")
    (tmp_path / "etc/ld.so.conf.d/fast.conf").write_text("/opt/fast\ninclude /etc/ld.so.conf\n")
    assert set(found(tmp_path).values()) == {"jemalloc", "tcmalloc"}


def test_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries of wheels are found where wheels put them."""
    site = tmp_path / "site-packages"
    files = {
        "site-packages/cmeel.prefix/lib/libmimalloc.so.3.4": "mimalloc",
        "site-packages/scikit_learn.libs/libgomp-e985bcbb.so.1.0.0": "gomp",
        "site-packages/torch/lib/libgomp.so.1": "gomp",
    }
    lay(tmp_path, *files)
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(site))
    assert found(tmp_path, *(path for path in python_directories() if path.is_relative_to(site))) == files


def test_the_wheels_version_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel has copies where a package has links: each is found, so that the one that names its version is."""
    site = tmp_path / "site-packages"
    wheel = "site-packages/cmeel.prefix/lib/libmimalloc.so"
    lay(tmp_path, wheel, f"{wheel}.3", f"{wheel}.3.4", f"{MULTIARCH}/libmimalloc.so.2.0")
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(site))
    names = found(tmp_path, *(path for path in python_directories() if path.is_relative_to(site)))
    assert set(names) == {wheel, f"{wheel}.3", f"{wheel}.3.4", f"{MULTIARCH}/libmimalloc.so.2.0"}


def test_for_other_processors(tmp_path: Path) -> None:
    """They are told from those for this one; what is no library is neither."""
    lay(tmp_path, f"{MULTIARCH}/libjemalloc.so.2", content=FOREIGN)
    lay(tmp_path, f"{MULTIARCH}/libmimalloc.so.2")
    lay(tmp_path, f"{MULTIARCH}/libtcmalloc.so", content=b"/* script */")
    libraries = find_libraries(tmp_path, ())
    assert [library.path for library in libraries.foreign] == [str(tmp_path / MULTIARCH / "libjemalloc.so.2")]
    assert [library.path for library in libraries.own] == [str(tmp_path / MULTIARCH / "libmimalloc.so.2")]

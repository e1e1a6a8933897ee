"""What a guest is made of: Debian's kernel and Python, which are downloaded once and never installed."""

import re
import shutil
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from pinstripe.cache import build_once, cache_directory

from .cpio import Cpio

__all__ = ["Image", "PackagesError", "find_image"]

_KERNEL = "linux-image-cloud-amd64"  # everything that is needed is built in; no module is loaded
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_PACKAGES = (
    f"{_PYTHON}-minimal",
    f"lib{_PYTHON}-minimal",
    f"lib{_PYTHON}-stdlib",
    "libc6",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "libstdc++6",
    "zlib1g",
)
_LIBRARIES = "lib/x86_64-linux-gnu"
_NEEDED_LIBRARIES = ("ld-linux-x86-64", "libc", "libdl", "libexpat", "libgcc_s", "libm", "libpthread", "librt", "libz")
_UNNEEDED = re.compile(
    r"""(bin/.* | etc | usr/sbin | usr/share | usr/lib/x86_64-linux-gnu/(gconv|audit|perl5)
    | usr/lib/python3\.\d+/(
        ensurepip | idlelib | lib2to3 | pydoc_data | sqlite3 | test | tkinter | turtledemo | unittest
        | lib-dynload/(_test|xx|_codecs_|_tkinter|_ssl|_sqlite|_curses|_dbm|_gdbm|readline|_bz2|_lzma|_hashlib).*
    ))""",
    re.VERBOSE,
)
_COMMANDS = ("cat", "echo", "kill", "mkdir", "mount", "printf", "sh", "sleep", "stty", "touch", "tr", "umount")


class PackagesError(Exception):
    """Packages cannot be downloaded here."""


class Image:
    """Files in the cache.

    Attributes:
        kernel: The kernel.
        root: Archive of the first file system.
    """

    def __init__(self, directory: Path) -> None:
        self.kernel = directory / "kernel"
        self.root = directory / "root.cpio"


def find_image() -> Image:
    """Return the image, made first if it is not in the cache; that takes some 5 s.

    Raises:
        PackagesError: Its packages cannot be downloaded.
    """
    recipe = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("image.py", "cpio.py", "init.sh"))
    directory = cache_directory() / "virtual-machines" / sha256(_PYTHON.encode() + recipe).hexdigest()[:16]
    return Image(build_once(directory, _build))


def _build(directory: Path) -> None:
    image = Image(directory)
    with tempfile.TemporaryDirectory(dir=directory) as temporary:
        root = Path(temporary)
        _unpack((_kernel_package(),), root / "kernel")
        shutil.copy(next((root / "kernel/boot").glob("vmlinuz-*")), image.kernel)
        _unpack(_PACKAGES, root / "python")
        image.root.write_bytes(_first_files(root / "python"))


def _kernel_package() -> str:
    listed = _run("apt-cache", "depends", _KERNEL)
    found = re.search(r"Depends: (linux-image-\S+)", listed)
    if found is None:
        raise PackagesError(f"apt-cache names no kernel for {_KERNEL}")
    return found[1]


def _unpack(packages: tuple[str, ...], root: Path) -> None:
    root.mkdir()
    _run("apt-get", "download", *packages, folder=root)
    for package in root.glob("*.deb"):
        _run("dpkg-deb", "--extract", str(package), str(root))
        package.unlink()


def _run(*command: str, folder: Path | None = None) -> str:
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    except FileNotFoundError as error:
        raise PackagesError(f"there is no {command[0]}") from error
    except subprocess.TimeoutExpired as error:
        raise PackagesError(f"{' '.join(command)} did not end") from error
    if run.returncode:
        raise PackagesError(f"{' '.join(command)} failed: {' '.join(run.stderr.split())}")
    return run.stdout


def _first_files(packages: Path) -> bytes:
    archive = Cpio()
    archive.device("dev/console", 5, 1)
    archive.device("dev/null", 1, 3)
    for directory in ("proc", "sys", "tmp", "root", "run", "site"):
        archive.directory(directory)
    archive.file("init", Path(__file__).with_name("init.sh").read_bytes(), 0o755)
    archive.file("bin/busybox", Path(shutil.which("busybox") or "busybox").read_bytes(), 0o755)
    for command in _COMMANDS:
        archive.link(f"bin/{command}", "busybox")
    archive.tree(packages, "", skip=lambda path: _is_unneeded(path.relative_to(packages)))
    archive.link("usr/bin/python3", _PYTHON)
    return archive.finished()


def _is_unneeded(path: Path) -> bool:
    if str(path.parent) == _LIBRARIES:
        return path.name.partition(".so")[0] not in _NEEDED_LIBRARIES
    return _UNNEEDED.fullmatch(str(path)) is not None

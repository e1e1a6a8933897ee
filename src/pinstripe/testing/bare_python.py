"""A Python environment that has the named packages of this one, pinstripe, and nothing else."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["WORKER_NEEDS", "make_bare_python"]

WORKER_NEEDS: Final = ("msgspec", "numpy")
"""What a worker needs beside its engine."""


def make_bare_python(
    directory: Path, packages: tuple[str, ...] = WORKER_NEEDS, *, with_pinstripe: bool = True, startup: str = ""
) -> Path:
    """Make an environment; takes half a second.

    Args:
        directory: Where; it is made.
        packages: Packages that it gets, by links to this environment's.
        with_pinstripe: Whether it gets pinstripe, from where this one was imported.
        startup: Code that runs in its interpreter before anything else.

    Returns:
        Its interpreter.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    site = next(directory.glob("lib/python3*/site-packages"))
    for name in packages:
        source = _directory(name)
        (site / name).symlink_to(source)
        if (libraries := source.with_name(f"{name}.libs")).is_dir():  # what its extensions are linked to
            (site / libraries.name).symlink_to(libraries)
    if with_pinstripe:
        (site / "pinstripe.pth").write_text(f"{_directory('pinstripe').parent}\n")
    (site / "sitecustomize.py").write_text(startup)
    return directory / "bin" / "python"


def _directory(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{package} is not installed here", name=package)
    return Path(spec.origin).parent

"""Models carried by installed Python packages."""

import importlib.util
from pathlib import Path

from pinstripe.errors import ModelError

__all__ = ["installed_package", "model_in_package"]


def installed_package(name: str) -> str | None:
    """Return the import name of an installed package by that or by its distribution's name; None if there is none.

    A distribution such as `some-model` usually carries the package `some_model`.
    """
    package = name.replace("-", "_")
    return None if _locations(package) is None else package


def model_in_package(package: str) -> Path:
    """Return the one model directory below an installed package, which is found but not imported.

    Args:
        package: Import name of a top-level package.

    Raises:
        ModelError: There is no such package, it carries no model (`config.json` with safetensors), or several.
    """
    roots = _locations(package)
    if roots is None:
        meant = installed_package(package)
        advice = f"did you mean package:{meant}?" if meant else "install it, or name a directory"
        raise ModelError(f"no Python package {package!r} is installed here; {advice}")
    models = [model for root in roots for model in _models_below(root)]
    if not models:
        raise ModelError(f"the package {package} carries no directory with config.json and safetensors; name another")
    if len(models) > 1:
        listed = ", ".join(str(model) for model in models)
        raise ModelError(f"the package {package} carries several models; name one of the directories: {listed}")
    return models[0]


def _locations(package: str) -> list[Path] | None:
    """Return the directories of a top-level package, none for a module of one file; None if it is not installed."""
    try:
        spec = importlib.util.find_spec(package) if package.isidentifier() else None
    except ValueError:  # a module that runs without being installed, such as __main__
        return None
    return None if spec is None else [Path(root) for root in spec.submodule_search_locations or ()]


def _models_below(root: Path) -> list[Path]:
    """Return directories that hold a model, but not the parts of one, such as its dense layer."""
    models: list[Path] = []
    for config in sorted(root.rglob("config.json"), key=lambda path: (len(path.parts), path)):
        directory = config.parent
        inside = any(model in directory.parents for model in models)
        if not inside and next(directory.glob("*.safetensors"), None) is not None:
            models.append(directory)
    return models

"""Models carried by installed Python packages."""

import importlib.util
from pathlib import Path

from pinstripe.errors import ModelError

__all__ = ["model_in_package"]


def model_in_package(package: str) -> Path:
    """Return the one model directory below an installed package, which is found but not imported.

    Args:
        package: Import name of a top-level package.

    Raises:
        ModelError: There is no such package, it carries no model (`config.json` with safetensors), or several.
    """
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec is None:
        raise ModelError(f"no Python package {package!r} is installed here; install it, or name a directory")
    models = [model for root in spec.submodule_search_locations or () for model in _models_below(Path(root))]
    if not models:
        raise ModelError(f"the package {package} carries no directory with config.json and safetensors; name another")
    if len(models) > 1:
        listed = ", ".join(str(model) for model in models)
        raise ModelError(f"the package {package} carries several models; name one of the directories: {listed}")
    return models[0]


def _models_below(root: Path) -> list[Path]:
    """Return directories that hold a model, but not the parts of one, such as its dense layer."""
    models: list[Path] = []
    for config in sorted(root.rglob("config.json"), key=lambda path: (len(path.parts), path)):
        directory = config.parent
        inside = any(model in directory.parents for model in models)
        if not inside and next(directory.glob("*.safetensors"), None) is not None:
            models.append(directory)
    return models

"""A rival's own virtual environment, made with plain pip on first use."""

import os
import shutil
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FASTEMBED", "ONNX", "OPENVINO", "TORCH", "Environment", "export"]

# One release for all. It comes first and is named again in each step, so that nothing replaces it.
_TORCH = "torch==2.13.0"


@dataclass(frozen=True, slots=True)
class Environment:
    """Packages that work together.

    Attributes:
        name: Directory that it is kept in.
        steps: Arguments of pip, one call after the other.
    """

    name: str
    steps: tuple[tuple[str, ...], ...]

    def make(self, parent: Path) -> Path:
        """Return the environment's Python; installs what is needed unless it is there already.

        Args:
            parent: Directory that holds all environments.

        Raises:
            CalledProcessError: Something could not be installed; pip says what on standard error.
        """
        directory = (parent / self.name).absolute()
        python, done = directory / "bin" / "python", directory / "installed.txt"
        recipe = "".join(f"pip {' '.join(step)}\n" for step in self.steps)
        if done.is_file() and done.read_text() == recipe:
            return python
        shutil.rmtree(directory, ignore_errors=True)
        venv.create(directory, with_pip=True)
        for step in self.steps:
            command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *step]
            subprocess.run(command, check=True)
        done.write_text(recipe)
        return python


TORCH = Environment(
    "torch", (("install", _TORCH), ("install", _TORCH, "sentence-transformers==6.2.0", "transformers==5.24.0"))
)
# optimum-onnx 0.1.0 wants transformers below 4.58, and sentence-transformers 6 wants 5: so the last release of 5.
ONNX = Environment(
    "onnx",
    (
        ("install", _TORCH),
        (
            "install",
            _TORCH,
            "sentence-transformers==5.7.0",
            "optimum-onnx==0.1.0",
            "onnx==1.23.2",
            "onnxruntime==1.32.0",
            "transformers==4.57.6",
        ),
    ),
)
# optimum-intel brings a torchvision that was built for CUDA, and does not load beside a torch that was not.
OPENVINO = Environment(
    "openvino",
    (
        ("install", _TORCH),
        (
            "install",
            _TORCH,
            "sentence-transformers==6.2.0",
            "optimum-intel==2.2.0",
            "openvino==2026.4.1",
            "nncf==3.4.0",
            "transformers==5.5.4",
        ),
        ("uninstall", "--yes", "torchvision"),
    ),
)
FASTEMBED = Environment("fastembed", (("install", "fastembed==0.9.1", "onnxruntime==1.32.0"),))


def export(backend: str, model: str, parent: Path) -> str:
    """Return the directory with a model's float32 graph, as sentence-transformers writes it; makes it on first use.

    Args:
        backend: `onnx` or `openvino`.
        model: The model's own directory.
        parent: Directory that holds all environments.

    Raises:
        CalledProcessError: It could not be written; the log in `parent` says why.
    """
    directory = parent / f"exported-{backend}"
    if not (directory / "modules.json").is_file():
        python = {"onnx": ONNX, "openvino": OPENVINO}[backend].make(parent)
        command = [str(python), str(Path(__file__).with_name("export.py")), backend, model, str(directory)]
        with (parent / f"export-{backend}.log").open("w") as log:
            subprocess.run(command, stdout=log, stderr=log, env=os.environ | {"HF_HUB_OFFLINE": "1"}, check=True)
    return str(directory)

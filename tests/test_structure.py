"""The rules of the house that no linter knows."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pinstripe

SOURCE = Path(pinstripe.__file__).parent
ROOMS = (
    *("statistics", "machine", "placement", "runtime", "models", "engines", "knobs", "configuration", "pool"),
    *("simulate", "texts", "dispatch", "load", "api", "accuracy", "bulk", "peak", "bench", "diagnosis", "cli"),
)
SHARED = {"errors", "cache", "__init__"}


def _imported_rooms(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("pinstripe.")}


@pytest.mark.parametrize("room", ROOMS)
def test_a_package_imports_only_from_those_above_it(room: str) -> None:
    """The order of the rooms is the order of knowledge: placement knows no processes, the engines no pool."""
    above = {*ROOMS[: ROOMS.index(room) + 1], *SHARED}
    for path in (SOURCE / room).rglob("*.py"):
        assert _imported_rooms(path) <= above, path


@pytest.mark.parametrize("module", [info.name for info in pkgutil.walk_packages([str(SOURCE)], "pinstripe.")])
def test_what_a_module_exports_is_there(module: str) -> None:
    """`__all__` names what exists, without repetition."""
    loaded = importlib.import_module(module)
    exported = getattr(loaded, "__all__", [])

    assert len(set(exported)) == len(exported)
    assert all(hasattr(loaded, name) for name in exported)


@pytest.mark.parametrize("room", ROOMS[:-1])
def test_importing_a_package_imports_no_framework(room: str) -> None:
    """Frameworks, tokenizers and the hub's client are imported when they are used, not before."""
    code = f"import sys, pinstripe.{room}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    heavy = {
        "torch",
        "transformers",
        "onnxruntime",
        "onnx",
        "openvino",
        "tokenizers",
        "huggingface_hub",
        "typer",
        "rich",
    }
    assert not heavy & set(modules)

"""Engines by name; the file of one is imported when it is asked for."""

import difflib
import importlib
from typing import Final, cast

from pinstripe.engines.protocol import Engine
from pinstripe.errors import EngineError

__all__ = ["FOR_TESTS", "engine", "engine_names"]

FOR_TESTS: Final = "fake"
"""Runs no network; it is not offered to people."""
_ENGINES: Final = {
    "fake": ("pinstripe.testing.fake_engine", "FakeEngine"),
    "onnxruntime": ("pinstripe.engines.onnxruntime", "OnnxRuntime"),
    "openvino": ("pinstripe.engines.openvino", "OpenVino"),
    "tf-eager": ("pinstripe.engines.tf_eager", "TfEager"),
    "tf-graph": ("pinstripe.engines.tf_graph", "TfGraph"),
    "tf-xla": ("pinstripe.engines.tf_xla", "TfXla"),
    "torch-compile": ("pinstripe.engines.torch_compile", "TorchCompile"),
    "torch-eager": ("pinstripe.engines.torch_eager", "TorchEager"),
    "torchscript": ("pinstripe.engines.torchscript", "TorchScript"),
}


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines, sorted, whether or not their libraries are installed."""
    return tuple(_ENGINES)


def engine(name: str) -> Engine:
    """Return the engine of that name; its library is imported by `Engine.load`, not here.

    Raises:
        EngineError: There is none; the message lists those that there are.
    """
    if name not in _ENGINES:
        near = [known for known in _ENGINES if known.startswith(name)] or difflib.get_close_matches(name, _ENGINES, 1)
        known = ", ".join(one for one in _ENGINES if one != FOR_TESTS)
        hint = f"did you mean {' or '.join(near)}?" if near and name else f"choose one of {known}"
        raise EngineError(f"no engine is named {name!r}; {hint}")
    module, kind = _ENGINES[name]
    return cast("Engine", getattr(importlib.import_module(module), kind)())

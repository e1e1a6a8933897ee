"""Find how a BERT-like model runs best on the CPUs you have, and run it that way.

Example:
    >>> with pinstripe.open("sentence-transformers/all-MiniLM-L6-v2") as model:
    ...     vectors = model.encode(["a text", "another one"])
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pinstripe.api import AsyncModel, Model, open_async
    from pinstripe.api import open_model as open  # noqa: A004 - read as pinstripe.open, as in gzip.open

__all__ = ["AsyncModel", "Model", "__version__", "open", "open_async"]

__version__ = "0.1.0"

_IN_API = {"AsyncModel": "AsyncModel", "Model": "Model", "open": "open_model", "open_async": "open_async"}


def __getattr__(name: str) -> Any:
    """Import what is asked for: workers, and `pinstripe --help`, need none of it."""
    if name not in _IN_API:
        raise AttributeError(f"module 'pinstripe' has no attribute {name!r}")
    from pinstripe import api  # noqa: PLC0415

    return getattr(api, _IN_API[name])

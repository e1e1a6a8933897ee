"""What an engine is: the forward pass of a network, and nothing around it."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.models import Network, TokenBatch

__all__ = [
    "Artefact",
    "ArtefactFormat",
    "Compiling",
    "Engine",
    "EngineReport",
    "GraphEngine",
    "LoadRequest",
    "LoadedModel",
    "OptionValue",
    "Precision",
    "Quantization",
    "Threading",
]

Precision = Literal["float32", "bfloat16", "int8"]
"""Of the matrix products with weights: int8 multiplies 8-bit integers and leaves the rest to float32 or bfloat16."""
Compiling = Literal["never", "loading", "shapes"]
"""Never for minutes; when a network is first loaded; whenever a batch has another number of texts or length."""
Threading = Literal["openmp", "tbb", "own", "none"]
"""What runs an engine's compute threads: an OpenMP runtime, TBB, a pool of its own; or it has none."""
Quantization = Literal["none", "dynamic", "weights", "static"]
"""How a graph's file is quantized before an engine loads it: not at all; weights by channel, with activations quantized
as they come, written into the graph (`dynamic`) or left to the engine (`weights`); or activations by fixed scales that
calibration texts gave (`static`)."""
ArtefactFormat = Literal["safetensors", "onnx", "openvino", "none"]
OptionValue = str | int | float | bool


class Artefact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file an engine loads.

    Attributes:
        format: Its kind; `none` for an engine that reads no file (the fake).
        path: The `.onnx` or `.xml` file; for `safetensors`, the model's directory; empty for `none`.
        origin: `model` for a file that came with the model, `export` for one that pinstripe made and caches.
        quantization: How its weights were quantized; `none` for one that the engine quantizes while loading, if at all.
        calibration: Digest of the texts that gave the scales of a `static` one; None for others.
    """

    format: ArtefactFormat
    path: str
    origin: Literal["model", "export"]
    quantization: Quantization = "none"
    calibration: str | None = None


class LoadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to load, and how to run it.

    Attributes:
        network: The model.
        artefact: The file to load.
        precision: Precision of the computation; an engine that would compute in another one refuses.
        threads: Compute threads, at least 1; None leaves the framework's own choice (the unpinned baseline).
        options: Options of the engine by name; an unknown name or value is an `EngineError`.
    """

    network: Network
    artefact: Artefact
    precision: Precision = "float32"
    threads: int | None = None
    options: dict[str, OptionValue] = {}


class EngineReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a loaded engine says of itself, read back from the framework and not copied from the request.

    Attributes:
        engine: Its name.
        version: Version of the library that computes.
        precision: Precision it really computes in.
        threads: Compute threads it really uses.
        settings: Further settings read back, by the library's own names.
    """

    engine: str
    version: str
    precision: str
    threads: int
    settings: dict[str, str] = {}


class LoadedModel(Protocol):
    """A network in memory, ready to run. Used by one thread at a time."""

    def forward(self, batch: TokenBatch) -> NDArray[np.float32]:
        """Run the network.

        Args:
            batch: Token ids; at most `Network.max_tokens` long.

        Returns:
            float32, C-contiguous. By task: the last hidden state [batch, sequence, hidden_size] for embedding; logits
            [batch, labels] for classification and reranking, [batch, sequence, labels] for token classification,
            [batch, sequence, vocab_size] for fill-mask, [batch, sequence, 2] (start, end) for question answering.
            Values at padding positions are unspecified.
        """
        ...

    def report(self) -> EngineReport:
        """Return what is in effect; after the first `forward`, for frameworks that start threads late."""
        ...


class Engine(Protocol):
    """How a forward pass is executed. Importing the module that holds an engine must not import its library."""

    name: ClassVar[str]
    format: ClassVar[ArtefactFormat]
    precisions: ClassVar[tuple[Precision, ...]]
    """What it can compute in, on a CPU that has the instructions."""
    distributions: ClassVar[tuple[str, ...]]
    """Python distributions it needs at run time, the computing one first, such as `("onnxruntime",)`."""
    also_needs: ClassVar[Mapping[Precision, str]]
    """Distributions that a precision needs besides."""
    extra: ClassVar[str]
    """Extra of pinstripe that installs them."""
    options_type: ClassVar[type[msgspec.Struct]]
    """Its options, each with a default."""
    threading: ClassVar[Threading]
    """What runs its compute threads."""
    compiles: ClassVar[Compiling]
    """When it may take minutes to compile the network, and not be hung."""

    def load(self, request: LoadRequest) -> LoadedModel:
        """Load a network.

        Args:
            request: What to load and how to run it.

        Raises:
            EngineError: The library is missing, or cannot do what was asked.
        """
        ...


class GraphEngine(Engine, Protocol):
    """An engine that loads an exported graph."""

    def quantization(self, precision: Precision, options: Mapping[str, OptionValue]) -> Quantization:
        """Return how the file that it loads is to be quantized.

        Args:
            precision: One of its precisions.
            options: Options of the engine, by name.

        Raises:
            EngineError: An option is unknown or its value not allowed.
        """
        ...

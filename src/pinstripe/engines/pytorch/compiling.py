"""A network as a library that inductor compiled, made once and kept in the cache."""

import hashlib
import warnings
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from pinstripe.cache import cache_directory, load_once_built
from pinstripe.engines.importing import one_line
from pinstripe.engines.instruction_sets import isa_limits
from pinstripe.engines.protocol import LoadRequest
from pinstripe.engines.pytorch.checking import check_graph
from pinstripe.engines.pytorch.inputs import example_inputs
from pinstripe.engines.pytorch.precision import load_precise_module, read_precision
from pinstripe.errors import EngineError, ExecutionError
from pinstripe.machine import read_isa

__all__ = ["CompiledModel", "load_compiled"]

_MODEL: Final = "model"
_VERSION: Final = 1
"""Of what is made here; raised when it changes."""
_EXAMPLE: Final = (3, 8)
"""Neither 0 nor 1, which the compiler would take for constants."""


def load_compiled(torch: Any, request: LoadRequest) -> "CompiledModel":
    """Load the compiled network, made first if there is none for this CPU and these versions, or only a damaged one.

    Raises:
        EngineError: There is no C++ compiler, the family cannot be compiled, or gives other results when it is.
        ExecutionError: The cache cannot be written.
    """

    def build(directory: Path) -> None:
        _check_compiler()
        module = load_precise_module(torch, request)
        archive = _compile(torch, module, request, directory)
        # Unpacked, all instances map one library, instead of each unpacking it to a directory that a killed one leaves.
        with zipfile.ZipFile(archive) as package:
            package.extractall(directory)
        archive.unlink()
        check_graph(torch, CompiledModel(torch, directory / _MODEL), module, request, "compiled by inductor")

    directory = cache_directory() / "torch-compile" / _key(request)
    return load_once_built(directory, build, lambda built: CompiledModel(torch, built / _MODEL), ExecutionError)


def _key(request: LoadRequest) -> str:
    """Everything that the compiled code depends on; not threads, whose number is taken from OpenMP at run time."""
    libraries = ("torch", "transformers", *(("torchao",) if request.precision == "int8" else ()))
    versions = [f"{name}-{metadata.version(name)}" for name in libraries]
    limits = (f"{name}={value}" for name, value in isa_limits().items())
    digest = hashlib.sha256("\n".join((*versions, *read_isa(), *limits)).encode()).hexdigest()[:16]
    network = request.network
    return f"{network.fingerprint}-{network.task}-{request.precision}-{digest}-{_VERSION}"


def _check_compiler() -> None:
    from torch._inductor.cpp_builder import get_cpp_compiler  # noqa: PLC0415 - takes seconds
    from torch._inductor.exc import InvalidCxxCompiler  # noqa: PLC0415

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        message = "torch-compile needs a C++ compiler and finds none"
        raise EngineError(f"{message}; install g++, or name one in CXX, or use engine torch-eager") from error


def _compile(torch: Any, module: Any, request: LoadRequest, directory: Path) -> Path:
    """Compile a module to an archive in the directory."""
    from torch._inductor.cpu_vec_isa import pick_vec_isa  # noqa: PLC0415 - takes seconds
    from torch._inductor.utils import fresh_cache  # noqa: PLC0415

    inputs = example_inputs(torch, request.network, *_EXAMPLE)
    dims = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("length", min=2, max=request.network.positions)}
    options = {
        "freezing": True,
        "compile_threads": 1,  # what compiles is two files; processes to do it would stay
        "cpp.dynamic_threads": True,
        "aot_inductor.metadata": {"precision": read_precision(torch, module), "vector_isa": str(pick_vec_isa())},
    }
    try:
        # Intermediate files, among them a copy of the weights, go when it is done.
        with torch.no_grad(), fresh_cache(dir=str(directory)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what torch calls inside itself
            exported = torch.export.export(module, inputs, dynamic_shapes=(dims, dims, dims)[: len(inputs)])
            path = str(directory / f"{_MODEL}.pt2")
            torch._inductor.aoti_compile_and_package(exported, package_path=path, inductor_configs=options)  # noqa: SLF001 - documented by this name
    except Exception as error:  # the exporter's and the compiler's have no common base
        network = request.network
        message = f"torch-compile cannot compile {network.name} ({network.model_type}): {one_line(error)}"
        raise EngineError(f"{message}; use engine torch-eager") from error
    return Path(path)


class CompiledModel:
    """A compiled network, loaded."""

    def __init__(self, torch: Any, package: Path) -> None:
        """Load one.

        Raises:
            ExecutionError: It is damaged.
        """
        try:
            # One runner, without locks: a model is used by one thread at a time. Only this form takes a directory.
            self._loader = torch._C._aoti.AOTIModelPackageLoader(str(package), _MODEL, True, 1, -1)  # noqa: FBT003, SLF001
        except RuntimeError as error:
            message = f"torch cannot load {package}: {one_line(error)}"
            raise ExecutionError(f"{message}; delete that directory, and the model will be compiled again") from error
        self.metadata: dict[str, str] = dict(self._loader.get_metadata())

    def __call__(self, *inputs: Any) -> Any:
        """Return the result for the inputs of `load_module`'s module, all of them tensors."""
        return self._loader.run(list(inputs))[0]

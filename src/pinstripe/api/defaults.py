"""How a model runs where nobody said how."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from msgspec.structs import asdict

from pinstripe.api.wanted import Wanted
from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact, Precision, engine
from pinstripe.errors import EngineError
from pinstripe.knobs import OF_PLACEMENT
from pinstripe.machine import Machine
from pinstripe.models import Network
from pinstripe.placement import Wish, place

__all__ = ["default_configuration"]

_ANY: Final = Wanted()
_PREFERRED: Final[dict[Precision, tuple[str, ...]]] = {
    "float32": ("openvino", "onnxruntime", "torch-eager"),
    "bfloat16": ("openvino", "torch-eager"),
    "int8": ("openvino", "onnxruntime"),
}
"""Best first. In float32, with MiniLM over 1,000 texts, ONNX Runtime has 0.90 to 0.96 of OpenVINO's rate;
torch cannot be told from either (0.79 to 1.12 of OpenVINO's) and takes twice the memory (`bench --texts`, 5 rounds)."""
_MEMORY_SHARE: Final = 0.5
"""Of the memory that is available; the rest is for batches, results and everybody else."""
_BASE_BYTES: Final = 300 << 20
"""An interpreter with an engine's library, before any weights."""
_COPIES: Final = 2
"""Weights as they were read, and as the engine packs them."""
_BYTES_A_PARAMETER: Final = 4


def default_configuration(
    machine: Machine,
    network: Network,
    prepare: Callable[[Configuration], Artefact],
    *,
    memory_bytes: int | None,
    wanted: Wanted = _ANY,
) -> tuple[Configuration, tuple[str, ...]]:
    """Choose what was not named, for throughput: the fastest engine that is here, and one instance on each core.

    Instances of one core each need no synchronisation between cores. There are fewer of them, of more cores, where
    half of the available memory could not hold so many copies of the model.

    Args:
        machine: Where it will run.
        network: The model.
        prepare: Finds or makes the file that an engine loads; an engine that has none is passed over.
        memory_bytes: Memory that is available; None if that is unknown.
        wanted: What was said; None there is chosen, but for the cores if a number of instances is given.

    Returns:
        The configuration, and what was decided against and why, a sentence each.

    Raises:
        EngineError: No engine is installed that can run the model; the message says what each lacks.
        PlacementError: The machine has no core to offer.
    """
    chosen, notes = (wanted.engine, ()) if wanted.engine else _usable_engine(prepare, wanted)
    instances = wanted.instances
    if wanted.groups:
        return _configuration(wanted, chosen), notes
    if instances is None and wanted.cores is None:
        instances, remark = _instances(machine, network, memory_bytes)
        notes += remark
    elif instances is None:
        instances = len(place(machine, Wish(cores=wanted.cores)).instances)
    return _configuration(wanted, chosen, instances or 1), notes


def _configuration(wanted: Wanted, engine_name: str, instances: int = 1) -> Configuration:
    fields = {name: value for name, value in wanted.knobs.items() if name in OF_PLACEMENT}
    said = {**asdict(wanted), "engine": engine_name, "instances": instances, **fields}
    return Configuration(**said | {"knobs": {name: wanted.knobs[name] for name in wanted.knobs.keys() - fields.keys()}})


def _usable_engine(prepare: Callable[[Configuration], Artefact], wanted: Wanted) -> tuple[str, tuple[str, ...]]:
    reasons = []
    for name in _PREFERRED[wanted.precision]:
        missing = [one for one in engine(name).distributions if find_spec(one) is None]
        if missing:
            reasons.append(f"{name} is not used: {' and '.join(missing)} not installed")
            continue
        try:
            prepare(_configuration(wanted, name))
        except EngineError as error:
            reasons.append(f"{name} is not used: {error}")
        else:
            return name, tuple(reasons)
    message = f"no engine can run this model in {wanted.precision}; pip install 'pinstripe[all]'"
    raise EngineError(f"{message} ({'; '.join(reasons)})")


def _instances(machine: Machine, network: Network, memory_bytes: int | None) -> tuple[int, tuple[str, ...]]:
    one_a_core = len(place(machine, Wish(cores=1)).instances)
    if memory_bytes is None:
        return one_a_core, ()
    most = max(1, int(memory_bytes * _MEMORY_SHARE) // (_BASE_BYTES + _COPIES * _weight_bytes(network)))
    if most >= one_a_core:
        return one_a_core, ()
    # A divisor of the cores, so that none stays idle.
    instances = max(count for count in range(1, most + 1) if one_a_core % count == 0)
    return instances, (
        f"{instances} instances instead of {one_a_core}: half of the available memory holds no more copies",
    )


def _weight_bytes(network: Network) -> int:
    """Word embeddings, and of each layer the attention's four matrices and the feed-forward part's two."""
    width = network.hidden_size
    layer = 4 * width * width + 2 * width * network.intermediate_size
    return _BYTES_A_PARAMETER * (network.vocab_size * width + network.layers * layer)

"""How a model runs where nobody said how."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from pinstripe.configuration import Configuration
from pinstripe.engines import Artefact, engine
from pinstripe.errors import EngineError
from pinstripe.machine import Machine
from pinstripe.models import Network
from pinstripe.placement import Wish, place

__all__ = ["default_configuration"]

_PREFERRED: Final = ("openvino", "onnxruntime", "torch-eager")
"""Best first in float32: with MiniLM over 1,000 texts, ONNX Runtime has 0.90 to 0.96 of OpenVINO's rate;
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
    engine_name: str | None = None,
    instances: int | None = None,
    cores: int | None = None,
) -> tuple[Configuration, tuple[str, ...]]:
    """Choose what was not named, for throughput: the fastest engine that is here, and one instance on each core.

    Instances of one core each need no synchronisation between cores. There are fewer of them, of more cores, where
    half of the available memory could not hold so many copies of the model.

    Args:
        machine: Where it will run.
        network: The model.
        prepare: Finds or makes the file that an engine loads; an engine that has none is passed over.
        memory_bytes: Memory that is available; None if that is unknown.
        engine_name: Engine to use; None to choose.
        instances: Number of instances; None to choose.
        cores: Cores of each; None to choose, or for an equal share if `instances` is given.

    Returns:
        The configuration, and what was decided against and why, a sentence each.

    Raises:
        EngineError: No engine is installed that can run the model; the message says what each lacks.
        PlacementError: The machine has no core to offer.
    """
    chosen, notes = (engine_name, ()) if engine_name else _usable_engine(prepare)
    if instances is None and cores is None:
        instances, remark = _instances(machine, network, memory_bytes)
        notes += remark
    elif instances is None:
        instances = len(place(machine, Wish(cores=cores)).instances)
    return Configuration(engine=chosen, instances=instances or 1, cores=cores), notes


def _usable_engine(prepare: Callable[[Configuration], Artefact]) -> tuple[str, tuple[str, ...]]:
    reasons = []
    for name in _PREFERRED:
        missing = [one for one in engine(name).distributions if find_spec(one) is None]
        if missing:
            reasons.append(f"{name} is not used: {' and '.join(missing)} not installed")
            continue
        try:
            prepare(Configuration(engine=name))
        except EngineError as error:
            reasons.append(f"{name} is not used: {error}")
        else:
            return name, tuple(reasons)
    raise EngineError(f"no engine can run this model; pip install 'pinstripe[all]' ({'; '.join(reasons)})")


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

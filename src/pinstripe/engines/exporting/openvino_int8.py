"""A float32 OpenVINO graph as an int8 one."""

from pathlib import Path

from pinstripe.engines.exporting.calibration import read_batches
from pinstripe.engines.exporting.openvino_graph import save_openvino
from pinstripe.engines.graphs.inputs import GraphInputs
from pinstripe.engines.graphs.openvino_library import import_openvino, openvino_core
from pinstripe.engines.importing import import_library
from pinstripe.models import Network

__all__ = ["write_int8_openvino"]


def write_int8_openvino(network: Network, source: Path, target: Path, calibration: Path | None) -> None:
    """Quantize weights by channel, and with calibration texts activations, too, by fixed scales.

    Args:
        network: The model.
        source: The float32 graph.
        target: File to make.
        calibration: File of token batches (see `write_batches`); None to leave activations to OpenVINO's dynamic
            quantization.

    Raises:
        EngineError: A library is missing.
        OSError: The file cannot be written.
    """
    openvino = import_openvino()
    nncf = import_library("nncf", extra="export")
    graph = openvino_core().read_model(str(source))
    if calibration is None:
        graph = nncf.compress_weights(graph, mode=nncf.CompressWeightsMode.INT8_SYM)
    else:
        types = {port.get_any_name(): port.get_element_type().to_dtype() for port in graph.inputs}
        inputs = GraphInputs(types, network, str(source))
        samples = [inputs.arrays(batch) for batch in read_batches(calibration)]
        graph = nncf.quantize(
            graph,
            nncf.Dataset(samples),
            model_type=nncf.ModelType.TRANSFORMER,
            preset=nncf.QuantizationPreset.MIXED,
            subset_size=len(samples),
        )
    save_openvino(openvino, graph, target)

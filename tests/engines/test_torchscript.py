"""What is particular to TorchScript."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from pinstripe.engines import Artefact, LoadRequest, Precision, engine
from pinstripe.engines.precision import has_bfloat16
from pinstripe.engines.pytorch.checking import check_graph
from pinstripe.errors import EngineError
from pinstripe.machine import read_isa
from pinstripe.models import Network
from pinstripe.testing.engine_conformance import make_batch

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

_ENGINE = "torchscript"


def _request(network: Network, precision: Precision = "float32") -> LoadRequest:
    artefact = Artefact(format="safetensors", path=network.directory, origin="model")
    return LoadRequest(network=network, artefact=artefact, threads=1, precision=precision)


@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [
        ("float32", 1e-5),
        pytest.param(
            "bfloat16",
            0.06,
            marks=pytest.mark.skipif(not has_bfloat16(read_isa()), reason="this CPU does not multiply bfloat16"),
        ),
    ],
)
@pytest.mark.parametrize("family", ["deberta-v3", "modernbert", "mpnet", "xlm-roberta"])
def test_other_lengths_than_the_traced_one(
    family: str, precision: Precision, tolerance: float, tiny: Callable[[str], Network]
) -> None:
    """Families with relative, rotary or shifted positions give what transformers gives, short and long, in its type."""
    network = tiny(f"{family}-embedding")
    model = engine(_ENGINE).load(_request(network, precision))
    assert model.report().precision == precision
    original = transformers.AutoModel.from_pretrained(network.directory, dtype=getattr(torch, precision)).eval()
    for lengths in [(1,), (48, 20, 1), (2, 2)]:
        batch = make_batch(network, *lengths)
        ids, mask = torch.tensor(batch.ids.tolist()), torch.tensor(batch.attention_mask().tolist())
        with torch.no_grad():
            expected = original(input_ids=ids, attention_mask=mask).last_hidden_state.float().numpy()
        real = batch.attention_mask().astype(bool)
        np.testing.assert_allclose(model.forward(batch)[real], expected[real], rtol=0, atol=tolerance)


def test_int8_is_refused(tiny: Callable[[str], Network]) -> None:
    """There is no int8, and the message says what there is."""
    with pytest.raises(EngineError, match="torchscript does not compute in int8; choose one of float32, bfloat16"):
        engine(_ENGINE).load(_request(tiny("bert-embedding"), "int8"))


def _module(result: Callable[[Any], Any]) -> Any:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined] # torch is imported by pytest
        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
            return result(input_ids) + 0.0 * (attention_mask + token_type_ids)[..., None]

    return Module().eval()


def test_a_trace_that_keeps_the_length_is_refused(
    tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a trace took for a constant is found on loading, and the shape named."""
    module = _module(lambda ids: ids[..., None] / int(ids.shape[1]))
    monkeypatch.setattr("pinstripe.engines.torchscript.load_precise_module", lambda *_: module)
    wrong = r"traced by torchscript at 2 x 8 tokens, is wrong by \d.* of the largest value at 1 x 1; use .* torch-eager"
    with pytest.raises(EngineError, match=wrong):
        engine(_ENGINE).load(_request(tiny("bert-embedding")))


def test_a_trace_that_fails_at_another_length_is_refused(
    tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace that works for the traced length only is refused on loading, in one line."""
    module = _module(lambda ids: ids[..., None] + torch.zeros(int(ids.shape[1]), 2)[None, :, :] * 1.0)
    monkeypatch.setattr("pinstripe.engines.torchscript.load_precise_module", lambda *_: module)
    with pytest.raises(EngineError, match=r"tokens, (gives shape|fails with)") as caught:
        engine(_ENGINE).load(_request(tiny("bert-embedding")))
    assert "\n" not in str(caught.value)


def test_what_cannot_be_traced_is_refused(tiny: Callable[[str], Network], monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that the tracer cannot follow is refused, with its family."""
    module = _module(lambda ids: {"no": ids})
    monkeypatch.setattr(module, "forward", lambda *_: object())
    monkeypatch.setattr("pinstripe.engines.torchscript.load_precise_module", lambda *_: module)
    with pytest.raises(EngineError, match=r"torchscript cannot trace .*bert.*use engine torch-eager") as caught:
        engine(_ENGINE).load(_request(tiny("bert-embedding")))
    assert "\n" not in str(caught.value)


def test_padding_may_differ(tiny: Callable[[str], Network]) -> None:
    """Only at real tokens must a graph agree with the model; for one result a text, everywhere."""

    def module(_: Any, mask: Any, *__: Any) -> Any:
        return torch.ones(*mask.shape, 2)

    def graph(_: Any, mask: Any, *__: Any) -> Any:
        return torch.where(mask[..., None].bool(), 1.0, 9.0).expand(-1, -1, 2)

    request = _request(tiny("bert-embedding"))
    check_graph(torch, graph, module, request, "made")
    network = msgspec.structs.replace(request.network, task="classification")
    with pytest.raises(EngineError, match="made, is wrong by 8 of the largest value at 3 x 5"):
        check_graph(torch, graph, module, msgspec.structs.replace(request, network=network), "made")


def test_what_is_not_a_number_is_refused(tiny: Callable[[str], Network]) -> None:
    """A graph that gives NaN is wrong, though NaN is not larger than any tolerance."""
    with pytest.raises(EngineError, match="is wrong by nan"):
        check_graph(
            torch,
            lambda *inputs: torch.full((*inputs[0].shape, 2), torch.nan),
            lambda *inputs: torch.ones(*inputs[0].shape, 2),
            _request(tiny("bert-embedding")),
            "made",
        )

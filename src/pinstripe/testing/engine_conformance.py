"""What holds for every engine, as tests to inherit: `class TestMine(EngineConformance)`, set up by a fixture."""

from typing import Any, Final

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe.engines import LoadedModel, LoadRequest, engine
from pinstripe.errors import EngineError
from pinstripe.models import Network, TokenBatch

__all__ = ["EngineConformance", "make_batch"]

_ONE_RESULT_A_TEXT: Final = ("classification", "reranking")


def make_batch(network: Network, *lengths: int, seed: int = 0) -> TokenBatch:
    """Return a batch of pseudo-random texts.

    Args:
        network: Gives the range of ids and the padding id, which does not occur inside a text.
        *lengths: Tokens of each text.
        seed: The first text of a seed begins alike, whatever its neighbours and length.
    """
    ids = np.full((len(lengths), max(lengths)), network.pad_token_id, np.int32)
    for row, length in enumerate(lengths):
        random = np.random.default_rng((seed, row))
        ids[row, :length] = (network.pad_token_id + random.integers(1, network.vocab_size, length)) % network.vocab_size
    return TokenBatch(ids=ids, lengths=np.array(lengths, np.int32))


class EngineConformance:
    """Tests of the engine protocol.

    A subclass sets, in an autouse fixture of class scope:

    Attributes:
        engine_name: Name of the engine.
        load_request: What is loaded, with a number of threads named.
        model: The model loaded from that.
        tolerance: Largest difference allowed between a text alone and among others.
    """

    engine_name: str
    load_request: LoadRequest
    model: LoadedModel
    tolerance: float = 1e-4

    @property
    def network(self) -> Network:
        """The loaded network."""
        return self.load_request.network

    def test_shape_and_type(self) -> None:
        """Results are C-contiguous float32 of the task's shape, for 1 to 8 texts of 1 token to the longest."""
        longest = self.network.max_tokens
        for size, length in [(1, 1), (1, longest), (2, 1), (3, 2), (4, 7), (5, 16), (6, 31), (7, 3), (8, longest)]:
            output = self.model.forward(make_batch(self.network, *[length] * size))
            assert output.shape == self._shape(size, length)
            assert output.dtype == np.float32
            assert output.flags.c_contiguous
            assert np.isfinite(output).all()

    def test_repeats_itself(self) -> None:
        """The same batch gives the same numbers, and another batch others."""
        batch = make_batch(self.network, 9, 4)
        first = self.model.forward(batch)
        np.testing.assert_array_equal(first, self.model.forward(batch))
        other = self.model.forward(make_batch(self.network, 9, 4, seed=1))
        assert np.abs(first - other).max() > self.tolerance

    @pytest.mark.parametrize("neighbours", [(), (6,), (20,), (1, 31), (6, 6, 3, 9, 1, 2, 8)])
    def test_neighbours_do_not_matter(self, neighbours: tuple[int, ...]) -> None:
        """A text's result is the same alone, among others, and with padding."""
        alone = self.model.forward(make_batch(self.network, 6))
        among = self.model.forward(make_batch(self.network, 6, *neighbours))
        np.testing.assert_allclose(self._text(among, 0, 6), self._text(alone, 0, 6), rtol=0, atol=self.tolerance)

    def test_ids_behind_the_length_do_not_matter(self) -> None:
        """A padded text gives the same result whatever is written where the padding is."""
        batch = make_batch(self.network, 5, 8)
        ids = batch.ids.copy()
        ids[0, 5:] = ids[1, 5:]
        if self.network.model_type == "roberta":
            pytest.skip("this family derives positions from the padding id, so only that may stand behind a text")
        output, other = self.model.forward(batch), self.model.forward(TokenBatch(ids=ids, lengths=batch.lengths))
        np.testing.assert_allclose(self._text(other, 0, 5), self._text(output, 0, 5), rtol=0, atol=self.tolerance)

    def test_token_types_reach_the_network(self) -> None:
        """Token types of zero are the default, and others change the result where the family has them."""
        batch = make_batch(self.network, 8)
        zeros = TokenBatch(ids=batch.ids, lengths=batch.lengths, type_ids=np.zeros_like(batch.ids))
        default = self.model.forward(batch)
        np.testing.assert_allclose(self.model.forward(zeros), default, rtol=0, atol=self.tolerance)
        if self.network.type_vocab_size > 1:
            ones = TokenBatch(ids=batch.ids, lengths=batch.lengths, type_ids=np.ones_like(batch.ids))
            assert np.abs(self.model.forward(ones) - default).max() > self.tolerance

    def test_results_are_kept(self) -> None:
        """A result is not overwritten by later forwards, nor do they see what was done to it."""
        batch = make_batch(self.network, 7, 7)
        first = self.model.forward(batch)
        copy = first.copy()
        self.model.forward(make_batch(self.network, 7, 7, seed=1))
        np.testing.assert_array_equal(first, copy)
        first[:] = 0
        np.testing.assert_array_equal(self.model.forward(batch), copy)

    def test_the_batch_is_left_alone(self) -> None:
        """The ids of a batch may be read-only memory, such as a buffer that came through a socket."""
        batch = make_batch(self.network, 3, 6)
        batch.ids.flags.writeable = batch.lengths.flags.writeable = False
        self.model.forward(batch)

    def test_report(self) -> None:
        """The report names the engine, float32, and the threads that were asked for."""
        self.model.forward(make_batch(self.network, 4))
        report = self.model.report()
        assert report.engine == self.engine_name
        assert report.precision == "float32"
        assert report.threads == self.load_request.threads
        assert report.version
        assert msgspec.json.decode(msgspec.json.encode(report), type=type(report)) == report

    def test_framework_threads(self) -> None:
        """Without a thread count the engine's own choice is in effect, and reported."""
        model = self._load(threads=None)
        model.forward(make_batch(self.network, 4))
        assert model.report().threads >= 1

    def test_no_threads(self) -> None:
        """Less than one thread is refused, and not taken for a choice of the engine's own."""
        with pytest.raises(EngineError, match="0 threads were asked for"):
            self._load(threads=0)

    def test_unknown_option(self) -> None:
        """An option that the engine does not have is refused by name."""
        with pytest.raises(EngineError, match="no_such_option"):
            self._load(options={"no_such_option": 1})

    def test_wrong_artefact(self) -> None:
        """A file of another format is refused."""
        kind = "onnx" if self.load_request.artefact.format != "onnx" else "openvino"
        artefact = msgspec.structs.replace(self.load_request.artefact, format=kind)
        with pytest.raises(EngineError, match=kind):
            self._load(artefact=artefact)

    def _load(self, **changes: Any) -> LoadedModel:
        return engine(self.engine_name).load(msgspec.structs.replace(self.load_request, **changes))

    def _shape(self, size: int, length: int) -> tuple[int, ...]:
        labels = max(1, len(self.network.labels))
        widths = {"embedding": self.network.hidden_size, "fill-mask": self.network.vocab_size, "question-answering": 2}
        width = widths.get(self.network.task, labels)
        return (size, width) if self.network.task in _ONE_RESULT_A_TEXT else (size, length, width)

    def _text(self, output: NDArray[np.float32], row: int, length: int) -> NDArray[np.float32]:
        return output[row] if self.network.task in _ONE_RESULT_A_TEXT else output[row, :length]

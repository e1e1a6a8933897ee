"""What holds for every engine, as tests to inherit: `class TestMine(EngineConformance)`, set up by a fixture."""

from typing import Any, Final

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from pinstripe.engines import LoadedModel, LoadRequest, Precision, engine
from pinstripe.errors import EngineError
from pinstripe.models import Network, TokenBatch, first_position

__all__ = ["TOLERANCES", "EngineConformance", "make_batch"]

TOLERANCES: Final[dict[Precision, float]] = {"float32": 1e-4, "bfloat16": 0.03, "int8": 0.5}
"""Largest difference between a text's result alone and among others: length of the difference to that of the result.

Another batch is another order of summation: in float32 that is some units of 2^-23 a layer. bfloat16 rounds each to
2^-8, some layers deep. Dynamic int8 may take the scale of activations over the whole batch, so that a neighbour with a
large value leaves fewer steps to all others, and random ids have such values; its bound only says that the result is
still that of this text (unrelated ones differ by 1 and more).
"""
_DIFFERENT: Final = 1e-3
"""Least difference between results of different inputs; what is computed twice alike is the same to the last bit."""


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
    """

    engine_name: str
    load_request: LoadRequest
    model: LoadedModel

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
        assert np.abs(self._text(first, 0, 9) - self._text(other, 0, 9)).max() > _DIFFERENT

    @pytest.mark.parametrize("length", [6, 1])
    @pytest.mark.parametrize("neighbours", [(), (6,), (20,), (1, 31), (6, 6, 3, 9, 1, 2, 8)])
    def test_neighbours_do_not_matter(self, length: int, neighbours: tuple[int, ...]) -> None:
        """A text's result is the same alone, among others, and with padding, even if it has one token."""
        self._check_neighbours(length, *neighbours)

    def test_longest(self) -> None:
        """A text that takes every position of the network, alone and beside a short one."""
        self._check_neighbours(self.network.positions, 3)

    def test_ids_behind_the_length_do_not_matter(self) -> None:
        """A padded text gives the same result whatever is written where the padding is."""
        batch = make_batch(self.network, 5, 8)
        ids = batch.ids.copy()
        ids[0, 5:] = ids[1, 5:]
        if first_position(self.network.model_type, self.network.pad_token_id):
            pytest.skip("this family derives positions from the padding id, so only that may stand behind a text")
        output, other = self.model.forward(batch), self.model.forward(TokenBatch(ids=ids, lengths=batch.lengths))
        self._check_close(self._text(other, 0, 5), self._text(output, 0, 5))

    def test_token_types_reach_the_network(self) -> None:
        """Token types of zero are the default, and others change the result where the family has them."""
        batch = make_batch(self.network, 8)
        zeros = TokenBatch(ids=batch.ids, lengths=batch.lengths, type_ids=np.zeros_like(batch.ids))
        default = self.model.forward(batch)
        self._check_close(self.model.forward(zeros), default)
        if self.network.type_vocab_size > 1:
            ones = TokenBatch(ids=batch.ids, lengths=batch.lengths, type_ids=np.ones_like(batch.ids))
            assert np.abs(self.model.forward(ones) - default).max() > _DIFFERENT

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
        """The report names the engine, and the precision and the threads that were asked for."""
        self.model.forward(make_batch(self.network, 4))
        report = self.model.report()
        assert report.engine == self.engine_name
        assert report.precision == self.load_request.precision
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

    def test_unknown_precision(self) -> None:
        """A precision that the engine does not have is refused, with those that it has."""
        own = engine(self.engine_name).precisions
        with pytest.raises(EngineError, match=f"does not compute in float8; choose one of {', '.join(own)}"):
            self._load(precision="float8")

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

    def _check_neighbours(self, length: int, *neighbours: int) -> None:
        alone = self.model.forward(make_batch(self.network, length))
        among = self.model.forward(make_batch(self.network, length, *neighbours))
        self._check_close(self._text(among, 0, length), self._text(alone, 0, length))

    def _check_close(self, found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
        size = max(1.0, float(np.linalg.norm(expected)))  # a single logit may be near 0
        assert np.linalg.norm(found - expected) <= TOLERANCES[self.load_request.precision] * size

    def _load(self, **changes: Any) -> LoadedModel:
        return engine(self.engine_name).load(msgspec.structs.replace(self.load_request, **changes))

    def _shape(self, size: int, length: int) -> tuple[int, ...]:
        labels = max(1, len(self.network.labels))
        widths = {"embedding": self.network.hidden_size, "fill-mask": self.network.vocab_size, "question-answering": 2}
        width = widths.get(self.network.task, labels)
        return (size, width) if self.network.one_result_a_text else (size, length, width)

    def _text(self, output: NDArray[np.float32], row: int, length: int) -> NDArray[np.float32]:
        return output[row] if self.network.one_result_a_text else output[row, :length]

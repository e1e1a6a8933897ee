"""Batches of a fixed shape, and of texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from pinstripe.bench import TokenizedTexts, fixed_batch
from pinstripe.bench.inputs import fixed_texts, split_batch, tokenize
from pinstripe.configuration import BatchRule, InstanceGroup
from pinstripe.errors import ConfigurationError, ModelError
from pinstripe.models import EncodedText, Network, TokenBatch
from pinstripe.testing.fake_engine import fake_network


@pytest.fixture
def five_tokens(tmp_path: Path) -> Network:
    """A network that knows the words a and b, and takes three of them beside [CLS] and [SEP]."""
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
    return replace(fake_network(vocab_size=7, pad_token_id=0), directory=str(tmp_path), max_tokens=5)


def test_batch_has_the_shape_without_padding_or_repetition() -> None:
    """Every position is a real token of the vocabulary, and texts differ."""
    network = fake_network(vocab_size=1000, pad_token_id=3)
    batch = fixed_batch(network, 4, 64)

    assert batch.ids.shape == (4, 64)
    assert not batch.padded
    assert batch.ids.min() >= 0
    assert batch.ids.max() < 1000
    assert 3 not in batch.ids
    assert len({row.tobytes() for row in batch.ids}) == 4


def test_same_seed_gives_the_same_batch() -> None:
    """A repeat measures the same ids."""
    assert np.array_equal(fixed_batch(fake_network(), 2, 8).ids, fixed_batch(fake_network(), 2, 8).ids)


def test_text_beyond_the_network_is_refused() -> None:
    """A length that the network has no positions for is a usage error that says the limit."""
    with pytest.raises(ConfigurationError, match="at most 512"):
        fixed_batch(fake_network(), 1, 513)


def test_texts_are_cut_at_the_limit_and_counted(five_tokens: Network) -> None:
    """Three words fill the limit and are whole; four and nine words are cut."""
    texts = tokenize(five_tokens, ["a", "a b a", "a b a b", "b a b b b b b b b"])

    assert texts.lengths.tolist() == [3, 5, 5, 5]
    assert texts.cut == 2


def test_batches_hold_every_text_once_by_the_rule(five_tokens: Network) -> None:
    """Sorted, the long ones come first: 5 + 5 tokens fit into 10, then 4 + 3 padded to 8."""
    texts = tokenize(five_tokens, ["a", "a b a", "a b", "b b b"])
    batches = texts.batches(BatchRule(tokens=10))

    assert [batch.lengths.tolist() for batch in batches] == [[5, 5], [4, 3]]
    assert batches[1].ids.tolist() == [[2, 5, 6, 3], [2, 5, 3, 0]]
    arrived = texts.batches(BatchRule(order="arrival", texts=3))
    assert [batch.lengths.tolist() for batch in arrived] == [[3, 5, 4], [5]]


def test_model_without_a_tokenizer_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """A model of random weights has no tokenizer: it can be measured with fixed lengths only."""
    with pytest.raises(ModelError, match=r"no tokenizer.*--seq"):
        tokenize(replace(fake_network(), directory=str(tmp_path)), ["a"])


def test_parts_of_a_batch_lose_needless_padding_and_no_text() -> None:
    """Five texts over three instances are 2, 2 and 1, each padded to its own longest; two texts make two parts."""
    ids = np.arange(1, 31, dtype=np.int32).reshape(5, 6)
    batch = TokenBatch(ids=ids, lengths=np.array([6, 5, 4, 3, 2], np.int32), type_ids=ids % 2)
    parts = split_batch(batch, 3)

    assert [part.ids.shape for part in parts] == [(2, 6), (2, 4), (1, 2)]
    assert [part.lengths.tolist() for part in parts] == [[6, 5], [4, 3], [2]]
    assert parts[1].ids.tolist() == [[13, 14, 15, 16], [19, 20, 21, 22]]
    assert parts[2].type_ids is not None
    assert parts[2].type_ids.tolist() == [[1, 0]]
    assert len(split_batch(parts[0], 3)) == 2


def test_groups_keep_length_classes_apart() -> None:
    """No batch holds texts of two groups, however many tokens it may have, and every text is in one."""

    def pad(rows: Sequence[EncodedText]) -> TokenBatch:
        lengths = np.array([len(row) for row in rows], np.int32)
        return TokenBatch(ids=np.ones((len(rows), lengths.max()), np.int32), lengths=lengths)

    rows = tuple(EncodedText(np.ones(length, np.int32)) for length in (3, 9, 4, 8, 2, 30))
    texts = TokenizedTexts(rows=rows, cut=0, pad=pad)
    groups = (InstanceGroup(instances=1, cores=1, max_tokens=4), InstanceGroup(instances=1, cores=1))

    lengths = [batch.lengths.tolist() for batch in texts.batches(BatchRule(tokens=1000), groups)]

    assert sorted(length for batch in lengths for length in batch) == [2, 3, 4, 8, 9, 30]
    assert all(max(batch) <= 4 or min(batch) > 4 for batch in lengths)


def test_fixed_texts_have_one_length_and_differ() -> None:
    """As many tokens as asked for, no padding, and different ids in different texts."""
    texts = fixed_texts(fake_network(), 16)
    batch = texts.pad(texts.rows[:3])

    assert {len(row) for row in texts.rows} == {16}
    assert not batch.padded
    assert len({tuple(row) for row in batch.ids.tolist()}) == 3

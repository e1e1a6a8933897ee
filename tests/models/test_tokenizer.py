"""Token ids against transformers' own, token for token."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pinstripe import models
from pinstripe.errors import ModelError, UsageError

pytest.importorskip("tokenizers")

Build = Callable[..., Path]
CORPUS = Path(__file__).parents[2] / ".." / "shared" / "corpus" / "texts.jsonl"
ODD = [
    "",
    " ",
    "\n\t  \r\n",
    "Hello, WORLD!",
    "中文和English混合。テスト 한국어",
    "naïve café Ångström İstanbul ﬁ ǅ ß",
    "e\u0301 decomposed, \u00e9 composed",
    "👩\u200d👩\u200d👧 🇩🇪 👍🏽",
    "control \x00 \x01 \x7f \x85 \u2028 \u200b \ufeff \ufffd end",
    "[CLS] [MASK] [SEP] [PAD] [UNK] [mask]",
    "##ing ### # [[[ ]]]",
    "pneumonoultramicroscopicsilicovolcanoconiosis" * 4,
    "x" * 5000,
    "word " * 5000,
    "1234567890 3.14159e-10 $9.99 50% a_b-c/d\\e",
    "Ж\u0301 Ελληνικά ΣΊΣΥΦΟΣ עברית عربى हिन्दी ไทย",
]
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "hello",
    "##s",
    "Hello",
    "é",
    "e",
    "中",
    "文",
    "中文",
    ",",
    "\u2028",
]
VOCABULARY = {"vocab.txt": "\n".join(WORDS) + "\n"}


def ids(rows: list[models.EncodedText]) -> list[list[int]]:
    """Return token ids as plain lists."""
    return [row.ids.tolist() for row in rows]


def corpus() -> list[str]:
    """Return the shared real texts."""
    if not CORPUS.is_file():
        pytest.skip("the shared corpus is not beside the repository")
    return [json.loads(line)["text"] for line in CORPUS.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def tokenizer(minilm: models.Network) -> models.Tokenizer:
    """Return MiniLM's tokenizer."""
    return models.load_tokenizer(minilm)


def reference(directory: str | Path) -> Any:
    """Return transformers' tokenizer of a directory."""
    transformers = pytest.importorskip("transformers")
    return transformers.AutoTokenizer.from_pretrained(str(directory))


def test_every_text_of_the_corpus_gives_transformers_tokens(
    minilm: models.Network, tokenizer: models.Tokenizer
) -> None:
    """Queries, passages and documents, many of them beyond the limit of 256."""
    texts = corpus()
    expected = reference(minilm.directory)(texts, truncation=True, max_length=256)["input_ids"]
    assert ids(tokenizer.encode(texts)) == expected
    assert max(map(len, expected)) == 256


def test_odd_texts_give_transformers_tokens(minilm: models.Network, tokenizer: models.Tokenizer) -> None:
    """Scripts, emoji, control characters, nothing at all, one endless word."""
    expected = reference(minilm.directory)(ODD, truncation=True, max_length=256)["input_ids"]
    assert ids(tokenizer.encode(ODD)) == expected


def test_pairs_give_transformers_tokens_and_types(minilm: models.Network, tokenizer: models.Tokenizer) -> None:
    """The longer text is cut first; the second has type 1."""
    pairs = [("query", "passage"), ("a " * 300, "b"), ("a", "b " * 300), ("a " * 200, "b " * 250), ("", "")]
    expected = reference(minilm.directory)(
        [first for first, _ in pairs], [second for _, second in pairs], truncation="longest_first", max_length=256
    )
    rows = tokenizer.encode(pairs)
    assert ids(rows) == expected["input_ids"]
    assert [row.type_ids.tolist() if row.type_ids is not None else None for row in rows] == expected["token_type_ids"]


@pytest.fixture(scope="module")
def cutting_and_whole(minilm: models.Network) -> tuple[models.Tokenizer, models.Tokenizer]:
    """Return two tokenizers with a limit of 6 tokens; the second reads texts to their end."""
    network = msgspec.structs.replace(minilm, max_tokens=6)
    cutting, whole = models.load_tokenizer(network), models.load_tokenizer(network)
    whole._by_words = False
    return cutting, whole


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("ab   \n\té,.中[]#\u0301\x00\x01Σς"), min_size=90, max_size=300))
@example(text="a" + " " * 200 + "b c")
@example(text="\x00 " * 100 + "hello")
def test_a_far_too_long_text_is_cut_where_the_whole_would_be(
    cutting_and_whole: tuple[models.Tokenizer, models.Tokenizer], text: str
) -> None:
    """Only its beginning is tokenized, which must not show."""
    cutting, whole = cutting_and_whole
    assert ids(cutting.encode([text])) == ids(whole.encode([text]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_lower_case": False},
        {"do_lower_case": False, "strip_accents": True},
        {"do_lower_case": True, "strip_accents": False},
        {"tokenize_chinese_chars": False},
    ],
)
@pytest.mark.parametrize("whole", [False, True], ids=["vocab.txt", "tokenizer.json"])
def test_options_of_wordpiece_give_transformers_tokens(build: Build, options: dict[str, bool], *, whole: bool) -> None:
    """From vocab.txt alone, and where tokenizer_config.json contradicts tokenizer.json."""
    directory = build(VOCABULARY | {"tokenizer_config.json": {"tokenizer_class": "BertTokenizer"}})
    if whole:
        reference(directory).save_pretrained(directory)
        (directory / "vocab.txt").unlink(missing_ok=True)
    (directory / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"} | options))
    texts = ["Hellos hello É é e\u0301 中文", "[MASK], HELLO[SEP]unknown"]
    network = models.resolve(str(directory))
    assert ids(models.load_tokenizer(network).encode(texts)) == reference(directory)(texts)["input_ids"]


def byte_level_bpe() -> Any:
    """Return a small tokenizer of RoBERTa's kind."""
    library = pytest.importorskip("tokenizers")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(ODD, trainer)
    tokenizer.decoder = library.decoders.ByteLevel()
    return tokenizer


def word_piece() -> Any:
    """Return a small tokenizer of MPNet's kind."""
    library = pytest.importorskip("tokenizers")
    tokenizer = library.Tokenizer(library.models.WordPiece(unk_token="<unk>"))  # noqa: S106 - not a password
    tokenizer.normalizer = library.normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    trainer = library.trainers.WordPieceTrainer(vocab_size=400, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(ODD, trainer)
    return tokenizer


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
ROLES = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}


@pytest.mark.parametrize(
    ("make", "kind", "model_type"),
    [(byte_level_bpe, "RobertaTokenizer", "roberta"), (word_piece, "MPNetTokenizer", "mpnet")],
)
def test_tokenizers_of_other_families_give_transformers_tokens(
    build: Build, make: Callable[[], Any], kind: str, model_type: str
) -> None:
    """Byte-level BPE and MPNet's WordPiece, whose special tokens are RoBERTa's; texts, pairs and limits alike."""
    tokenizer = make()
    processors = pytest.importorskip("tokenizers").processors
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    config = {f"{role}_token": token for role, token in ROLES.items()} | {"tokenizer_class": kind}
    files = {"tokenizer.json": tokenizer.to_str(), "tokenizer_config.json": config}
    directory = build(files, model_type=model_type, vocab_size=400, pad_token_id=1, max_position_embeddings=34)
    network = models.resolve(str(directory))
    assert (network.max_tokens, network.mask_token_id) == (32, 4)
    texts, expected = [*ODD, "a <mask> b<mask>"], reference(directory)
    rows = models.load_tokenizer(network).encode(texts)
    assert ids(rows) == expected(texts, truncation=True, max_length=32)["input_ids"]
    pairs = models.load_tokenizer(network).encode(list(zip(ODD, reversed(ODD), strict=True)))
    assert ids(pairs) == expected(ODD, ODD[::-1], truncation=True, max_length=32)["input_ids"]


def test_padding_and_truncation_in_tokenizer_json_do_not_act(minilm: models.Network) -> None:
    """MiniLM's file pads to 128 and cuts at 128; the model's limit is 256."""
    saved = json.loads((Path(minilm.directory) / "tokenizer.json").read_text(encoding="utf-8"))
    assert (saved["truncation"]["max_length"], saved["padding"]["strategy"]) == (128, {"Fixed": 128})
    (row,) = models.load_tokenizer(minilm).encode(["word " * 200])
    assert len(row) == 202


def test_too_long_a_text_is_an_error_where_it_must_not_be_cut(tokenizer: models.Tokenizer) -> None:
    """With its index, its length and the limit; exactly the limit is fine."""
    assert len(tokenizer.encode(["word " * 254], truncate=False)[0]) == 256
    with pytest.raises(UsageError, match=r"^text 1 has 1002 tokens, the limit is 256;"):
        tokenizer.encode(["short", "word " * 1000], truncate=False)
    with pytest.raises(UsageError, match=r"^text 0 has 303 tokens, the limit is 256;"):
        tokenizer.encode([("word", "word " * 299)], truncate=False)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["fine", "a\ud800b"], r"text 1 is no valid Unicode: lone surrogate U\+D800"),
        ([("fine", "a\udfffb")], r"text 0 is no valid Unicode: lone surrogate U\+DFFF"),
        (["fine", 5], "text 1 is int"),
        ([None], "text 0 is NoneType"),
        ([b"bytes"], "text 0 is bytes"),
        ([("one", "two", "three")], "text 0 is tuple"),
        ([["a", "list"]], "text 0 is list"),
        ("a single text", "a single string"),
    ],
)
def test_what_is_no_text_is_named(tokenizer: models.Tokenizer, texts: Any, said: str) -> None:
    """An error with the index, never a crash of the library."""
    with pytest.raises(UsageError, match=said):
        tokenizer.encode(texts)


def prompted(build: Build, **config: Any) -> models.Tokenizer:
    """Return a tokenizer of a model with a prompt `q`."""
    library = {"config_sentence_transformers.json": {"prompts": {"q": "hello ", "none": ""}} | config}
    return models.load_tokenizer(models.resolve(str(build(VOCABULARY | library))))


def test_a_prompt_comes_before_the_text(build: Build) -> None:
    """By name; of a pair, before the first text; an unknown one is refused with the names there are."""
    tokenizer = prompted(build)
    assert ids(tokenizer.encode([","], prompt="q")) == [[2, 5, 13, 3]]
    assert ids(tokenizer.encode([(",", "e")], prompt="q")) == [[2, 5, 13, 3, 9, 3]]
    assert ids(tokenizer.encode([","])) == ids(tokenizer.encode([","], prompt="none")) == [[2, 13, 3]]
    with pytest.raises(UsageError, match="has no prompt 'x'; its prompts are: none, q"):
        tokenizer.encode([","], prompt="x")


def test_the_default_prompt_is_used_unless_told_otherwise(build: Build) -> None:
    """As sentence-transformers does; the empty name turns it off."""
    tokenizer = prompted(build, default_prompt_name="q")
    assert ids(tokenizer.encode([","])) == [[2, 5, 13, 3]]
    assert ids(tokenizer.encode([","], prompt="")) == [[2, 13, 3]]


def test_lowercasing_spares_special_tokens(build: Build) -> None:
    """Sentence-transformers' do_lower_case, for a tokenizer that keeps case itself."""
    files = VOCABULARY | {"tokenizer_config.json": {"do_lower_case": False}}
    directory = build(files | {"sentence_bert_config.json": {"do_lower_case": True}})
    tokenizer = models.load_tokenizer(models.resolve(str(directory)))
    assert ids(tokenizer.encode(["Hello [MASK]"])) == [[2, 5, 4, 3]]


def test_batches_are_padded_on_the_right(tokenizer: models.Tokenizer) -> None:
    """To the longest or to a given length; types are kept; a length that is too short is refused."""
    rows = tokenizer.encode(["hello", ("hello", "world"), "hello world"])
    batch = tokenizer.pad(rows)
    assert batch.ids.tolist() == [[101, 7592, 102, 0, 0], [101, 7592, 102, 2088, 102], [101, 7592, 2088, 102, 0]]
    assert batch.lengths.tolist() == [3, 5, 4]
    assert batch.type_ids is not None
    assert batch.type_ids.tolist() == [[0] * 5, [0, 0, 0, 1, 1], [0] * 5]
    assert batch.ids.dtype == batch.lengths.dtype == batch.type_ids.dtype == np.int32
    longer = tokenizer.pad(tokenizer.encode(["hello"]), 8)
    assert (longer.ids.shape, longer.type_ids) == ((1, 8), None)
    with pytest.raises(UsageError, match="has 5 tokens, the batch only 4"):
        tokenizer.pad(rows, 4)
    with pytest.raises(UsageError, match="no texts"):
        tokenizer.pad([])


def test_families_without_token_types_get_none(build: Build) -> None:
    """DistilBERT's tokenizer.json gives types that its network has no table for."""
    shape = {"dim": 8, "n_layers": 1, "n_heads": 1, "hidden_dim": 8, "model_type": "distilbert"}
    tokenizer = models.load_tokenizer(models.resolve(str(build(VOCABULARY, **shape))))
    (row,) = tokenizer.encode([("hello", "e")])
    assert (row.ids.tolist(), row.type_ids) == ([2, 5, 3, 9, 3], None)


def test_no_texts_are_no_rows(tokenizer: models.Tokenizer) -> None:
    """An empty request is answered empty."""
    assert tokenizer.encode([]) == []


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "has no tokenizer.json, and no vocab.txt"),
        ({"vocab.txt": "<s>\n</s>\n"}, r"its vocab.txt lacks \[CLS\], \[SEP\], \[UNK\]"),
        ({"tokenizer.json": '{"version": "1.0"'}, "tokenizer.json is not a tokenizer"),
        ({"vocab.txt": "\n".join([*WORDS, *(f"w{n}" for n in range(40))])}, "has 55 tokens, its network only 40"),
    ],
)
def test_tokenizer_files_that_cannot_be_used(build: Build, files: dict[str, str], said: str) -> None:
    """Absent, of another kind, damaged, or of another model."""
    network = models.resolve(str(build(files)))
    with pytest.raises(ModelError, match=said):
        models.load_tokenizer(network)


def test_a_limit_must_leave_room_for_text(build: Build) -> None:
    """The library itself would go on with tokens it was told to cut."""
    network = models.resolve(str(build(VOCABULARY)), overrides=models.Overrides(max_tokens=3))
    with pytest.raises(ModelError, match="max_tokens 3 leaves no room beside 3 special tokens"):
        models.load_tokenizer(network)


def test_the_environment_of_the_parent_is_left_alone(tokenizer: models.Tokenizer) -> None:
    """TOKENIZERS_PARALLELISM is the user's to set."""
    before = dict(os.environ)
    tokenizer.encode(["a", "b"])
    assert dict(os.environ) == before

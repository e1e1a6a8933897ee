"""The tokenizer of a model as an object of the `tokenizers` library, built from the model's files."""

from pathlib import Path
from typing import TYPE_CHECKING

from pinstripe.errors import ModelError
from pinstripe.models.network import Network
from pinstripe.models.quoting import shortened
from pinstripe.models.tokenizer_files import TokenizerConfig, read_tokenizer_config, read_vocabulary

if TYPE_CHECKING:
    import tokenizers

__all__ = ["load_backend"]


def load_backend(network: Network) -> "tokenizers.Tokenizer":
    """Return the tokenizer, truncating to `Network.max_tokens` and padding nothing.

    Raises:
        ModelError: There are no tokenizer files, they are damaged or don't fit the network, or `max_tokens` leaves no
            room beside the special tokens.
    """
    directory = Path(network.directory)
    config = read_tokenizer_config(directory)
    path = directory / "tokenizer.json"
    backend = _from_json(path, config) if path.is_file() else _from_vocabulary(directory, config)
    if network.lowercase:
        _lowercase_first(backend)
    known = backend.get_vocab_size(with_added_tokens=True)
    if known > network.vocab_size:
        raise ModelError(
            f"the tokenizer in {directory} has {known} tokens, its network only {network.vocab_size}; "
            "the files are not of one model"
        )
    special = backend.num_special_tokens_to_add(is_pair=True)
    if network.max_tokens <= special:
        raise ModelError(f"max_tokens {network.max_tokens} leaves no room beside {special} special tokens; raise it")
    backend.no_padding()
    backend.enable_truncation(network.max_tokens, strategy="longest_first")
    return backend


def _from_json(path: Path, config: TokenizerConfig) -> "tokenizers.Tokenizer":
    import tokenizers  # noqa: PLC0415 - not needed in a worker

    try:
        backend = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ModelError(f"{path} is not a tokenizer: {shortened(str(error))}; is the download complete?") from error
    if isinstance(backend.normalizer, tokenizers.normalizers.BertNormalizer) and not config.verbatim:
        backend.normalizer = _bert_normalizer(config)  # as transformers does for its BERT-like tokenizer classes
    return backend


def _from_vocabulary(directory: Path, config: TokenizerConfig) -> "tokenizers.Tokenizer":
    """Return BERT's WordPiece over `vocab.txt`."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors  # noqa: PLC0415 - not needed in a worker

    vocabulary = read_vocabulary(directory)
    roles = {role: config.special(role) or f"[{role.upper()}]" for role in ("cls", "sep", "unk", "pad", "mask")}
    lacking = [roles[role] for role in ("cls", "sep", "unk") if roles[role] not in vocabulary]
    if lacking:
        seen = f"its vocab.txt lacks {', '.join(lacking)}" if vocabulary else "no vocab.txt of BERT's kind either"
        raise ModelError(
            f"{directory} has no tokenizer.json, and {seen}; save one with save_pretrained of transformers"
        )
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token=roles["unk"]))
    backend.normalizer = _bert_normalizer(config)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cls, sep = roles["cls"], roles["sep"]
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(token, vocabulary[token]) for token in (cls, sep)],
    )
    backend.add_special_tokens([token for token in roles.values() if token in vocabulary])
    return backend


def _bert_normalizer(config: TokenizerConfig) -> "tokenizers.normalizers.Normalizer":
    from tokenizers import normalizers  # noqa: PLC0415 - not needed in a worker

    return normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=config.tokenize_chinese_chars,
        strip_accents=config.strip_accents,
        lowercase=config.do_lower_case,
    )


def _lowercase_first(backend: "tokenizers.Tokenizer") -> None:
    """Lower-case before the model's own normalization, which leaves special tokens such as `[MASK]` alone."""
    from tokenizers import normalizers  # noqa: PLC0415 - not needed in a worker

    own = [backend.normalizer] if backend.normalizer is not None else []
    backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])

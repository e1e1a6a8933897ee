"""Texts to token ids, as the model's authors did it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import BadTextError, UsageError
from pinstripe.models.network import Network
from pinstripe.models.quoting import quoted
from pinstripe.models.text import Text, check_several, check_text
from pinstripe.models.tokenizer_backend import load_backend
from pinstripe.models.tokenizer_files import read_tokenizer_config
from pinstripe.models.tokens import EncodedText, TokenBatch, TokenSources
from pinstripe.models.windows import cut_windows

if TYPE_CHECKING:
    import tokenizers

__all__ = ["Tokenizer", "load_tokenizer"]

_EncodeBatch: TypeAlias = Callable[[list[Text]], "list[tokenizers.Encoding]"]
_CHARACTERS_A_TOKEN = 16
"""More than any language has on average; a text with fewer tokens than that is tokenized again, whole."""


def load_tokenizer(network: Network) -> "Tokenizer":
    """Return the tokenizer of a model, from its `tokenizer.json`, else from its `vocab.txt` (BERT's WordPiece).

    Truncation and padding that `tokenizer.json` asks for are dropped: `Network.max_tokens` and `Tokenizer.pad` rule.

    Raises:
        ModelError: There are no tokenizer files, they are damaged or don't fit the network, or `max_tokens` leaves no
            room beside the special tokens.
    """
    backend = load_backend(network)
    unknown = read_tokenizer_config(Path(network.directory)).special("unk") or getattr(backend.model, "unk_token", None)
    return Tokenizer(network, backend, None if unknown is None else backend.token_to_id(unknown))


class Tokenizer:
    """The tokenizer of a model. Several threads may use one."""

    def __init__(self, network: Network, backend: "tokenizers.Tokenizer", unknown_id: int | None) -> None:
        """Use `load_tokenizer`; `backend` truncates to the network's limit and pads nothing."""
        self._network = network
        self._backend = backend
        self._unknown_id = unknown_id
        self._by_words = type(backend.pre_tokenizer).__name__ == "BertPreTokenizer"

    def encode(
        self, texts: Sequence[Text], *, prompt: str | None = None, truncate: bool = True, offsets: bool = False
    ) -> list[EncodedText]:
        """Return the token ids of texts or pairs of texts.

        Args:
            texts: Any number of them; a pair is cut longest first.
            prompt: Name of the prompt to put before each text (of a pair, the first); the empty string for none, None
                for the model's default.
            truncate: Whether longer texts are cut to `Network.max_tokens`; else they are an error.
            offsets: Whether to fill in `EncodedText.sources`, in characters of the texts as given here: without the
                prompt, before any normalization. Takes longer.

        Raises:
            UsageError: The prompt is unknown, or these are not several texts.
            BadTextError: One is no valid text, has a token that the network has not, or is too long and not to be
                truncated.
        """
        prefix = self._prompt(prompt)
        check_several(texts)
        inputs = [_with_prompt(prefix, text, index) for index, text in enumerate(texts)]
        # The fast one counts no characters.
        encode_batch = self._backend.encode_batch if offsets else self._backend.encode_batch_fast
        encodings = self._cut(inputs, encode_batch) if truncate else self._whole(inputs, encode_batch)
        rows = [self._encoded(encoding, index) for index, encoding in enumerate(encodings)]
        if not offsets:
            return rows
        return [
            replace(row, sources=_sources(encoding, len(prefix))) for row, encoding in zip(rows, encodings, strict=True)
        ]

    def encode_windows(
        self, texts: Sequence[Text], *, prompt: str | None = None, truncate: bool = True, offsets: bool = False
    ) -> tuple[list[EncodedText], NDArray[np.intp]]:
        """Return what `encode` does, but a context that is too long for question answering as several rows.

        Each holds the question and a part of the context, which overlap by `Network.stride` tokens. A question that
        leaves no room for any is cut, and its context with it, whatever `truncate` says.

        Returns:
            The rows, and the index of the text that each is of; those of one text follow each other. For answers of
            several rows, see `better_answer`.

        Raises:
            UsageError: As `encode`.
            BadTextError: Likewise.
        """
        if self._network.task != "question-answering":
            return self.encode(texts, prompt=prompt, truncate=truncate, offsets=offsets), np.arange(len(texts))
        rows, owners = [], []
        for index, row in enumerate(self.encode(texts, prompt=prompt, offsets=True)):
            windows = [] if len(row) < self._network.max_tokens else self._windows(texts[index], prompt)
            rows += windows or [row]
            owners += [index] * max(1, len(windows))
        return rows, np.array(owners, dtype=np.intp)

    def _windows(self, text: Text, prompt: str | None) -> list[EncodedText]:
        prefix = self._prompt(prompt)
        encoding = self._unlimited.encode_batch([_with_prompt(prefix, text, 0)])[0]
        whole = replace(self._encoded(encoding, 0), sources=_sources(encoding, len(prefix)))
        return cut_windows(whole, self._network.max_tokens, self._network.stride)

    @cached_property
    def _unlimited(self) -> "tokenizers.Tokenizer":
        backend = type(self._backend).from_str(self._backend.to_str())
        backend.no_truncation()
        return backend

    def inside_words(self, row: EncodedText, text: str) -> NDArray[np.bool_]:
        """Return bool [tokens]: whether each goes on with the word of the token before it, as transformers tells it.

        A WordPiece token does if it is written otherwise than its part of the text, which its prefix `##` makes so;
        other tokens do if there is no blank at or before their begin; an unknown token never does.

        Args:
            row: A text's tokens, with sources.
            text: That text.
        """
        if row.sources is None:
            raise UsageError("the text was encoded without offsets; call Tokenizer.encode with offsets=True")
        places = zip(row.ids.tolist(), row.sources.offsets.tolist(), strict=True)
        if getattr(self._backend.model, "continuing_subword_prefix", None):
            inner = [len(self._backend.id_to_token(one) or "") != end - start for one, (start, end) in places]
        else:
            inner = [start > 0 and " " not in text[start - 1 : start + 1] for _, (start, _) in places]
        known: NDArray[np.bool_] = row.ids != (-1 if self._unknown_id is None else self._unknown_id)
        return np.array(inner, dtype=np.bool_) & known

    def pad(self, rows: Sequence[EncodedText], sequence_length: int | None = None) -> TokenBatch:
        """Return texts as one batch, padded on the right.

        Args:
            rows: At least one.
            sequence_length: Padded length in tokens; None for that of the longest.

        Raises:
            UsageError: There are no rows, or one is longer than `sequence_length`.
        """
        if not rows:
            raise UsageError("a batch of no texts was asked for; give at least one")
        lengths = np.array([len(row) for row in rows], dtype=np.int32)
        longest = int(lengths.max())
        length = longest if sequence_length is None else sequence_length
        if longest > length:
            raise UsageError(f"a text has {longest} tokens, the batch only {length}; choose a longer sequence length")
        ids = np.full((len(rows), length), self._network.pad_token_id, dtype=np.int32)
        for row, encoded in enumerate(rows):
            ids[row, : len(encoded)] = encoded.ids
        return TokenBatch(ids=ids, lengths=lengths, type_ids=_padded_type_ids(rows, length))

    def token_text(self, token_id: int) -> str:
        """Return how a token of the vocabulary reads by itself, such as `ing` or `##ing`."""
        return self._backend.decode([token_id], skip_special_tokens=False)

    def _prompt(self, name: str | None) -> str:
        named = self._network.default_prompt if name is None else name
        if not named:
            return ""
        text = self._network.prompts.get(named)
        if text is None:
            known = ", ".join(sorted(self._network.prompts)) or "none"
            raise UsageError(f"{self._network.name} has no prompt {named!r}; its prompts are: {known}")
        return text

    def _cut(self, inputs: list[Text], encode_batch: _EncodeBatch) -> "list[tokenizers.Encoding]":
        """Return encodings cut to the limit, without tokenizing all of a text that is far beyond it."""
        starts = [self._start(text) for text in inputs] if self._by_words else inputs
        encodings = encode_batch(starts)
        for index, (start, text) in enumerate(zip(starts, inputs, strict=True)):
            if len(start) < len(text) and not encodings[index].overflowing:  # few tokens in many characters
                encodings[index] = encode_batch([text])[0]
        return encodings

    def _start(self, text: Text) -> Text:
        """Return a text up to a space that most likely lies behind the limit; the words before it stay the same."""
        if isinstance(text, tuple):
            return text
        space = text.find(" ", self._network.max_tokens * _CHARACTERS_A_TOKEN)
        return text if space < 0 else text[:space]

    def _whole(self, inputs: list[Text], encode_batch: _EncodeBatch) -> "list[tokenizers.Encoding]":
        """Return encodings, or raise if one does not hold its whole text."""
        encodings = encode_batch(inputs)
        cut = next((index for index, encoding in enumerate(encodings) if encoding.overflowing), None)
        if cut is None:
            return encodings
        tokens = len(self._unlimited.encode_batch_fast([inputs[cut]])[0])
        limit = self._network.max_tokens
        raise BadTextError(cut, f"has {tokens} tokens, the limit is {limit}; shorten it, or let it be truncated")

    def _encoded(self, encoding: "tokenizers.Encoding", index: int) -> EncodedText:
        ids = np.array(encoding.ids, dtype=np.int32)
        if not len(ids):
            raise BadTextError(index, "gives no tokens; leave it out")
        if (highest := int(ids.max())) >= self._network.vocab_size:
            token = quoted(self._backend.id_to_token(highest))
            raise BadTextError(
                index,
                f"has the token {token} with id {highest}, {self._network.name} takes 0 to "
                f"{self._network.vocab_size - 1}; use the model's own tokenizer, or leave the text out",
            )
        cut = bool(encoding.overflowing)
        if encoding.n_sequences < 2 or self._network.type_vocab_size < 2:  # noqa: PLR2004 - one text; one type
            return EncodedText(ids, cut=cut)
        type_ids = np.array(encoding.type_ids, dtype=np.int32)
        return EncodedText(ids, type_ids if type_ids.any() else None, cut=cut)


def _with_prompt(prefix: str, text: Text, index: int) -> Text:
    check_text(text, index)
    return prefix + text if isinstance(text, str) else (prefix + text[0], text[1])


def _sources(encoding: "tokenizers.Encoding", prompt_characters: int) -> TokenSources:
    offsets = np.array(encoding.offsets, dtype=np.int32)
    sequences = np.array([-1 if number is None else number for number in encoding.sequence_ids], dtype=np.int8)
    first = sequences == 0
    offsets[first] = np.maximum(offsets[first] - prompt_characters, 0)
    if prompt_characters:
        sequences[first & (offsets[:, 1] == 0)] = -1
    offsets[sequences < 0] = 0
    return TokenSources(offsets, sequences)


def _padded_type_ids(rows: Sequence[EncodedText], length: int) -> NDArray[np.int32] | None:
    if all(row.type_ids is None for row in rows):
        return None
    type_ids = np.zeros((len(rows), length), dtype=np.int32)
    for number, row in enumerate(rows):
        if row.type_ids is not None:
            type_ids[number, : len(row)] = row.type_ids
    return type_ids

"""How servers are asked for embeddings, and what a right answer is."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from pinstripe.errors import RequestError

__all__ = ["API_PATHS", "ApiName", "EmbeddingApi", "make_api"]

ApiName = Literal["openai", "tei"]
API_PATHS: dict[ApiName, str] = {"openai": "/v1/embeddings", "tei": "/embed"}
"""Where servers have them, the one that is tried first above."""


class EmbeddingApi(Protocol):
    """The form of requests and answers."""

    def body(self, texts: Sequence[str]) -> bytes:
        """Return the JSON that asks for the embeddings of some texts."""

    def count(self, answer: bytes) -> int:
        """Return how many embeddings an answer holds, without reading them.

        Raises:
            RequestError: It does not have the form of an answer.
        """

    def vectors(self, answer: bytes) -> list[NDArray[np.float32]]:
        """Return the embeddings of an answer, in the order of their texts.

        Raises:
            RequestError: It does not have the form of an answer.
        """


def make_api(name: ApiName, model: str) -> EmbeddingApi:
    """Return the API of that name.

    Args:
        name: `openai` or `tei`.
        model: What `openai` requests call the model.
    """
    return _OpenAi(model) if name == "openai" else _Tei()


class _OpenAi:
    """`POST /v1/embeddings` (OpenAI's API reference, Embeddings).

    Vectors are asked for as base64, as OpenAI's own client does: a third of the bytes, and one string to pass over
    where there would be a number for each dimension.
    """

    def __init__(self, model: str) -> None:
        self._model = model

    def body(self, texts: Sequence[str]) -> bytes:
        return msgspec.json.encode({"input": texts, "model": self._model, "encoding_format": "base64"})

    def count(self, answer: bytes) -> int:
        return len(_decoded(_RAW_ANSWER, answer).data)

    def vectors(self, answer: bytes) -> list[NDArray[np.float32]]:
        found = sorted(_decoded(_ANSWER, answer).data, key=lambda one: one.index)
        if [one.index for one in found] != list(range(len(found))):
            raise RequestError("wrong answer: its indices are not 0, 1, 2, …, each once")
        return [_from_base64(v) if isinstance(v := one.embedding, str) else np.array(v, np.float32) for one in found]


class _Tei:
    """`POST /embed` of text-embeddings-inference."""

    def body(self, texts: Sequence[str]) -> bytes:
        return msgspec.json.encode({"inputs": texts})

    def count(self, answer: bytes) -> int:
        return len(_decoded(_RAW_LIST, answer))

    def vectors(self, answer: bytes) -> list[NDArray[np.float32]]:
        return [np.array(values, np.float32) for values in _decoded(_LIST, answer)]


class _RawAnswer(msgspec.Struct):
    data: list[msgspec.Raw]


class _Embedding(msgspec.Struct):
    embedding: str | list[float]
    index: int


class _Answer(msgspec.Struct):
    data: list[_Embedding]


_RAW_ANSWER = msgspec.json.Decoder(_RawAnswer)
_ANSWER = msgspec.json.Decoder(_Answer)
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_LIST = msgspec.json.Decoder(list[list[float]])


def _decoded(decoder: msgspec.json.Decoder[Any], answer: bytes) -> Any:
    try:
        return decoder.decode(answer)
    except msgspec.ValidationError as error:
        raise RequestError(f"wrong answer: {str(error)[:200]}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestError("wrong answer: not valid JSON") from error


def _from_base64(text: str) -> NDArray[np.float32]:
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), "<f4").astype(np.float32)
    except (binascii.Error, ValueError) as error:
        raise RequestError("wrong answer: an embedding is not base64 of float32") from error

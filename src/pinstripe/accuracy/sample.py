"""English texts for those who have none at hand; written for this."""

import hashlib
from importlib.resources import files
from typing import Final

import msgspec

from pinstripe.models import Task, Text

__all__ = ["sample_texts"]

_PASSAGES_BEHIND: Final = (0, 1, 7)
"""Which passages each question is ranked against: its own, and two that lie so far behind it."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str
    questions: tuple[str, ...] = ()


def sample_texts(task: Task) -> tuple[list[Text], str]:
    """Return texts for a task, and the SHA-256 digest of their file in hexadecimal.

    They are passages, questions on these, sentences, headings and queries, of 1 to 60 words. Question answering gets
    each question with its passage, reranking each question with that and two other passages.
    """
    content = files("pinstripe.accuracy").joinpath("sample.jsonl").read_bytes()
    lines = msgspec.json.Decoder(_Line).decode_lines(content)
    return _for_task(task, lines), hashlib.sha256(content).hexdigest()


def _for_task(task: Task, lines: list[_Line]) -> list[Text]:
    passages = [line for line in lines if line.questions]
    if task in {"reranking", "question-answering"}:
        behind = _PASSAGES_BEHIND if task == "reranking" else (0,)
        return [
            (question, passages[(number + step) % len(passages)].text)
            for number, passage in enumerate(passages)
            for question in passage.questions
            for step in behind
        ]
    return [*(line.text for line in lines), *(question for line in passages for question in line.questions)]

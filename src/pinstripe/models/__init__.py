"""Which network, tokenizer, task, pooling, length limit, prompts? Texts to token ids, outputs to results."""

from pinstripe.models.answers import (
    Answer,
    Answers,
    Candidate,
    Classification,
    Filling,
    TokenClassification,
    better_answer,
    check_texts,
    make_answers,
    needs_offsets,
)
from pinstripe.models.artefacts import USUAL_GRAPHS, artefact_candidates
from pinstripe.models.entities import Entity, group_entities
from pinstripe.models.family import first_position
from pinstripe.models.fingerprint import fingerprint
from pinstripe.models.flops import forward_flops
from pinstripe.models.head import Head, make_head
from pinstripe.models.network import Activation, Aggregation, Dense, Network, PoolingMode, Similarity, Task
from pinstripe.models.overrides import Overrides
from pinstripe.models.source import resolve
from pinstripe.models.spans import Span
from pinstripe.models.text import Text, check_several
from pinstripe.models.tokenizer import Tokenizer, load_tokenizer
from pinstripe.models.tokens import EncodedText, TokenBatch, TokenSources, check_batch

__all__ = [
    "USUAL_GRAPHS",
    "Activation",
    "Aggregation",
    "Answer",
    "Answers",
    "Candidate",
    "Classification",
    "Dense",
    "EncodedText",
    "Entity",
    "Filling",
    "Head",
    "Network",
    "Overrides",
    "PoolingMode",
    "Similarity",
    "Span",
    "Task",
    "Text",
    "TokenBatch",
    "TokenClassification",
    "TokenSources",
    "Tokenizer",
    "artefact_candidates",
    "better_answer",
    "check_batch",
    "check_several",
    "check_texts",
    "fingerprint",
    "first_position",
    "forward_flops",
    "group_entities",
    "load_tokenizer",
    "make_answers",
    "make_head",
    "needs_offsets",
    "resolve",
]

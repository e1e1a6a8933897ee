"""Which network, tokenizer, task, pooling, length limit, prompts? Texts to token ids, outputs to results."""

from pinstripe.models.artefacts import USUAL_GRAPHS, artefact_candidates
from pinstripe.models.family import first_position
from pinstripe.models.head import Head, make_head
from pinstripe.models.network import Activation, Dense, Network, PoolingMode, Similarity, Task
from pinstripe.models.overrides import Overrides
from pinstripe.models.source import resolve
from pinstripe.models.tokenizer import Tokenizer, load_tokenizer
from pinstripe.models.tokens import EncodedText, TokenBatch

__all__ = [
    "USUAL_GRAPHS",
    "Activation",
    "Dense",
    "EncodedText",
    "Head",
    "Network",
    "Overrides",
    "PoolingMode",
    "Similarity",
    "Task",
    "TokenBatch",
    "Tokenizer",
    "artefact_candidates",
    "first_position",
    "load_tokenizer",
    "make_head",
    "resolve",
]

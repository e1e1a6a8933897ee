"""Which network, tokenizer, task, pooling, length limit, prompts? Texts to token ids, outputs to results."""

from pinstripe.models.network import Activation, Dense, Network, PoolingMode, Task
from pinstripe.models.tokens import TokenBatch

__all__ = ["Activation", "Dense", "Network", "PoolingMode", "Task", "TokenBatch"]

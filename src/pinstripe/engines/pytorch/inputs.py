"""Inputs to trace, compile and verify a network with."""

from typing import Any

from pinstripe.models import Network

__all__ = ["example_inputs"]


def example_inputs(torch: Any, network: Network, size: int, length: int) -> tuple[Any, ...]:
    """Return pseudo-random inputs of `load_module`'s module, all of them tensors; token types if the network has them.

    The texts are `length`, `length - 1`, … tokens long, but at least one. Every input is a tensor object of its own:
    tracers take one object given twice for one input.
    """
    generator = torch.Generator().manual_seed(0)
    lengths = (length - torch.arange(size)).clamp(min=1)
    mask = (torch.arange(length) < lengths[:, None]).long()
    ids = torch.randint(1, network.vocab_size, (size, length), generator=generator)
    ids = (network.pad_token_id + ids * mask) % network.vocab_size
    if network.type_vocab_size < 2:  # noqa: PLR2004 - one type is none
        return ids, mask
    return ids, mask, torch.randint(0, network.type_vocab_size, (size, length), generator=generator)

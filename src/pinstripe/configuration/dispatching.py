"""How waiting texts are given to instances."""

from typing import Annotated, Literal

import msgspec

__all__ = ["DispatchRule", "Policy"]

Policy = Literal["smart", "fifo", "shortest-first"]


class DispatchRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How waiting texts are given to instances.

    Attributes:
        policy: `smart` goes by length classes and predicted times, `fifo` by arrival, `shortest-first` by length.
        tokens: Most tokens in a batch for each core of its instance, padding included, 1 to 2^24. A text that is longer
            than that is a batch of its own.
        patience_ms: Longest time that a text waits for an instance that suits it, or behind shorter ones; then it is
            the next for any instance that becomes idle. 1 ms to an hour; None for six times what the text takes by
            itself, and at least 50 ms.
        bulk_patience_ms: The same for texts of the bulk lane, which also wait behind all single ones.
    """

    policy: Policy = "smart"
    tokens: Annotated[int, msgspec.Meta(ge=1, le=1 << 24)] = 512
    patience_ms: Annotated[float, msgspec.Meta(ge=1, le=3_600_000)] | None = None
    bulk_patience_ms: Annotated[float, msgspec.Meta(ge=1, le=3_600_000)] = 5000.0

    @property
    def label(self) -> str:
        """The policy and what differs from the usual, such as `fifo, 256 tokens a core, patience 100 ms`."""
        usual = DispatchRule()
        parts = (
            self.policy,
            None if self.tokens == usual.tokens else f"{self.tokens} tokens a core",
            None if self.patience_ms == usual.patience_ms else f"patience {self.patience_ms:g} ms",
            None if self.bulk_patience_ms == usual.bulk_patience_ms else f"bulk patience {self.bulk_patience_ms:g} ms",
        )
        return ", ".join(part for part in parts if part)

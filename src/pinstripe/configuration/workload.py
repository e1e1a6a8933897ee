"""What is asked of a configuration."""

from typing import Literal

import msgspec

from pinstripe.errors import ConfigurationError

__all__ = ["Scenario", "Workload"]

Scenario = Literal["single-stream", "offline"]


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Batches of one shape, and how they arrive.

    Attributes:
        scenario: `single-stream`: one global batch at a time, split evenly over the instances, its latency that of
            the slowest part. `offline`: every instance runs batches of its own, one after the other. Names are
            MLPerf's.
        batch: Texts in a batch, 1 to 4096.
        sequence_tokens: Tokens of each text, 2 to 8192; no padding.
    """

    scenario: Scenario
    batch: int
    sequence_tokens: int

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if not 1 <= self.batch <= 4096:  # noqa: PLR2004 - the range that the docstring states
            raise ConfigurationError(f"batch {self.batch} is out of range; use 1 to 4096")
        if not 2 <= self.sequence_tokens <= 8192:  # noqa: PLR2004 - the range that the docstring states
            raise ConfigurationError(f"sequence length {self.sequence_tokens} is out of range; use 2 to 8192")

    @property
    def label(self) -> str:
        """A short name for tables, such as `offline, batch 8 x 128 tokens`."""
        return f"{self.scenario}, batch {self.shape} tokens"

    @property
    def shape(self) -> str:
        """Batch and sequence length, such as `8 x 128`."""
        return f"{self.batch} x {self.sequence_tokens}"

    def shard(self, instances: int) -> int:
        """Return how many texts of a batch each instance takes.

        Raises:
            ConfigurationError: A single-stream batch does not divide evenly.
        """
        if self.scenario == "offline":
            return self.batch
        if self.batch % instances:
            raise ConfigurationError(
                f"a single-stream batch of {self.batch} does not divide over {instances} instances; "
                f"use a multiple of {instances}, or the offline scenario"
            )
        return self.batch // instances

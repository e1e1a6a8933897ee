"""What is asked of a configuration."""

from pathlib import PurePath
from typing import Literal

import msgspec
from msgspec.structs import replace

from pinstripe.configuration.arrivals import Arrivals
from pinstripe.configuration.batching import BatchRule, Order
from pinstripe.configuration.dispatching import DispatchRule
from pinstripe.errors import ConfigurationError

__all__ = ["Scenario", "TextSet", "Workload"]

Scenario = Literal["single-stream", "multi-stream", "server", "offline"]


class TextSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of texts, and how they are put into batches.

    Attributes:
        file: Its name, as the user named it.
        sha256: Digest of its content, in hexadecimal.
        texts: Number of texts in it, at least 1.
        order: See `BatchRule`.
        token_budget: Most tokens in a batch, padding included, 1 to 2^24; None for no such bound.
    """

    file: str
    sha256: str
    texts: int
    order: Order = "sorted"
    token_budget: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigurationError: A number is out of range.
        """
        if self.texts < 1:
            raise ConfigurationError(f"{self.file} holds no text; write one on each line")
        if self.token_budget is not None and not 1 <= self.token_budget <= 1 << 24:
            raise ConfigurationError(f"a budget of {self.token_budget} tokens is out of range; use 1 to {1 << 24}")


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Batches of one shape, or texts as they are, and how they arrive.

    Attributes:
        scenario: `single-stream`: one global batch at a time, split evenly over the instances, its latency that of the
            slowest part. `multi-stream`: one query of several texts at a time, which the dispatcher splits. `server`:
            requests come when they come, and the dispatcher makes batches of them. `offline`: every instance runs
            batches of its own, one after the other. Names are MLPerf's.
        batch: Texts in a batch or query, 1 to 4096; with `texts` the most, and None where only their token budget
            bounds it; None with `server`.
        sequence_tokens: Tokens of each text, 2 to 8192, no padding; None with `texts`.
        texts: The texts; None with `sequence_tokens`. `server` and `multi-stream` take them as they stand in the file,
            round and round.
        arrivals: When requests come; with `server` only.
        dispatch: How texts are given to instances; with `server` and `multi-stream` only.
    """

    scenario: Scenario
    batch: int | None = None
    sequence_tokens: int | None = None
    texts: TextSet | None = None
    arrivals: Arrivals | None = None
    dispatch: DispatchRule | None = None

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigurationError: A number is missing or out of range, or the fields contradict each other.
        """
        if (self.sequence_tokens is None) == (self.texts is None):
            raise ConfigurationError("a workload has either one sequence length or a file of texts; name one of them")
        self._check_scenario()
        if self.batch is not None and not 1 <= self.batch <= 4096:  # noqa: PLR2004 - the range that the docstring states
            raise ConfigurationError(f"batch {self.batch} is out of range; use 1 to 4096")
        if self.sequence_tokens is not None and not 2 <= self.sequence_tokens <= 8192:  # noqa: PLR2004 - likewise
            raise ConfigurationError(f"sequence length {self.sequence_tokens} is out of range; use 2 to 8192")

    def _check_scenario(self) -> None:
        budget = self.texts.token_budget if self.texts else None
        if (self.scenario == "server") != (self.arrivals is not None):
            raise ConfigurationError("arrivals go with the server scenario, and it with some; name both, or neither")
        if self.dispatched != (self.dispatch is not None):
            raise ConfigurationError("a dispatch rule goes with server and multi-stream; name both, or neither")
        if self.dispatched and self.texts and (budget is not None or self.texts.order != "arrival"):
            raise ConfigurationError(
                f"in the {self.scenario} scenario texts come in the file's order, and a dispatcher makes batches; "
                "leave order and budget of the texts out"
            )
        if self.scenario == "server" and self.batch is not None:
            raise ConfigurationError(f"batch {self.batch} says nothing of the server scenario; leave it out")
        if self.scenario != "server" and self.batch is None and budget is None:
            raise ConfigurationError("nothing says how large a batch is; name a batch size")

    @property
    def dispatched(self) -> bool:
        """Whether a dispatcher makes the batches."""
        return self.scenario in {"server", "multi-stream"}

    @property
    def label(self) -> str:
        """A short name, such as `offline, batch 8 x 128 tokens`."""
        return f"{self.title}, {self.batching}" if self.batching else self.title

    @property
    def shape(self) -> str:
        """Batch and sequence length, such as `8 x 128`; or the texts or arrivals, with how batches are made of them."""
        if self.arrivals:
            return f"{self.arrivals.label}, {self.batching}"
        if self.texts is None:
            return f"{self.batch} x {self.sequence_tokens}"
        return f"{PurePath(self.texts.file).name}, {self.batching}"

    @property
    def title(self) -> str:
        """What results can be compared under: scenario, arrivals and shape or texts, however they are batched."""
        if self.texts is None:
            return self._titled(f"{self.sequence_tokens} tokens" if self.arrivals else f"batch {self.shape} tokens")
        return self._titled(f"{PurePath(self.texts.file).name} ({self.texts.texts:,} texts)")

    @property
    def subject(self) -> str:
        """What identifies the title: equal for workloads whose results can be compared, whatever a file's name."""
        texts, arrivals = self.texts, self.arrivals
        if texts:
            texts = replace(texts, file=texts.sha256)
        if arrivals and arrivals.trace:
            arrivals = replace(arrivals, trace=replace(arrivals.trace, file=arrivals.trace.sha256))
        return replace(self, texts=texts, arrivals=arrivals).title

    def _titled(self, texts: str) -> str:
        arrivals = self.arrivals and self.arrivals.label
        query = f"queries of {self.batch}" if self.scenario == "multi-stream" and self.texts else None
        return ", ".join(part for part in (self.scenario, arrivals, query, texts) if part)

    @property
    def batching(self) -> str:
        """How texts are put into batches, such as `sorted, batch up to 4096 tokens`; empty for a fixed shape."""
        if self.dispatch:
            return self.dispatch.label
        if self.texts is None:
            return ""
        budget = None if self.texts.token_budget is None else f"up to {self.texts.token_budget} tokens"
        size = None if self.batch is None else str(self.batch)
        batches = ", ".join(bound for bound in (size, budget) if bound)
        return f"{self.texts.order}, batch {batches}"

    @property
    def rule(self) -> BatchRule:
        """How the texts are put into batches.

        Raises:
            ConfigurationError: There are none, or a dispatcher does it.
        """
        if self.texts is None or self.dispatched:
            raise ConfigurationError(f"the workload {self.label} has no batches of texts; name a file of texts")
        given = {} if self.batch is None else {"texts": self.batch}
        return BatchRule(order=self.texts.order, tokens=self.texts.token_budget, **given)

    def shard(self, instances: int) -> int:
        """Return how many texts of a batch of one shape each instance takes.

        Raises:
            ConfigurationError: A single-stream batch does not divide evenly, or the texts have lengths of their own, or
                a dispatcher makes the batches.
        """
        if self.batch is None or self.texts is not None or self.dispatched:
            raise ConfigurationError(f"the workload {self.label} has no one shape; name a batch and a sequence length")
        if self.scenario == "offline":
            return self.batch
        if self.batch % instances:
            raise ConfigurationError(
                f"a single-stream batch of {self.batch} does not divide over {instances} instances; "
                f"use a multiple of {instances}, or the offline scenario"
            )
        return self.batch // instances

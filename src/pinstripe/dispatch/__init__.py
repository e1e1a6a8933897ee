"""Which batch next, on which instance? Pure functions."""

from pinstripe.dispatch.batching import make_batches, padding_fraction

__all__ = ["make_batches", "padding_fraction"]

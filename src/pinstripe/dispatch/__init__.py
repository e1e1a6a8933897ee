"""Which batch next, on which instance? Pure functions."""

from pinstripe.dispatch.batching import BatchRule, Order, make_batches, padding_fraction

__all__ = ["BatchRule", "Order", "make_batches", "padding_fraction"]

"""Configuration, workload, plan: plain validated data, and nothing of how they are found or run."""

from pinstripe.configuration.batching import BatchRule, Order
from pinstripe.configuration.configuration import Configuration, Pin, Threads
from pinstripe.configuration.plan import Plan, read_plan
from pinstripe.configuration.workload import Scenario, TextSet, Workload

__all__ = [
    "BatchRule",
    "Configuration",
    "Order",
    "Pin",
    "Plan",
    "Scenario",
    "TextSet",
    "Threads",
    "Workload",
    "read_plan",
]

"""Configuration, workload, plan: plain validated data, and nothing of how they are found or run."""

from pinstripe.configuration.arrivals import Arrivals, Process, Trace
from pinstripe.configuration.batching import BatchRule, Order
from pinstripe.configuration.configuration import Configuration, Pin, Threads
from pinstripe.configuration.dispatching import DispatchRule, Policy
from pinstripe.configuration.groups import InstanceGroup, check_groups, group_of, instance_sizes
from pinstripe.configuration.plan import Plan, read_plan
from pinstripe.configuration.workload import Scenario, TextSet, Workload

__all__ = [
    "Arrivals",
    "BatchRule",
    "Configuration",
    "DispatchRule",
    "InstanceGroup",
    "Order",
    "Pin",
    "Plan",
    "Policy",
    "Process",
    "Scenario",
    "TextSet",
    "Threads",
    "Trace",
    "Workload",
    "check_groups",
    "group_of",
    "instance_sizes",
    "read_plan",
]

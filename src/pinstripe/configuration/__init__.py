"""Configuration and workload: plain validated data, and nothing of how they are found or run."""

from pinstripe.configuration.configuration import Configuration, Pin, Threads
from pinstripe.configuration.workload import Scenario, Workload

__all__ = ["Configuration", "Pin", "Scenario", "Threads", "Workload"]

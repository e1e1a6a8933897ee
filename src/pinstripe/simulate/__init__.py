"""An executor whose time is computed: machines that we don't have."""

from pinstripe.simulate.cost import Cost, CostPoint
from pinstripe.simulate.executor import SimulatedExecutor
from pinstripe.simulate.instance import SimulatedInstance, lay_out
from pinstripe.simulate.noise import Noise
from pinstripe.simulate.published_cost import PublishedCost, PublishedMachine
from pinstripe.simulate.recorded_cost import RecordedCost
from pinstripe.simulate.virtual_time import run_simulated

__all__ = [
    "Cost",
    "CostPoint",
    "Noise",
    "PublishedCost",
    "PublishedMachine",
    "RecordedCost",
    "SimulatedExecutor",
    "SimulatedInstance",
    "lay_out",
    "run_simulated",
]

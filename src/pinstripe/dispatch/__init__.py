"""Which batch next, on which instance?

`choose` is a pure function of what waits, the time, what things cost and who is idle; `Dispatcher` does what it says.
`make_batches` batches texts that are all there beforehand.
"""

from pinstripe.dispatch.batching import make_batches, make_class_batches, padding_fraction
from pinstripe.dispatch.choice import Batch, Rest
from pinstripe.dispatch.cost_model import CostModel
from pinstripe.dispatch.dispatcher import Dispatcher, loop_time_ns
from pinstripe.dispatch.entry import Entry
from pinstripe.dispatch.policies import choose
from pinstripe.dispatch.queue import Queue
from pinstripe.dispatch.request import Lane, Part, Reply, Request
from pinstripe.dispatch.situation import InstanceState, Situation

__all__ = [
    "Batch",
    "CostModel",
    "Dispatcher",
    "Entry",
    "InstanceState",
    "Lane",
    "Part",
    "Queue",
    "Reply",
    "Request",
    "Rest",
    "Situation",
    "choose",
    "loop_time_ns",
    "make_batches",
    "make_class_batches",
    "padding_fraction",
]

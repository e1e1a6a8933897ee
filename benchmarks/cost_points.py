"""What records of `pinstripe bench` say about the times of batches, for `pinstripe.simulate.RecordedCost`.

python benchmarks/cost_points.py RECORDS.jsonl        print them
"""

import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from statistics import median

from pinstripe.bench import Record, read_records
from pinstripe.simulate import CostPoint

__all__ = ["cost_points"]


def cost_points(records: Iterable[Record]) -> Iterator[CostPoint]:
    """Yield a point for each record of one shape on instances of one size: the median of its forward passes.

    Offline, every instance runs whole batches while the others are busy; in a single stream they share each batch, so
    only one that divides evenly counts. Records of texts, of several shapes or without a measurement are passed over.
    """
    for record in records:
        configuration, workload, measured = record.configuration, record.workload, record.measurement
        if measured is None or configuration.cores is None or configuration.groups:
            continue
        if workload.sequence_tokens is None or workload.batch is None:
            continue
        if workload.scenario == "offline":
            texts = workload.batch
        elif workload.scenario == "single-stream" and workload.batch % configuration.instances == 0:
            texts = workload.batch // configuration.instances
        else:
            continue
        seconds = median(chain.from_iterable(measured.engine_ns)) / 1e9
        yield CostPoint(configuration.cores, texts, workload.sequence_tokens, seconds)


if __name__ == "__main__":
    for point in cost_points(chain.from_iterable(read_records(Path(name)) for name in sys.argv[1:])):
        print(point)

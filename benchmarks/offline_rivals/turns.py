"""What every contestant does: warm up, say so, then encode the whole corpus once each time it is asked.

Runs in the contestant's own environment, so it uses nothing but the standard library and numpy.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Encode", "take_turns"]

Encode = Callable[[list[str]], NDArray[np.float32]]


def take_turns(load: Callable[[], tuple[Encode, dict[str, Any]]], corpus: Path, distributions: list[str]) -> None:
    """Answer each line on standard input with a line of JSON on standard output, until the input ends.

    The first answer, before any line is read, has `ready`, the versions and what `load` tells. A line `encode` is
    answered with `elapsed_ns` of all texts, tokenization included; `save FILE` with `saved`, once the vectors of the
    last turn are in that .npy file.

    Args:
        load: Loads the model; returns what encodes texts, and facts to report.
        corpus: A .jsonl file with a field `text`.
        distributions: Packages whose versions matter.
    """
    # Libraries print to standard output as well: that goes to standard error from here on.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    texts = [json.loads(line)["text"] for line in corpus.read_bytes().splitlines()]
    encode, facts = load()
    # All of them, since some engines build a kernel for each new shape.
    vectors = encode(texts)
    versions = {name: version(name) for name in distributions}
    print(json.dumps({"ready": True, "versions": versions, **facts}), file=answers)
    for line in sys.stdin:
        command, _, file = line.strip().partition(" ")
        if command == "save":
            np.save(file, vectors)
            print(json.dumps({"saved": file}), file=answers)
        else:
            began_ns = time.perf_counter_ns()
            vectors = encode(texts)
            print(json.dumps({"elapsed_ns": time.perf_counter_ns() - began_ns}), file=answers)

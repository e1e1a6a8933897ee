"""How long does a batch take on an instance? Learnt from the batches that ran."""

import itertools
import math
from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["CostModel"]

_BATCH_NS: Final = 400_000.0
_TOKEN_NS: Final = 40_000.0
"""A guess of the scale, for one core and a small encoder; the first observation replaces it. What lasts is the shape: a
batch costs as much beyond its tokens as 10 tokens of one core do, 80 of eight (small encoders, one to four cores,
measured: 8 to 64)."""
_SQUARE_TOKENS: Final = 2048
"""Tokens at which attention takes as long as all that is linear in tokens. A layer of hidden size h has 24 h^2
operations a token in its matrices, and 4 h L in attention over L tokens: equal at 6 h, 2304 for h = 384, 4608 for 768;
less, as attention comes less near to peak."""

_CELLS: Final = 24
_IN_CELL: Final = 12
"""Observations that are kept: the last 12 of each cell, an octave of length and of sum of lengths, of the 24 cells that
were last seen."""
_RECENT: Final = 47
"""Observations that show a change of pace: the chance that of 47 the majority is outliers, when a third is, is below
1 % (binomial); a change has the majority after 24."""
_EVERY: Final = 12
"""Observations from fit to fit, once there are many: spreads a fit of a fraction of a millisecond over them."""

_MAD: Final = 1.4826
"""Standard deviations in a median absolute deviation, of the normal distribution: 1 / 0.6745."""
_TUKEY: Final = 4.685
"""Standard deviations beyond which an observation has no weight: 95 % efficiency under normal noise (Beaton and Tukey
1974; Holland and Welsch 1977)."""
_FIRST_ERROR: Final = 0.5
"""Relative noise to expect before anything is known of it; counts as much as one observation."""
_PRIOR_DEVIATION: Final = 3.0
"""Relative standard deviation of a coefficient about the prior, once its scale is known."""
_ABSOLUTE_STEPS: Final = 3
_TUKEY_STEPS: Final = 3
"""Each fit begins where the one before ended, so that few steps do."""
_ACTIVE: Final = tuple(active for size in (3, 2, 1) for active in itertools.combinations(range(3), size))


class CostModel:
    """Predicted time of a batch on an instance of one group: a + b·Σs + c·Σs² over padded lengths.

    The three coefficients, none below 0, have the least squared relative errors over remembered batches of all sizes,
    by iteratively reweighted least squares: first for least absolute errors, which outliers can't lead far astray, then
    with Tukey's weights, which ignore outliers (Huber and Ronchetti 2009, chapter 7). What the data leave open (all
    batches of one length, say) stays in proportion to the prior. When the latest batches, beyond chance, all take
    longer or shorter than the fit says, the machine has changed, and what is remembered from before is scaled.

    Pure: the same observations in the same order give the same predictions.
    """

    def __init__(self, cores: int = 1) -> None:
        """Begin with a guess.

        Args:
            cores: Physical cores of the instance, at least 1.
        """
        token_ns = _TOKEN_NS / cores
        self._coefficients = (_BATCH_NS, token_ns, token_ns / _SQUARE_TOKENS)
        self._prior = np.array(self._coefficients)
        self._memory = np.zeros((_CELLS, _IN_CELL, 5))  # 1, Σs, Σs², nanoseconds, and when it was seen, 0 if never
        self._cells: dict[
            tuple[int, int], tuple[int, int]
        ] = {}  # its row and the next column, the last seen at the end
        self._recent: deque[tuple[float, ...]] = deque(maxlen=_RECENT)
        self._errors: deque[float] = deque([_FIRST_ERROR / _MAD], maxlen=_RECENT)
        self._seen = 0
        self._next_fit = 1

    @property
    def coefficients(self) -> tuple[float, float, float]:
        """Nanoseconds of a batch, of a token and of a squared token; each at least 0."""
        return self._coefficients

    @property
    def error(self) -> float:
        """Relative error of the latest predictions, above or below: 1.4826 times the median of |ln(taken / predicted)|.

        That is the standard deviation if errors are normal and small; 0.5 before anything was predicted and observed.
        """
        return _MAD * sorted(self._errors)[len(self._errors) // 2]

    def predict_ns(self, texts: int, tokens: int) -> float:
        """Return the expected time of a batch in nanoseconds, above 0; never less for more texts or tokens.

        Args:
            texts: Texts in the batch, at least 1.
            tokens: Padded length of each, at least 1.
        """
        batch, token, square = self._coefficients
        return batch + (token + square * tokens) * texts * tokens

    def observe(self, texts: int, tokens: int, duration_ns: float) -> None:
        """Learn from a batch.

        Args:
            texts: Texts in the batch, at least 1.
            tokens: Padded length of each, at least 1.
            duration_ns: The time it took; below 1, as a coarse clock may say, it counts as 1.
        """
        total = texts * tokens
        taken = max(float(duration_ns), 1.0)
        if self._seen:  # before that, there was a guess, not a prediction
            self._errors.append(abs(math.log(taken / self.predict_ns(texts, tokens))))
        self._seen += 1
        observation = (1.0, float(total), float(total * tokens), taken, float(self._seen))
        self._recent.append(observation)
        cell = (tokens.bit_length(), total.bit_length())
        row, column = self._cells.pop(cell) if cell in self._cells else self._free_row()
        self._memory[row, column] = observation
        self._cells[cell] = (row, (column + 1) % _IN_CELL)
        if self._seen >= self._next_fit:
            self._next_fit = self._seen + min(_EVERY, 1 + self._seen // 16)
            self._fit()

    def _free_row(self) -> tuple[int, int]:
        if len(self._cells) < _CELLS:
            return len(self._cells), 0
        row, _ = self._cells.pop(next(iter(self._cells)))
        self._memory[row] = 0
        return row, 0

    def _fit(self) -> None:
        known = self._memory[self._memory[:, :, 4] > 0]
        fitted = _fitted(known[:, :3], known[:, 3], self._prior, np.array(self._coefficients))
        self._coefficients = (float(fitted[0]), float(fitted[1]), float(fitted[2]))
        if len(self._recent) == _RECENT:
            recent = np.array(self._recent)
            change = _change(recent[:, 3] / (recent[:, :3] @ fitted))
            before = self._memory[:, :, 4] <= self._seen - _RECENT
            self._memory[:, :, 3] *= np.where(before, change, 1.0)


def _change(ratios: NDArray[np.float64]) -> float:
    """Return by which factor batches take longer than predicted, less what chance may do; 1 for as predicted."""
    logs = np.log(ratios)
    middle = _median(logs)
    # The standard error of a median is sqrt(pi / 2) = 1.25 times that of a mean; twice that is seldom chance.
    chance = 2 * 1.25 * _MAD * _median(np.abs(logs - middle)) / math.sqrt(len(logs))
    return math.exp(math.copysign(max(0.0, abs(middle) - chance), middle))


def _fitted(
    terms: NDArray[np.float64], taken: NDArray[np.float64], prior: NDArray[np.float64], start: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the coefficients that fit best.

    Args:
        terms: (observations, 3): 1, Σs and Σs² of each.
        taken: Nanoseconds of each, above 0.
        prior: Coefficients whose proportions are kept where the observations leave them open.
        start: Coefficients to begin with.
    """
    # Of an even number the lower median: outliers are slow.
    prior = prior * _median(taken / (terms @ prior))
    share = terms * prior
    expected = terms @ start
    expected *= _median(taken / expected)
    for step in range(_ABSOLUTE_STEPS + _TUKEY_STEPS):
        distance = np.abs(taken / expected - 1)
        noise = _MAD * _median(distance)
        scale = math.sqrt((len(taken) * noise**2 + _FIRST_ERROR**2) / (len(taken) + 1))
        if step < _ABSOLUTE_STEPS:
            weights = scale / np.maximum(distance, scale)
        else:
            weights = np.maximum(0.0, 1 - (distance / (_TUKEY * scale)) ** 2) ** 2
        weighted = (share * (weights / expected**2)[:, None]).T
        normal = (weighted @ share).tolist()
        target = (weighted @ taken).tolist()
        hold = (min(scale, _FIRST_ERROR) / _PRIOR_DEVIATION) ** 2
        for index in range(3):
            normal[index][index] += hold
            target[index] += hold
        factors = _nonnegative(normal, target)
        expected = share @ factors
    return prior * factors


def _nonnegative(normal: list[list[float]], target: list[float]) -> tuple[float, float, float]:
    """Return x >= 0 with the least x·(normal x) - 2 target·x, for a positive definite matrix.

    Of all sets of variables that may be above 0, that is the one whose own minimum is feasible and least.
    """
    best, least = (0.0, 0.0, 0.0), 0.0
    for active in _ACTIVE:
        solved = _solution(
            [[normal[row][column] for column in active] for row in active], [target[row] for row in active]
        )
        if min(solved) < 0:
            continue
        cost = -sum(target[index] * value for index, value in zip(active, solved, strict=True))
        if cost < least:
            values = dict(zip(active, solved, strict=True))
            best, least = (values.get(0, 0.0), values.get(1, 0.0), values.get(2, 0.0)), cost
        if len(active) == len(target):
            break  # the minimum over all x
    return best


def _solution(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Return x with matrix x = right, by elimination; a positive definite matrix needs no pivoting."""
    size = len(right)
    for pivot in range(size):
        for row in range(pivot + 1, size):
            factor = matrix[row][pivot] / matrix[pivot][pivot]
            for column in range(pivot, size):
                matrix[row][column] -= factor * matrix[pivot][column]
            right[row] -= factor * right[pivot]
    for row in range(size - 1, -1, -1):
        known = sum(matrix[row][column] * right[column] for column in range(row + 1, size))
        right[row] = (right[row] - known) / matrix[row][row]
    return right


def _median(values: NDArray[np.float64]) -> float:
    """Return the median, of an even number the lower one."""
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])

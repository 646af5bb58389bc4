"""Statistics of papers: bootstrap, paired tests, performance profiles, integrals of gaps."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

#: Resamples of a bootstrap, and the numbers that are drawn at once.
RESAMPLES = 10_000
_AT_ONCE = 10**6

#: The share of bootstrap means that a confidence interval holds.
CONFIDENCE = 0.95


def bootstrap_mean(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the percentile interval of the mean (Efron 1979).

    Parameters
    ----------
    values : sequence of float, not empty
    seed : int
        Of the :data:`RESAMPLES` samples, with replacement, of as many values.

    Returns
    -------
    tuple of float
        The ends of the interval that holds :data:`CONFIDENCE` of the means.
    """
    data, rng = np.asarray(values, dtype=np.float64), np.random.default_rng(seed)
    means = np.empty(RESAMPLES)
    step = max(1, _AT_ONCE // len(data))
    for begin in range(0, RESAMPLES, step):
        drawn = rng.integers(len(data), size=(min(step, RESAMPLES - begin), len(data)))
        means[begin : begin + step] = data[drawn].mean(axis=1)
    outside = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, [outside, 100 - outside])
    return float(low), float(high)


def signed_rank(first: Sequence[Fraction | float], second: Sequence[Fraction | float]) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test on pairs.

    Infinite values are the worst: an infinite difference has a higher rank than all finite ones,
    and two infinite values are equal. Equal pairs do not count (Wilcoxon 1945); if all are equal,
    the p-value is 1.
    """
    pairs = zip(first, second, strict=True)
    difference = np.array([0.0 if a == b else float(a - b) for a, b in pairs])
    finite = np.isfinite(difference)
    most = np.abs(difference[finite]).max(initial=0.0)
    difference[~finite] = np.sign(difference[~finite]) * (2 * most + 1)
    difference = difference[difference != 0]
    if not len(difference):
        return 1.0
    from scipy.stats import wilcoxon  # takes half a second

    return float(wilcoxon(difference).pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979), in the given order."""
    adjusted, largest = [0.0] * len(values), 0.0
    for i, place in enumerate(sorted(range(len(values)), key=lambda j: values[j])):
        largest = max(largest, min(1.0, (len(values) - i) * values[place]))
        adjusted[place] = largest
    return adjusted


def profile(ratios: Sequence[float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the performance profile of a method (Dolan and Moré 2002).

    Parameters
    ----------
    ratios : sequence of float, not empty
        Its value over the best of all methods, per instance; infinite where it has none.

    Returns
    -------
    tuple of ndarray of float64
        Factors, ascending, and the share of instances that it solves within each of them.
    """
    data = np.asarray(ratios, dtype=np.float64)
    factors, count = np.unique(data[np.isfinite(data)], return_counts=True)
    return factors, np.cumsum(count) / len(data)


def integral(steps: Sequence[tuple[float, float]], limit: float) -> float:
    """Integrate a gap from 0 to a time limit (Berthold 2013).

    Parameters
    ----------
    steps : sequence of (float, float)
        Times, ascending, and the gap from each of them on. Before the first, it is 1.
    limit : float
        In seconds; later steps do not count.
    """
    area, since, gap = 0.0, 0.0, 1.0
    for time, after in steps:
        at = min(max(time, since), limit)
        area += gap * (at - since)
        since, gap = at, after
    return area + gap * (limit - since)

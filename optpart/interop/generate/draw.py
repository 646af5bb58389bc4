"""Random draws that all generators share: integers in a range, and distinct numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError

#: Least and greatest value, both included.
Range: TypeAlias = tuple[int, int]

#: A source of randomness: a seed, or a generator, which advances.
Seed: TypeAlias = int | np.random.Generator

_INT64_MAX = 2**63 - 1


def generator(seed: Seed) -> np.random.Generator:
    """Return the given generator, or a new one for a seed ``≥ 0``."""
    if not isinstance(seed, np.random.Generator) and seed < 0:
        raise InputError("seed", f"{seed} is negative", "give a whole number ≥ 0")
    return np.random.default_rng(seed)


def count(value: int, place: str, least: int = 0, most: int | None = None) -> int:
    """Return a count if it is in its range."""
    if most is not None and value > most:
        raise InputError(place, f"{value} is too many", f"give a whole number of at most {most}")
    if value < least:
        raise InputError(place, f"{value} is too few", f"give a whole number ≥ {least}")
    return value


def probability(value: float, place: str) -> float:
    """Return a probability if it is one."""
    if not 0 <= value <= 1:
        raise InputError(place, f"{value} is not a probability", "give a number from 0 to 1")
    return value


def bounds(value: Range, place: str, least: int = 0) -> Range:
    """Return a range if it is valid."""
    low, high = value
    if not least <= low <= high <= _INT64_MAX:
        raise InputError(
            place, f"{low} to {high} is not a range", f"give {least} ≤ minimum ≤ maximum < 2^63"
        )
    return low, high


def integers(
    rng: np.random.Generator, within: Range, size: int | tuple[int, ...]
) -> NDArray[np.int64]:
    """Draw whole numbers uniformly from a checked range."""
    return rng.integers(*within, size=size, dtype=np.int64, endpoint=True)


def distinct(
    rng: np.random.Generator,
    population: int,
    size: int,
    taken: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Draw ``size`` distinct numbers below ``population``; every such set is equally likely.

    Time and memory grow with the numbers drawn and taken, not with the population.

    Parameters
    ----------
    taken : ndarray of int64, optional
        Distinct numbers that must not be drawn; at least ``size`` others must remain.

    Returns
    -------
    ndarray of int64, length ``size``, ascending
    """
    taken = np.empty(0, dtype=np.int64) if taken is None else taken
    if 2 * (len(taken) + size) > population:
        free = np.setdiff1d(np.arange(population), taken, assume_unique=True)
        return np.sort(rng.choice(free, size, replace=False))
    # At least half of the population remains free, so every round finds half of the missing ones.
    found = np.empty(0, dtype=np.int64)
    while len(found) < size:
        more = rng.integers(population, size=size - len(found))
        found = np.setdiff1d(np.union1d(found, more), taken, assume_unique=True)
    return found

"""One source of chance for every draw: whole numbers between two bounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

#: Draws a whole number between two bounds, both included.
Pick = Callable[[int, int], int]


def seeded(*seed: object) -> Pick:
    """Return a pick that depends on its seeds alone, on every version of Python."""
    uniform = random.Random(repr(seed)).random
    return lambda low, high: low + int(uniform() * (high - low + 1))


def picking(rng: np.random.Generator) -> Pick:
    """Return a pick that is seeded by a numpy generator, which it advances by one number."""
    return seeded(int(rng.integers(2**63)))


class Draw:
    """What is drawn by means of a pick."""

    def __init__(self, pick: Pick) -> None:
        self.between = pick

    def chance(self, of: int) -> bool:
        """Return ``True`` once in so many times."""
        # The lowest pick says no, so that hypothesis shrinks towards instances without features.
        return self.between(1, of) == of

    def one_of(self, values: Sequence[T]) -> T:
        """Draw one value; the first is what hypothesis shrinks to."""
        return values[self.between(0, len(values) - 1)]

    def some(self, n: int, size: int) -> list[int]:
        """Draw ``size`` distinct numbers below ``n``, in random order."""
        left = list(range(n))
        return [left.pop(self.between(0, len(left) - 1)) for _ in range(min(n, size))]

"""The source of randomness for all draws: whole numbers between two bounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

#: Draws a whole number between two bounds, both included.
Pick = Callable[[int, int], int]


def seeded(*seed: object) -> Pick:
    """Return a pick that depends only on its seeds, on every version of Python."""
    uniform = random.Random(repr(seed)).random
    return lambda low, high: low + int(uniform() * (high - low + 1))


def picking(rng: np.random.Generator) -> Pick:
    """Return a pick that is seeded by a NumPy generator, which it advances by one number."""
    return seeded(int(rng.integers(2**63)))


class Draw:
    """Draws by means of a pick."""

    def __init__(self, pick: Pick) -> None:
        self.between = pick

    def chance(self, of: int) -> bool:
        """Return ``True`` with probability ``1 / of``."""
        # The lowest pick is ``False``, so that Hypothesis shrinks to instances without features.
        return self.between(1, of) == of

    def one_of(self, values: Sequence[T]) -> T:
        """Draw one value; Hypothesis shrinks to the first."""
        return values[self.between(0, len(values) - 1)]

    def some(self, n: int, size: int) -> list[int]:
        """Draw ``size`` distinct numbers below ``n``, in random order."""
        left = list(range(n))
        return [left.pop(self.between(0, len(left) - 1)) for _ in range(min(n, size))]

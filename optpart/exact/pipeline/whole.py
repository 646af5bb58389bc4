"""Exact fractions as whole numbers for compiled code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

#: Sums of whole numbers stay below this, so that they never overflow 64 bits.
_ROOM = 2**61

#: Bits per word of numbers that may be larger; sums of 2^15 such words fit 64 bits.
WORD = 46


@dataclass(frozen=True)
class Scale:
    """Units per 1, and whether every number is whole in them."""

    units: Fraction
    exact: bool

    def floor(self, value: Fraction) -> int:
        """Return the number of whole units, rounded down.

        The grid is that of :func:`scale_of`, on which its values are whole if the scale is exact;
        otherwise each term, and so each sum, is at most the true one.
        """
        return math.floor(value * self.units)

    def value(self, units: int) -> Fraction:
        """Return the value of whole units."""
        return units / self.units


def scale_of(values: Iterable[Fraction], most: Fraction) -> Scale:
    """Return a scale in which all values are whole and ``most`` fits 64 bits.

    Parameters
    ----------
    values : iterable of Fraction
    most : Fraction
        The largest sum of values that occurs.

    Returns
    -------
    Scale
        Not exact if the numbers have no such scale; then rounding down keeps lower bounds valid.
    """
    units = math.lcm(1, *{value.denominator for value in values})
    if most * units < _ROOM:
        return Scale(Fraction(units), True)
    ratio = Fraction(_ROOM) / most
    scale = Fraction(2) ** (ratio.numerator.bit_length() - ratio.denominator.bit_length())
    return Scale(scale if scale <= ratio else scale / 2, False)


def in_words(values: Sequence[int], most: int) -> NDArray[np.int64]:
    """Split whole numbers into words of :data:`WORD` bits, the lowest first.

    Sums are added word by word, without carrying.

    Parameters
    ----------
    values : sequence of int
        At least 0.
    most : int
        The largest sum that occurs, on which the number of words depends.

    Returns
    -------
    ndarray of int64, values × words
    """
    words = max(1, -(-most.bit_length() // WORD))
    mask = (1 << WORD) - 1
    table = [[value >> WORD * w & mask for w in range(words)] for value in values]
    return np.array(table, np.int64).reshape(-1, words)

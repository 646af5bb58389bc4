"""Exact rational numbers, single and in arrays.

Every number of an instance is an exact rational (design §3). An array of them is kept as integer
numerators over one common denominator, so that even a graph of a million vertices costs eight bytes
per number, and exact sums are integer sums.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.base.escaping import is_text

Number: TypeAlias = int | float | str | Decimal | Fraction

# Numerator and denominator stay below the 4,300 digits that Python converts from and to text.
_MAX_EXPONENT = 300
_MAX_BITS = 4000 * 10 // 3
_MAX_LENGTH = 8700
_NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)", re.ASCII)

#: From here on, messages leave fractions out.
_ROUNDED = 1000

_FEWER = "give a number with fewer than 4000 digits"
_INT64_MAX = 2**63 - 1


def rational(value: object, place: str = "") -> Fraction:
    """Read one exact rational.

    Parameters
    ----------
    value : int, float, str, Decimal or Fraction
        A float counts as the decimal that Python prints for it (``0.1`` is one tenth); a string is
        an integer, a decimal or a fraction such as ``"1/3"``.
    place : str
        Where the value stands, for the error message.

    Raises
    ------
    InputError
        If it is not a finite number, or has too many digits.
    """
    number = _read(value, place)
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MAX_BITS:
        raise InputError(place, f"{shown(value)} has too many digits", _FEWER)
    return number


def _read(value: object, place: str) -> Fraction:
    if isinstance(value, Fraction):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, (float, np.floating)):
        value = Decimal(repr(float(value)))
    if isinstance(value, Decimal):
        return _from_decimal(value, place)
    text = value.strip() if isinstance(value, str) else ""
    if len(text) <= _MAX_LENGTH and _NUMBER.fullmatch(text):
        numerator, slash, denominator = text.partition("/")
        try:
            if slash:
                return Fraction(int(numerator), int(denominator))
            return _from_decimal(Decimal(text), place)
        except (ArithmeticError, ValueError):  # a zero denominator, or too many digits
            pass
    raise InputError(
        place,
        f"{shown(value)} is not a number",
        'give an integer, a decimal or a string such as "1/3"',
    )


def decimal(digits: str) -> Decimal:
    """Read a decimal without expanding its exponent."""
    try:
        return Decimal(digits)
    except ArithmeticError:  # an exponent beyond Python's range
        raise InputError("", f"{shown(digits)} has too many digits", _FEWER) from None


def _from_decimal(value: Decimal, place: str) -> Fraction:
    if not value.is_finite():
        raise InputError(place, f"{shown(value)} is not finite", "give a finite number")
    exponent = value.as_tuple().exponent
    # Short as text, but gigabytes as a fraction.
    if isinstance(exponent, int) and (
        abs(exponent) > _MAX_EXPONENT or abs(value.adjusted()) > _MAX_LENGTH
    ):
        raise InputError(place, f"{shown(value)} has too many digits", _FEWER)
    return Fraction(value)


def shown(value: object) -> str:
    """Return a value as a short text for an error message."""
    try:
        text = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # more digits than Python converts
        return "a number with very many digits"
    return text if len(text) <= 60 else text[:57] + "..."


def check_text(text: str, place: str) -> None:
    """Refuse a name that could not be written.

    Raises
    ------
    InputError
        If it has a lone surrogate.
    """
    if not is_text(text):
        raise InputError(place, f"{shown(text)} has a lone surrogate", "give valid text")


def rounded(value: Fraction, *, up: bool) -> str:
    """Return a number for a message: large ones without a fraction, rounded up or down."""
    if value.denominator == 1 or abs(value) < _ROUNDED:
        return shown(value)
    return shown(math.ceil(value) if up else math.floor(value))


def non_negative(value: object, place: str) -> Fraction:
    """Read a rational ``≥ 0``; raise :class:`InputError` if it is negative."""
    number = rational(value, place)
    if number < 0:
        raise InputError(place, f"{shown(number)} is negative", "give a number ≥ 0")
    return number


@dataclass(frozen=True, eq=False)
class RationalArray:
    """An array of exact rationals of any shape.

    Attributes
    ----------
    numerators : ndarray of int64, or of Python integers where one does not fit
    denominator : int
        Common, at least 1. Entry ``i`` is ``numerators[i] / denominator``.
    """

    numerators: NDArray[Any]
    denominator: int = 1

    @classmethod
    def of(
        cls, values: Sequence[object], place: Callable[[int], str] = "[{}]".format
    ) -> RationalArray:
        """Build a one-dimensional array of numbers ``≥ 0``; ``place(i)`` names entry ``i``."""
        if set(map(type, values)) <= {int}:
            array = _integers([int(value) for value in values])  # type: ignore[call-overload]
            if not len(array) or array.min() >= 0:
                return cls(array)
        fractions = []
        for i, value in enumerate(values):
            try:
                fractions.append(non_negative(value, ""))
            except InputError as error:  # format the place only when it is needed
                raise InputError(place(i), error.problem, error.remedy) from None
        return cls.from_fractions(fractions)

    @classmethod
    def from_fractions(cls, values: Iterable[Fraction]) -> RationalArray:
        """Build a one-dimensional array of fractions."""
        fractions = list(values)
        denominator = math.lcm(1, *{value.denominator for value in fractions})
        return cls(
            _integers([v.numerator * (denominator // v.denominator) for v in fractions]),
            denominator,
        )

    @classmethod
    def from_integers(cls, numerators: list[int], denominator: int) -> RationalArray:
        """Build from numerators over a denominator, reduced to lowest terms."""
        common = math.gcd(denominator, *numerators)
        return cls(_integers([value // common for value in numerators]), denominator // common)

    @classmethod
    def zeros(cls, *shape: int) -> RationalArray:
        """Build an array of zeros."""
        return cls(np.zeros(shape, dtype=np.int64))

    def reshape(self, *shape: int) -> RationalArray:
        """Return the same numbers in another shape."""
        return RationalArray(self.numerators.reshape(shape), self.denominator)

    def take(self, index: NDArray[Any] | tuple[NDArray[Any], ...]) -> RationalArray:
        """Return the entries at ``index`` (any NumPy index)."""
        return RationalArray(self.numerators[index], self.denominator)

    def __len__(self) -> int:
        return len(self.numerators)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RationalArray):
            return NotImplemented
        if self.numerators.shape != other.numerators.shape:
            return False
        if self.denominator == other.denominator:
            return bool(np.array_equal(self.numerators, other.numerators))
        return self.fractions() == other.fractions()

    def __hash__(self) -> int:
        return hash(self.numerators.shape)

    def __repr__(self) -> str:
        shape = " × ".join(f"{size:,}" for size in self.numerators.shape)
        return f"<RationalArray of {shape}>"

    def __getitem__(self, index: int | tuple[int, ...]) -> Fraction:
        return Fraction(int(self.numerators[index]), self.denominator)

    def fractions(self) -> list[Fraction]:
        """Return all entries, flattened, as fractions."""
        return [Fraction(int(n), self.denominator) for n in self.numerators.ravel()]

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """The nearest doubles; for heuristics only."""
        if self.numerators.dtype != object and self.denominator < 2**53:
            return np.asarray(self.numerators / self.denominator, dtype=np.float64)
        flat = [_nearest(int(n), self.denominator) for n in self.numerators.ravel()]
        return np.array(flat, dtype=np.float64).reshape(self.numerators.shape)

    def sum(self, index: NDArray[Any] | None = None) -> Fraction:
        """Return the exact sum of all entries, or of those at ``index``."""
        chosen = self.numerators if index is None else self.numerators[index]
        if chosen.dtype != object and chosen.size:
            largest = int(np.abs(chosen).max())
            if largest > _INT64_MAX // max(1, chosen.size):
                chosen = chosen.astype(object)
        return Fraction(int(chosen.sum()), self.denominator)


def _nearest(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf


def _integers(values: list[int]) -> NDArray[Any]:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)

"""How well predictions fit, in few figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

from scipy.stats import kendalltau, spearmanr


@dataclass(frozen=True)
class Compared:
    """A prediction and what was measured, in the same unit.

    Attributes
    ----------
    predicted, measured : float
    traits : mapping from str to str
        By which errors are grouped.
    """

    predicted: float
    measured: float
    traits: Mapping[str, str] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """Relative: above 0 if too much was predicted."""
        return self.predicted / self.measured - 1


def correlation(found: Sequence[Compared]) -> float:
    """Return Spearman's rank correlation of predicted and measured."""
    return float(
        spearmanr([each.predicted for each in found], [each.measured for each in found]).statistic
    )


def tau(found: Sequence[Compared]) -> float:
    """Return Kendall's rank correlation (τ-b) of predicted and measured."""
    return float(
        kendalltau([each.predicted for each in found], [each.measured for each in found]).statistic
    )


def in_order(sets: Sequence[Sequence[Compared]]) -> tuple[int, int]:
    """Return how many pairs within a set are predicted in the measured order, and how many exist.

    Pairs that took equally long do not count; a tie in the prediction is not in order.
    """
    pairs = [pair for found in sets for pair in combinations(found, 2)]
    apart = [(one, two) for one, two in pairs if one.measured != two.measured]
    right = sum(
        (one.predicted - two.predicted) * (one.measured - two.measured) > 0 for one, two in apart
    )
    return right, len(apart)


@dataclass(frozen=True)
class Shared:
    """What predictions that are far off have in common.

    Attributes
    ----------
    conditions : tuple of str
        On traits, all of which hold.
    off, others : int
        How many of those that are far off, and how many others, fulfil them.
    """

    conditions: tuple[str, ...]
    off: int
    others: int


def shared(off: Sequence[Compared], others: Sequence[Compared], most: int = 3) -> Shared:
    """Return the conditions on traits that tell those that are far off best from the others.

    Of at most so many conditions, those with the largest F1 score; the fewest of equals. Traits
    with numbers are compared by ``≤`` and ``≥``.
    """
    everything = [*off, *others]
    tests: dict[str, list[bool]] = {}
    for trait in everything[0].traits:
        values = sorted({each.traits[trait] for each in everything}, key=_order)
        numeric = all(value.isdecimal() for value in values)
        for value in values:
            for sign in ("≤", "≥") if numeric else ("=",):
                held = [_holds(each.traits[trait], sign, value) for each in everything]
                if not all(held):
                    tests[f"{trait} {sign} {value}"] = held
    best, score = Shared((), len(off), len(others)), _f1(len(off), len(others), len(off))
    for count in range(1, most + 1):
        for names in combinations(tests, count):
            held = [all(each) for each in zip(*(tests[name] for name in names), strict=True)]
            hits, misses = sum(held[: len(off)]), sum(held[len(off) :])
            if _f1(hits, misses, len(off)) > score:
                best, score = Shared(names, hits, misses), _f1(hits, misses, len(off))
    return best


def _holds(value: str, sign: str, other: str) -> bool:
    if sign == "=":
        return value == other
    return int(value) <= int(other) if sign == "≤" else int(value) >= int(other)


def _f1(hits: int, misses: int, wanted: int) -> float:
    return 2 * hits / (hits + misses + wanted)


def signed(found: Sequence[Compared]) -> str:
    """Write the median error with its sign."""
    return f"{median(each.error for each in found):+.0%}"


def groups(found: Sequence[Compared]) -> dict[str, dict[str, list[Compared]]]:
    """Return the members of every value of every trait; numbers by size."""
    traits = dict.fromkeys(trait for each in found for trait in each.traits)
    result: dict[str, dict[str, list[Compared]]] = {}
    for trait in traits:
        members: dict[str, list[Compared]] = {}
        for each in sorted(found, key=lambda one: _order(one.traits[trait])):
            members.setdefault(each.traits[trait], []).append(each)
        result[trait] = members
    return result


def _order(value: str) -> tuple[int, str]:
    return (int(value), "") if value.isdecimal() else (0, value)

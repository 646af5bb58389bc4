"""How well predictions fit, in few figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from scipy.stats import spearmanr


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

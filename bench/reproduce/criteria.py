"""The criteria by which published findings hold: small pure functions of measured numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

import numpy as np

#: Makespans that differ by less, relatively, count as equal.
SAME = 0.001


class Verdict(StrEnum):
    """Whether a finding holds here."""

    HOLDS = "holds"
    PARTLY = "partly"
    NOT = "does not"
    UNKNOWN = "not measured"


def by_share(count: int, total: int, *, holds: float, partly: float) -> Verdict:
    """Judge a claim by how many of the cases agree with it."""
    if not total:
        return Verdict.UNKNOWN
    share = count / total
    if share >= holds:
        return Verdict.HOLDS
    return Verdict.PARTLY if share >= partly else Verdict.NOT


def all_of(flags: Iterable[bool]) -> Verdict:
    """Judge a claim about every case: all agree, some do, none does."""
    flags = list(flags)
    return by_share(sum(flags), len(flags), holds=1.0, partly=1e-9)


def within(
    value: float, holds: tuple[float, float], partly: tuple[float, float] | None = None
) -> Verdict:
    """Judge a published number by the range in which the measured one lies."""
    if holds[0] <= value <= holds[1]:
        return Verdict.HOLDS
    if partly is not None and partly[0] <= value <= partly[1]:
        return Verdict.PARTLY
    return Verdict.NOT


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Judge a claim of several parts: it holds with all, and does not without any."""
    verdicts = list(verdicts)
    for one in (Verdict.UNKNOWN, Verdict.HOLDS, Verdict.NOT):
        if verdicts and all(verdict is one for verdict in verdicts):
            return one
    return Verdict.UNKNOWN if Verdict.UNKNOWN in verdicts else Verdict.PARTLY


def is_largest(value: float, others: Collection[float]) -> bool:
    """Whether a value is the largest, alone or within :data:`SAME` of the largest."""
    return value >= max(others) * (1 - SAME)


def is_least(value: float, others: Collection[float]) -> bool:
    """Whether a value is the least, alone or within :data:`SAME` of the least."""
    return value <= min(others) * (1 + SAME)


def alike(values: Collection[float]) -> bool:
    """Whether values differ by less than :data:`SAME`."""
    return max(values) <= min(values) * (1 + SAME)


def falling(values: Mapping[str, float]) -> list[str]:
    """Names by falling value."""
    return sorted(values, key=lambda name: -values[name])


def overlap(names: Sequence[str], expected: Collection[str]) -> int:
    """Return how many of the first ``n`` names are among the ``n`` expected ones."""
    return len(set(names[: len(expected)]) & set(expected))


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Pearson's correlation; 0 where one does not vary."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])

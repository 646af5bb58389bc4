"""Johnson's rule for two machines, which Jackson's rests on."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

#: Times of one job on the first and on the second machine.
Pair = tuple[Fraction, Fraction]


def johnson_order(jobs: Sequence[Pair]) -> list[int]:
    """First the jobs shorter on the first machine, rising; then the others, falling on the second.

    S. M. Johnson, Optimal two- and three-stage production schedules with setup times included,
    Naval Research Logistics Quarterly 1 (1954).
    """
    shorter = [j for j, (a, b) in enumerate(jobs) if a < b]
    others = [j for j, (a, b) in enumerate(jobs) if a >= b]
    return sorted(shorter, key=lambda j: jobs[j][0]) + sorted(others, key=lambda j: -jobs[j][1])

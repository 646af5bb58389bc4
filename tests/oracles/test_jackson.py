"""Job shops of two machines and at most two operations a job (Jackson 1956).

J. R. Jackson, An extension of Johnson's results on job lot scheduling, Naval Research Logistics
Quarterly 3 (1956).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from oracles.proving import prove
from oracles.shops import Job, job_shop
from oracles.two_machines import johnson_order


def jackson(jobs: Sequence[Job]) -> Fraction:
    """Each machine: first what goes on to the other, then what stays, then what comes from it.

    What visits both machines in one direction is in Johnson's order for that direction.
    """
    through: dict[int, list[Job]] = {0: [], 1: []}
    alone: dict[int, list[Job]] = {0: [], 1: []}
    for job in jobs:
        (through if len(job) == 2 else alone)[job[0][0]].append(job)
    for first, directed in through.items():
        order = johnson_order([(job[0][1], job[1][1]) for job in directed])
        through[first] = [directed[j] for j in order]
    end = Fraction(0)
    for machine in (0, 1):
        other = 1 - machine
        own = [*through[machine], *alone[machine]]
        here = sum((job[0][1] for job in own), Fraction(0))
        at_other = Fraction(0)
        for job in through[other]:
            at_other += job[0][1]
            here = max(here, at_other) + job[1][1]
        end = max(end, here)
    return end


def random_job(rng: np.random.Generator) -> Job:
    first = int(rng.integers(2))
    machines = [first, 1 - first][: int(rng.integers(1, 3)) if rng.integers(2) else 2]
    return [(machine, Fraction(int(rng.integers(1, 30)), 2)) for machine in machines]


@pytest.mark.parametrize("count", [2, 3, 4, 6, 10, 15, 25, 40, 60])
def test_two_machines(count: int) -> None:
    rng = np.random.default_rng(count)
    jobs = [random_job(rng) for _ in range(count)]
    prove(job_shop(jobs, 2, f"jackson-{count}"), jackson(jobs), "enumerate", "milp")

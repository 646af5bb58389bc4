"""Job shops of two jobs and any number of machines: a shortest path among obstacles (Akers 1956).

S. B. Akers, A graphical approach to production scheduling problems, Operations Research 4 (1956);
P. Brucker, An efficient algorithm for the job-shop problem with two jobs, Computing 40 (1988).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import accumulate, product

import numpy as np
import pytest
from oracles.proving import prove
from oracles.shops import Job, job_shop


def akers(first: Job, second: Job) -> Fraction:
    """Length of the shortest way from neither job begun to both done.

    The axes are the two jobs' progress. Both go on along a diagonal, one alone along an axis. Two
    operations on one machine span an open rectangle that no way may enter. From any point the
    diagonal is followed up to the first rectangle; there one of the jobs goes first, and the way
    passes by the corner above and to the left or by the one below and to the right.
    """
    zero = Fraction(0)
    ends = [list(accumulate((time for _, time in job), initial=zero)) for job in (first, second)]
    width, height = ends[0][-1], ends[1][-1]
    rectangles = [
        (ends[0][i], ends[0][i + 1], ends[1][j], ends[1][j + 1])
        for (i, (d, _)), (j, (e, _)) in product(enumerate(first), enumerate(second))
        if d == e
    ]

    @cache
    def left(x: Fraction, y: Fraction) -> Fraction:
        in_the_way = [
            (max(west - x, south - y), west, east, south, north)
            for west, east, south, north in rectangles
            if max(west - x, south - y, zero) < min(east - x, north - y)
        ]
        if not in_the_way:
            return max(width - x, height - y)
        _, west, east, south, north = min(in_the_way)
        ways = []
        if x <= west:
            ways.append(north - y + left(west, north))
        if y <= south:
            ways.append(east - x + left(east, south))
        return min(ways)

    return left(zero, zero)


def random_job(rng: np.random.Generator, operations: int, machines: int) -> Job:
    """Machines may be visited again."""
    return [
        (int(rng.integers(machines)), Fraction(int(rng.integers(1, 20)), 2))
        for _ in range(operations)
    ]


SIZES = [(3, 2), (3, 3), (4, 2), (5, 3), (8, 3), (12, 4), (20, 5), (25, 5), (40, 12)]


@pytest.mark.parametrize(("operations", "machines"), SIZES)
def test_two_jobs(operations: int, machines: int) -> None:
    rng = np.random.default_rng([operations, machines])
    first, second = (random_job(rng, operations, machines) for _ in range(2))
    instance = job_shop([first, second], machines, f"akers-{operations}-{machines}")
    prove(instance, akers(first, second), "enumerate", "milp")


@pytest.mark.parametrize("machines", [3, 6, 10])
def test_each_job_once_on_each_machine(machines: int) -> None:
    rng = np.random.default_rng(machines)
    first, second = (
        [(int(d), Fraction(int(rng.integers(1, 20)))) for d in rng.permutation(machines)]
        for _ in range(2)
    )
    prove(job_shop([first, second], machines, f"akers-{machines}"), akers(first, second))

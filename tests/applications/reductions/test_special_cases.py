"""The polynomial algorithms are exact on their special cases, and refuse all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from applications.reductions.sources import answer, draw

from optpart.applications.reductions.partition import PARTITION, Numbers
from optpart.applications.reductions.single_execution_time import SINGLE_EXECUTION_TIME, Jobs, Slots
from optpart.applications.reductions.special_cases import coffman_graham, halves, hu
from optpart.base.errors import UnsupportedError


def is_best(jobs: Jobs, slots: Slots) -> bool:
    """Return whether a solution is valid and none is shorter."""
    length = max(slots) + 1
    valid = SINGLE_EXECUTION_TIME.check(replace(jobs, limit=length), slots) == ""
    return valid and not (length > 1 and answer("scheduling", replace(jobs, limit=length - 1)))


def forest(rng: np.random.Generator, *, out: bool) -> Jobs:
    n = int(rng.integers(1, 8))
    order = [(v, int(rng.integers(v + 1, n))) for v in range(n - 1) if rng.random() < 0.8]
    if out:
        order = [(v, u) for u, v in order]
    names = tuple(f"x{v}" for v in range(n))
    return Jobs(names, tuple(order), int(rng.integers(1, 4)), n)


@pytest.mark.parametrize("out", [False, True])
def test_hu_is_exact_on_forests(out: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        jobs = forest(rng, out=out)
        assert is_best(jobs, hu(jobs)), jobs


def test_hu_sees_through_pairs_that_follow_from_others() -> None:
    jobs = Jobs(("a", "b", "c"), ((0, 1), (1, 2), (0, 2)), 2, 3)
    assert hu(jobs) == (0, 1, 2)


def test_hu_refuses_what_branches_on_both_sides() -> None:
    jobs = Jobs(tuple("abcde"), ((0, 2), (1, 2), (2, 3), (2, 4)), 2, 4)
    with pytest.raises(UnsupportedError, match="forest"):
        hu(jobs)


def test_coffman_graham_is_exact_on_two_processors() -> None:
    rng = np.random.default_rng(2)
    for _ in range(120):
        jobs = replace(draw("scheduling", rng), processors=int(rng.integers(1, 3)))
        assert is_best(jobs, coffman_graham(jobs)), jobs


def test_coffman_graham_refuses_three_processors() -> None:
    with pytest.raises(UnsupportedError, match="one or two"):
        coffman_graham(Jobs(("a",), (), 3, 1))


def test_the_table_of_sums_answers_partition() -> None:
    rng, seen = np.random.default_rng(3), set()
    for _ in range(200):
        source = draw("partition", rng)
        half = halves(source)
        assert (half is not None) == answer("partition", source)
        assert half is None or PARTITION.check(source, half) == ""
        seen.add(half is not None)
    assert seen == {True, False}


def test_the_table_of_sums_takes_many_numbers() -> None:
    rng = np.random.default_rng(4)
    drawn = tuple(int(x) for x in rng.integers(1, 1000, size=200))
    numbers = (*drawn, sum(drawn) % 2 + 2)
    half = halves(Numbers(numbers))
    assert half is not None
    assert PARTITION.check(Numbers(numbers), half) == ""

"""The bound series: never above the optimum, and it sees scarce memory and slow links."""

from fractions import Fraction

import pytest

import optpart as op
from optpart.exact.enumeration import enumerate_all
from optpart.exact.series.bound import series_bound
from optpart.lower_bounds.critical_path import critical_path_bound
from optpart.solution.result import Budget, Status
from optpart.testing.modules import draw_modules


@pytest.mark.parametrize("seed", range(5000, 5060))
def test_it_is_never_above_the_optimum(seed):
    instance = draw_modules(seed)
    expected = enumerate_all(instance, budget=Budget(60))
    bound = series_bound(instance, seconds=10.0, makespan=None)

    if expected.status is Status.INFEASIBLE:
        return
    assert bound is not None
    assert bound <= expected.makespan
    assert series_bound(instance, seconds=10.0, makespan=expected.makespan) <= expected.makespan


def test_with_free_memory_it_is_the_optimum_of_modules_in_series():
    assert series_bound(op.load("squeezenet-server-free"), seconds=10.0, makespan=None) == 371300


def test_it_sees_that_memory_is_scarce():
    instance = op.load("llama-3-8b-decode-workstation-tight")
    bound = series_bound(instance, seconds=10.0, makespan=Fraction(137140918))

    assert critical_path_bound(instance) < 50_000_000
    assert 130_000_000 < bound <= 137140918

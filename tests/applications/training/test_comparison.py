"""What is proven about the strategies of a problem."""

import pytest

from optpart.applications.training.comparison import bounded, compare
from optpart.applications.training.problem import StrategyProblem
from optpart.certificates.check_strategies import check
from optpart.solution.result import Budget
from optpart.testing.chains import chain, cluster


@pytest.fixture
def problem():
    devices = cluster(("a", "a"), bandwidth=1, memory=[9**6] * 2)
    return StrategyProblem(chain(3, weights=2000), devices, 8)


def test_the_integer_program_is_in_the_bound_but_not_in_the_certificate(problem, tmp_path):
    linear, both = bounded(problem), bounded(problem, 20.0)
    assert both.certified == linear.certified == linear.value
    assert both.value > linear.value
    both.certify(tmp_path)
    check(str(tmp_path))


def test_the_bound_is_at_most_every_strategy(problem):
    found = compare(problem, ["single", "cp-ar", "ev-ps"], budget=Budget(5.0))
    assert found.bound.value <= found.best[1].makespan


def test_without_time_the_bound_of_every_strategy_is_left_and_says_so(problem):
    found = bounded(problem, 0.0)
    assert found.value == found.whatever
    assert "time limit" in found.reason
    assert not found.infeasible


def test_a_linear_program_beyond_the_memory_is_left_out_and_the_bound_says_so(problem):
    found = bounded(problem, memory=2**20)
    assert found.value == found.whatever
    assert found.proof is None
    assert not found.infeasible
    assert "the linear program would need about" in found.reason
    assert "of 1 MiB allowed" in found.reason


def test_memory_that_suffices_leaves_the_bound_as_it_is(problem):
    assert bounded(problem, memory=2**40).value == bounded(problem).value

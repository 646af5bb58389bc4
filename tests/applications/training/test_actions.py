"""The actions of a group: M + 4, or any counts and servers."""

from __future__ import annotations

from fractions import Fraction

import pytest

from optpart.applications.training.actions import (
    ActionRules,
    actions,
    best_server,
    decision,
    gradients,
    proportional,
    speeds,
)
from optpart.applications.training.compiled import Options
from optpart.applications.training.graph import Line, TrainingGraph
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision
from optpart.base.errors import InputError
from optpart.testing.chains import chain, cluster


def speed_chain(*times: int) -> TrainingGraph:
    """Return three layers that take these nanoseconds per sample on kinds ``k0``, ``k1``, …"""
    lines = [Line(Fraction(0), Fraction(time)) for time in times]
    return chain(3, [f"k{i}" for i in range(len(times))], forward=[lines] * 3)


def test_a_group_has_m_plus_4_actions() -> None:
    problem = StrategyProblem(speed_chain(10, 20), cluster(["k0", "k0", "k1", "k1"]), 12)
    [names, *_] = [[action.name for action in found] for found in actions(problem)]
    assert names == [
        "k00",
        "k01",
        "k12",
        "k13",
        "even PS k00",
        "even AllReduce",
        "proportional PS k00",
        "proportional AllReduce",
    ]


def test_proportional_counts_follow_measured_speeds() -> None:
    graph = speed_chain(10, 20, 15)
    for kinds, counts in (
        (["k0", "k0", "k1", "k1"], (2, 2, 1, 1)),
        (["k0", "k2"], (3, 2)),
        (["k0", "k1", "k2"], (6, 3, 4)),
        (["k1", "k1"], (1, 1)),
    ):
        assert proportional(StrategyProblem(graph, cluster(kinds), 48)) == counts
    five = StrategyProblem(graph, cluster(["k0"] * 5), 48)
    assert proportional(five, "heterog") == (2, 2, 2, 2, 1)
    assert speeds(StrategyProblem(graph, cluster(["k0", "k1"]), 1)) == (
        Fraction(1, 90),
        Fraction(1, 180),
    )


def test_proportional_counts_never_exceed_the_batch() -> None:
    graph = speed_chain(10, 20, 15)
    assert sum(proportional(StrategyProblem(graph, cluster(["k0", "k1", "k2"]), 5))) <= 5


def test_equal_replicas_and_small_batches_leave_fewer_actions() -> None:
    equal = StrategyProblem(speed_chain(10), cluster(["k0", "k0"]), 4)
    assert len(actions(equal)[0]) == 4
    assert len(actions(StrategyProblem(speed_chain(10), cluster(["k0", "k0"]), 1))[0]) == 2


def test_a_group_without_gradients_has_one_kind_of_replicas() -> None:
    graph = chain(2)
    bare = TrainingGraph("bare", graph.kinds, graph.operations[:2], graph.edges[:1])
    problem = StrategyProblem(bare, cluster(["a", "a"]), 4)
    assert not gradients(problem, 0)
    assert [action.decision.sync for action in actions(problem)[0]] == [None, None, "allreduce"]


def test_the_server_is_where_gradients_are_summed_earliest() -> None:
    # The slow device ends last; others wait for its gradient wherever it goes, so it is the server.
    problem = StrategyProblem(speed_chain(10, 50), cluster(["k0", "k1", "k0"]), 12)
    assert best_server(problem, 0, (1, 1, 1)) == 1
    # Equal devices: the one with the best links in.
    fast = [[0, 1, 1], [4, 0, 4], [1, 1, 0]]
    into = [[None if d == e else fast[e][d] for e in range(3)] for d in range(3)]
    equal = StrategyProblem(speed_chain(10), cluster(["k0"] * 3, bandwidth=into), 12)
    assert best_server(equal, 0, (1, 1, 1)) == 1
    assert decision(equal, 0, (1, 1, 1), "ps") == Decision((1, 1, 1), 1)


def test_missing_links_remove_synchronisations() -> None:
    # A star around device 1: no ring, and one possible server.
    star = [[None, 1, 0], [1, None, 1], [0, 1, None]]
    problem = StrategyProblem(speed_chain(10), cluster(["k0"] * 3, bandwidth=star), 12)
    assert [action.name for action in actions(problem)[0]] == ["k00", "k01", "k02", "even PS k01"]


def test_any_counts_and_servers() -> None:
    problem = StrategyProblem(speed_chain(10), cluster(["k0", "k0"]), 12)
    found = {action.decision for action in actions(problem, ActionRules(counts=2, servers=True))[0]}
    # Two devices alone; 1:1, 1:2 and 2:1, each with AllReduce and two servers. 2:2 is 1:1.
    assert len(found) == 2 + 3 * 3
    separate = StrategyProblem(
        problem.graph, problem.cluster, 12, options=Options(replicas="separate")
    )
    assert len(actions(separate, ActionRules(counts=2, servers=True))[0]) == 2 + 4 * 3


def test_too_many_counts_are_refused() -> None:
    problem = StrategyProblem(speed_chain(10), cluster(["k0"] * 8), 64)
    with pytest.raises(InputError, match="fewer replicas"):
        actions(problem, ActionRules(counts=4))

"""Transfers as vertices on links that are devices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model, Status
from optpart.applications.ordering.explicit import explicit
from optpart.exact.enumeration import enumerate_all
from optpart.methods.starts import only_placement
from optpart.solution.goal import Goal
from optpart.solution.result import Budget
from optpart.solution.schedule import retime
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.heterog import heterog
from optpart.strategies.simulator import simulate
from optpart.testing.solutions import Step
from optpart.testing.strategies import solutions

CASES = solutions(max_vertices=4, communication="link")


def only(instance: Instance) -> NDArray[np.int32]:
    """Return the only placement that an explicit instance allows."""
    where = only_placement(instance)
    assert where is not None
    return np.array([where[v] for v in range(instance.vertices)], dtype=np.int32)


def fork(**model: str) -> Instance:
    """A tensor with two consumers on another device and one on its own."""
    builder = GraphBuilder().vertex("a", 4, outputs=[6])
    for name in "bcd":
        builder.vertex(name, 2).edge("a", name)
    cluster = Cluster.of([Device("x", 2), Device("y", 1)], bandwidth=3, latency=1)
    return Instance(builder.build(), cluster, Model(**model), name="fork")  # type: ignore[arg-type]


def test_a_tensor_crosses_once_and_takes_its_time_on_its_own_device() -> None:
    made = explicit(fork(communication="link"), [0, 1, 1, 0])
    assert made.graph.names == ("a", "b", "c", "d", "a:0 to y")
    assert made.cluster.names == ("x", "y", "x to y")
    assert [made.duration(v, d) for v, d in enumerate(only(made).tolist())] == [2, 2, 2, 1, 3]
    edges = zip(made.graph.edge_source.tolist(), made.graph.edge_target.tolist(), strict=True)
    assert sorted(edges) == [(0, 3), (0, 4), (4, 1), (4, 2)]


def test_name_collisions_are_avoided() -> None:
    builder = GraphBuilder().vertex("a", 1, outputs=[1]).vertex("a:0 to y", 1)
    builder.edge("a", "a:0 to y")
    cluster = Cluster.of([Device("x"), Device("y"), Device("x to y")], bandwidth=1)
    made = explicit(Instance(builder.build(), cluster, Model("link")), [0, 1])
    assert made.graph.names[2] == "a:0 to y'"
    assert made.cluster.names == ("x", "y", "x to y", "x to y'")


@pytest.mark.parametrize("model", [{}, {"communication": "link", "memory": "refcount"}])
def test_other_models_are_refused(model: dict[str, str]) -> None:
    with pytest.raises(InputError, match="use communication link and memory none"):
        explicit(fork(**model), [0, 1, 1, 0])


def test_a_crossing_without_a_link_is_refused() -> None:
    instance = fork(communication="link")
    cut = Cluster.of([Device("x"), Device("y")], bandwidth=0)
    with pytest.raises(InputError, match="not linked"):
        explicit(Instance(instance.graph, cut, instance.model), [0, 1, 1, 0])


@settings(derandomize=True, deadline=None, max_examples=40)
@given(CASES)
def test_schedules_are_the_same_in_any_order(
    case: tuple[Instance, NDArray[np.int32], list[Step]],
) -> None:
    instance, placement, order = case
    made = explicit(instance, placement)
    given_schedule = retime(instance, placement, order)
    moves = given_schedule.transfers
    number = {
        move: instance.vertices + c
        for c, move in enumerate(zip(moves.tensor.tolist(), moves.target.tolist(), strict=True))
    }
    same = retime(made, only(made), [s if isinstance(s, int) else number[s] for s in order])
    assert not verify(made, same)
    begun = given_schedule.start.fractions() + moves.start.fractions()
    assert same.start.fractions() == begun


@settings(derandomize=True, deadline=None, max_examples=40)
@given(CASES)
def test_the_best_order_and_the_order_by_rank_are_the_same(
    case: tuple[Instance, NDArray[np.int32], list[Step]],
) -> None:
    instance, placement, _ = case
    made = explicit(instance, placement)
    ranked = simulate(instance, Partition(placement), heterog)
    assert simulate(made, Partition(only(made)), heterog).makespan(made) == ranked.makespan(
        instance
    )
    if made.vertices > 10:
        return
    goal = Goal(placement=dict(enumerate(placement.tolist())))
    best = enumerate_all(instance, budget=Budget(20), goal=goal)
    same = enumerate_all(made, budget=Budget(20))
    assert best.status is same.status is Status.OPTIMAL
    assert best.makespan == same.makespan

"""What a schedule gives to a solve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, InputError, Instance, Model
from optpart.base.errors import ContradictionError
from optpart.exact.enumeration import enumerate_all
from optpart.exact.given_order import given_by, order_of
from optpart.methods import registry
from optpart.methods.cpsat import cpsat
from optpart.methods.milp import milp
from optpart.problem.model import Communication
from optpart.solution.goal import Goal
from optpart.solution.schedule import retime
from optpart.testing.draw import random_instance


def chain() -> Instance:
    graph = GraphBuilder().vertex("a", 1, outputs=[4]).vertex("b", 2).vertex("c", 3).vertex("d", 0)
    graph.edge("a", "b").edge("a", "c").edge("a", "d", None)
    return Instance(graph.build(), Cluster.uniform(2, bandwidth=4), Model(communication="link"))


def test_neighbours_on_every_device_and_link_where_the_placement_is_given() -> None:
    instance = chain()
    schedule = retime(instance, np.array([0, 1, 0, 0]), [0, 3, 2, (0, 1), 1])
    assert order_of(instance, schedule, placed=True) == ((0, 3), (3, 2))
    assert given_by(instance, schedule, "placement").order == ()
    assert given_by(instance, schedule, "both").placement == {0: 0, 1: 1, 2: 0, 3: 0}


def test_every_pair_of_vertices_where_it_is_not() -> None:
    instance = chain()
    schedule = retime(instance, np.array([0, 1, 0, 0]), [0, 3, 2, (0, 1), 1])
    assert order_of(instance, schedule, placed=False) == (
        (0, 3), (0, 2), (0, 1), (3, 2), (3, 1), (2, 1),
    )  # fmt: skip


def two_at_once() -> Instance:
    """a hands 2 to each of b and c on another device; a port has two channels."""
    builder = GraphBuilder().vertex("a", 1, outputs=[2, 2]).vertex("b", 1).vertex("c", 1)
    builder.edge("a", "b", 0).edge("a", "c", 1).separate("a", "b").separate("a", "c")
    cluster = Cluster.uniform(2, bandwidth=1)
    return Instance(builder.build(), cluster, Model("port", channels=2))


def test_what_overlaps_on_a_port_of_several_channels_is_in_no_order() -> None:
    instance = two_at_once()
    schedule = enumerate_all(instance).schedule
    assert schedule is not None
    goal = given_by(instance, schedule, "both")
    assert len(goal.order) == 1  # of b and c
    assert cpsat(instance, goal=goal).makespan == schedule.makespan(instance) == 5


def test_of_several_channels_every_pair_in_turn_is_ordered() -> None:
    """Of four transfers over two channels, the second pair follows both of the first."""
    builder = GraphBuilder().vertex("a", 1, outputs=[2] * 4, devices=["d0"])
    for i in range(4):
        builder.vertex(f"b{i}", 0, devices=["d1"]).edge("a", f"b{i}", i)
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1), Model("port", channels=2))
    schedule = retime(instance, [0, 1, 1, 1, 1], [0, *((t, 1) for t in range(4)), 1, 2, 3, 4])
    order = order_of(instance, schedule, placed=True)
    assert {pair for pair in order if isinstance(pair[0], tuple)} == {
        ((first, 1), (second, 1)) for first in (0, 1) for second in (2, 3)
    }


def test_a_schedule_that_breaks_what_was_taken_from_it_is_a_defect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = two_at_once()
    schedule = enumerate_all(instance).schedule
    assert schedule is not None
    chained = (((0, 1), (1, 1)),)
    monkeypatch.setattr("optpart.exact.given_order.order_of", lambda *given, placed: chained)
    with pytest.raises(ContradictionError, match="breaks the placement and order taken from it"):
        given_by(instance, schedule, "both")


def test_a_start_that_contradicts_what_is_given_is_refused() -> None:
    instance = two_at_once()
    schedule = enumerate_all(instance).schedule
    assert schedule is not None
    elsewhere = Goal(placement={0: 1 - int(schedule.placement[0])})
    for method in (cpsat, milp):
        with pytest.raises(
            InputError, match="start: contradicts the given placement or order: a is not on"
        ):
            method(replace(instance, model=Model()), start=schedule, goal=elsewhere)


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
@pytest.mark.parametrize("what", ["placement", "order", "both"])
def test_no_worse_than_the_schedule_that_gives_it(communication: Communication, what: str) -> None:
    rng = np.random.default_rng(7)
    for seed in range(12):
        instance = random_instance(rng, 5, 3, communication=communication)
        result = registry.get("hash+fifo")(instance, seed=seed)
        if result.schedule is None or result.makespan is None:
            continue
        goal = given_by(instance, result.schedule, what)
        assert goal.broken(instance, result.schedule) == ""
        best = enumerate_all(instance, goal=goal)
        assert best.makespan is not None
        assert best.makespan <= result.makespan
        assert best.schedule is not None
        if what != "order":
            assert best.schedule.placement.tolist() == result.schedule.placement.tolist()

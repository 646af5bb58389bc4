"""What a schedule gives to a solve."""

from __future__ import annotations

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance, Model, methods
from optpart.exact.enumeration import enumerate_all
from optpart.exact.given import given_by, order_of
from optpart.instance import Communication
from optpart.schedule import retime
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


@pytest.mark.parametrize("communication", ["delay", "sendrecv", "link", "port"])
@pytest.mark.parametrize("what", ["placement", "order", "both"])
def test_no_worse_than_the_schedule_that_gives_it(communication: Communication, what: str) -> None:
    rng = np.random.default_rng(7)
    for seed in range(8):
        instance = random_instance(rng, 5, 3, communication=communication)
        result = methods.get("hash+fifo")(instance, seed=seed)
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

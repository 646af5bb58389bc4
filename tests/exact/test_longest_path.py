"""The choices along a longest path bound the makespan of every schedule that makes them."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from optpart import Cluster, GraphBuilder, Instance
from optpart.exact.longest_path import Choices, longest_path
from optpart.problem.rational import RationalArray
from optpart.solution.schedule import Schedule, crossings, retime
from optpart.testing.draw import draw_instance
from optpart.testing.pick import Draw, seeded
from optpart.testing.solutions import allowed_placements, picked_order


def chain() -> Instance:
    """a (2) and b (3) run on d0 in any order before c (1), which sends (4) to e (1) on d1."""
    builder = GraphBuilder().vertex("a", 2).vertex("b", 3).vertex("c", 1, outputs=[4])
    builder.vertex("e", 1).edge("a", "c", None).edge("c", "e", 0)
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1))


def schedule(instance: Instance, where: list[int], order: list[int]) -> Schedule:
    return retime(instance, np.array(where, dtype=np.int32), order)


def test_vertices_between_crossings_may_run_in_any_order() -> None:
    instance = chain()
    found = longest_path(instance, schedule(instance, [0, 0, 0, 1], [0, 1, 2, 3]))
    placed = {(0, 0), (1, 0), (2, 0), (3, 1)}
    assert found == Choices(frozenset(placed), frozenset({(0, 2), (1, 2)}))


def test_what_does_not_wait_is_no_choice() -> None:
    instance = chain()
    found = longest_path(instance, schedule(instance, [0, 1, 0, 0], [0, 1, 2, 3]))
    assert found == Choices(frozenset({(0, 0), (2, 0), (3, 0)}), frozenset())


def test_a_schedule_that_could_start_earlier_has_no_such_path() -> None:
    instance = chain()
    found = schedule(instance, [0, 0, 0, 0], [0, 1, 2, 3])
    later = RationalArray.from_fractions(time + 1 for time in found.start.fractions())
    assert longest_path(instance, Schedule(found.placement, later, found.transfers)) is None


def test_vertices_without_length_are_no_dead_end() -> None:
    builder = GraphBuilder().vertex("a", 1, outputs=[1]).vertex("b", 0).vertex("c", 0)
    builder.vertex("e", 1).edge("a", "b", 0).edge("b", "c", None)
    instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
    found = longest_path(instance, schedule(instance, [0, 1, 1, 1], [0, 1, 2, 3]))
    assert found is not None
    assert {(0, 0), (3, 1)} <= found.placed


@pytest.mark.parametrize("seed", range(30))
def test_no_schedule_with_the_choices_is_shorter(seed: int) -> None:
    instance = draw_instance(
        seed, "delay", "none", vertices=(2, 4), devices=(1, 3), exact=seed % 2 > 0
    )
    draw = Draw(seeded(seed, "longest path"))
    placements = allowed_placements(instance)
    if not placements:
        return
    where = draw.one_of(placements)
    order = picked_order(draw.between, instance, crossings(instance, where))
    given = retime(instance, where, order)
    found = longest_path(instance, given)
    assert found is not None
    for other, sequence in product(placements, sequences(instance)):
        if made(found, instance, other, sequence):
            shorter = retime(instance, other, sequence).makespan(instance)
            assert shorter >= given.makespan(instance)


def sequences(instance: Instance) -> list[list[int]]:
    """Return every order of the vertices in which all edges go forward."""
    graph = instance.graph
    edges = list(zip(graph.edge_source.tolist(), graph.edge_target.tolist(), strict=True))
    return [
        list(order)
        for order in permutations(range(instance.vertices))
        if all(order.index(u) < order.index(v) for u, v in edges)
    ]


def made(
    choices: Choices, instance: Instance, where: NDArray[np.int32], sequence: list[int]
) -> bool:
    """Return whether a placement and an order make all choices."""
    device = dict(zip(instance.unit_of.tolist(), where.tolist(), strict=True))
    return all(device[u] == d for u, d in choices.placed) and all(
        sequence.index(u) < sequence.index(v) for u, v in choices.ordered
    )

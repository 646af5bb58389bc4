"""The choices along a longest path bound the makespan of every schedule that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice, permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from optpart import Cluster, GraphBuilder, Instance, Model
from optpart.exact.longest_path import Choices, longest_path
from optpart.problem.model import Communication
from optpart.problem.rational import RationalArray
from optpart.solution.goal import Task
from optpart.solution.schedule import Schedule, crossings, retime
from optpart.testing.draw import draw_instance
from optpart.testing.pick import Draw, seeded
from optpart.testing.solutions import allowed_placements, picked_order


def chain() -> Instance:
    """a (2) and b (3) run on d0 in any order before c (1), which sends (4) to e (1) on d1."""
    builder = GraphBuilder().vertex("a", 2).vertex("b", 3).vertex("c", 1, outputs=[4])
    builder.vertex("e", 1).edge("a", "c", None).edge("c", "e", 0)
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=1))


def schedule(instance: Instance, where: list[int], order: list[Task]) -> Schedule:
    return retime(instance, np.array(where, dtype=np.int32), order)


def test_what_runs_between_crossings_may_run_in_any_order_that_no_edge_excludes() -> None:
    instance = chain()
    found = longest_path(instance, schedule(instance, [0, 0, 0, 1], [0, 1, 2, 3]))
    placed = {(0, 0), (1, 0), (2, 0), (3, 1)}
    assert found == Choices(frozenset(placed), frozenset({(1, 2)}))


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


@pytest.mark.parametrize("model", ["sendrecv", "link", "port"])
def test_transfers_that_wait_for_one_another_are_choices(model: Communication) -> None:
    """Both tensors of a (2) cross to d1, where b and c consume them; that of c goes first."""
    builder = GraphBuilder().vertex("a", 2, outputs=[4, 4]).vertex("b", 1).vertex("c", 1)
    builder.edge("a", "b", 0).edge("a", "c", 1)
    cluster = Cluster.uniform(2, bandwidth=1)
    instance = Instance(builder.build(), cluster, Model(model, send_ops=Fraction(7)))
    found = longest_path(instance, schedule(instance, [0, 1, 1], [0, (1, 1), (0, 1), 2, 1]))
    assert found is not None
    assert found.placed == {(0, 0), (1, 1), (2, 1)}
    assert found.ordered == {((1, 1), (0, 1))}


@pytest.mark.parametrize("model", ["delay", "sendrecv", "link", "port"])
@pytest.mark.parametrize("seed", range(15))
def test_no_schedule_with_the_choices_is_shorter(seed: int, model: Communication) -> None:
    drawn = draw_instance(seed, model, "none", vertices=(2, 4), devices=(1, 3), exact=seed % 2 > 0)
    instance = Instance(drawn.graph, drawn.cluster, replace(drawn.model, channels=1))
    draw = Draw(seeded(seed, "longest path"))
    placements = allowed_placements(instance)
    if not placements:
        return
    where = draw.one_of(placements)
    order = picked_order(draw.between, instance, crossings(instance, where))
    given = retime(instance, where, order)
    found = longest_path(instance, given)
    assert found is not None
    for other in placements:
        device = dict(zip(instance.unit_of.tolist(), other.tolist(), strict=True))
        if any(device[u] != d for u, d in found.placed):
            continue
        for sequence in sequences(instance, other):
            if all(sequence.index(one) < sequence.index(two) for one, two in found.ordered):
                shorter = retime(instance, other, sequence).makespan(instance)
                assert shorter >= given.makespan(instance)


def sequences(instance: Instance, where: NDArray[np.int32]) -> Iterator[list[Task]]:
    """Yield orders of all tasks in which all edges go forward: all of few tasks, else some."""
    graph = instance.graph
    queued = [] if instance.model.communication == "delay" else crossings(instance, where)
    tasks: list[Task] = [*range(instance.vertices), *queued]
    for order in islice(permutations(tasks), 720):
        at = {task: i for i, task in enumerate(order)}
        edges = zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True)
        crossing = ((int(u), (int(t), int(where[v])), int(v)) for u, v, t in edges)
        if all(at[u] < at.get(c, at[u] + 0.5) < at[v] for u, c, v in crossing):
            yield list(order)

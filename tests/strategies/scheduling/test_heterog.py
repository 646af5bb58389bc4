"""HeteroG's order, and its bound ([G] §4.2, theorem 1)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from numpy.typing import NDArray

from optpart import Cluster, GraphBuilder, Instance, Model, Status, retime
from optpart.exact.enumeration import enumerate_all
from optpart.kernels.tasks import tasks
from optpart.methods.cpsat import cpsat
from optpart.solution.goal import Goal
from optpart.solution.result import Budget
from optpart.solution.schedule import Schedule, crossings
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.heterog import heterog
from optpart.strategies.simulator import simulate
from optpart.testing.draw import random_instance
from optpart.testing.solutions import Step
from optpart.testing.strategies import solutions


def ordered(instance: Instance, placement: NDArray[np.int32]) -> Schedule:
    return simulate(instance, Partition(placement), heterog)


def busy(instance: Instance, placement: NDArray[np.int32]) -> int:
    """Count the devices and the links that have anything to do."""
    senders = placement[instance.graph.tensor_vertex]
    links = {(int(senders[tensor]), target) for tensor, target in crossings(instance, placement)}
    return len(set(placement.tolist())) + len(links)


def test_transfers_are_ranked_like_vertices_and_take_their_turn_on_a_link() -> None:
    """The tensor of 3 leaves first: what follows it takes longer than what follows that of 5."""
    builder = GraphBuilder().vertex("a", 2, outputs=[5, 3]).vertex("b", 1).vertex("c", 4)
    graph = builder.edge("a", "b", 0).edge("a", "c", 1).build()
    instance = Instance(graph, Cluster.uniform(2, bandwidth=1), Model("link"))
    placement = np.array([0, 1, 1], dtype=np.int32)
    work = tasks(instance, placement)
    priority = heterog(work, Partition(placement), np.random.default_rng(0))
    # a = 2 + max(5 + 1, 3 + 4), b, c, the transfer of 5, the transfer of 3
    assert priority.value is not None
    assert (priority.value / (work.duration[0] / 2)).tolist() == [9, 1, 4, 6, 7]
    schedule = ordered(instance, placement)
    assert schedule.transfers.start.fractions() == [5, 2]
    assert schedule.makespan(instance) == 11


def sum_of_times(instance: Instance, placement: NDArray[np.int32], schedule: Schedule) -> Fraction:
    moves = schedule.transfers
    crossing = zip(moves.start.fractions(), moves.end.fractions(), strict=True)
    running = (instance.duration(v, int(d)) for v, d in enumerate(placement))
    return sum(running, Fraction(0)) + sum((end - start for start, end in crossing), Fraction(0))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(solutions(max_vertices=6, communication="link"))
def test_theorem_1_against_proven_optima(
    case: tuple[Instance, NDArray[np.int32], list[Step]],
) -> None:
    """T ≤ R · T* ≤ M² · T* ≤ (M + M²) · T*, and T is at most all times together."""
    instance, placement, order = case
    best = enumerate_all(
        instance, budget=Budget(20), goal=Goal(placement=dict(enumerate(placement.tolist())))
    )
    assert best.status is Status.OPTIMAL
    assert best.makespan is not None
    devices = instance.devices
    # Any order will do, as long as nothing could start earlier in it: the rank is not needed.
    for schedule in (ordered(instance, placement), retime(instance, placement, order)):
        assert not verify(instance, schedule)
        made = schedule.makespan(instance)
        assert best.makespan <= made <= sum_of_times(instance, placement, schedule)
        assert made <= busy(instance, placement) * best.makespan
        assert made <= devices**2 * best.makespan <= (devices + devices**2) * best.makespan


def test_theorem_1_on_larger_instances() -> None:
    rng = np.random.default_rng(3)
    worst = 1.0
    for _ in range(12):
        instance = random_instance(
            rng,
            16,
            3,
            communication="link",
            no_links=False,
            measured=False,
            separation=False,
            zero_length=False,
        )
        devices = [rng.choice(np.flatnonzero(row)) for row in instance.allowed]
        placement = np.array(devices, dtype=np.int32)[instance.unit_of]
        goal = Goal(placement=dict(enumerate(placement.tolist())))
        best = cpsat(instance, budget=Budget(20, 1), goal=goal)
        assert best.status is Status.OPTIMAL
        assert best.makespan is not None
        made = ordered(instance, placement).makespan(instance)
        assert best.makespan <= made <= busy(instance, placement) * best.makespan
        worst = max(worst, float(made / best.makespan))
    assert worst > 1.01  # the order by rank is not always the best

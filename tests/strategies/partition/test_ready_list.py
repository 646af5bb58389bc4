"""Min-Min, Max-Min, Sufferage and dynamic levels: one list of ready vertices, four keys."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from statistics import median

import numpy as np
import pytest
from naive_placing import NaivePlacing
from task_graphs import devices_and_starts

from optpart import Cluster, Device, GraphBuilder, Instance, Model, load, retime
from optpart.problem.model import Memory
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.dls import dls
from optpart.strategies.partition.max_min import max_min
from optpart.strategies.partition.min_min import min_min
from optpart.strategies.partition.sufferage import sufferage
from optpart.testing.draw import random_instance

Strategy = Callable[[Instance, np.random.Generator], Partition]
Key = Callable[[Instance, int, list[Fraction]], float | Fraction]

every_strategy = pytest.mark.parametrize("strategy", [min_min, max_min, sufferage, dls])


def found(strategy: Strategy, instance: Instance) -> Partition:
    return strategy(instance, np.random.default_rng(0))


def placed_and_started(strategy: Strategy, instance: Instance) -> tuple[list[int], list[float]]:
    return devices_and_starts(instance, found(strategy, instance))


def independent(*times: list[int | None]) -> Instance:
    """Tasks t0, t1, … with a run time per device."""
    builder = GraphBuilder()
    for v in range(len(times)):
        builder.vertex(f"t{v}")
    return Instance(builder.build(), Cluster.uniform(len(times[0])), durations=list(times))


# --- the keys, in words ----------------------------------------------------------------------


def sufferage_key(instance: Instance, v: int, finishes: list[Fraction]) -> float | Fraction:
    best, *others = sorted(finishes)
    return others[0] - best if others else float("inf")


def median_time(instance: Instance, v: int) -> Fraction:
    allowed = instance.allowed[instance.unit_of[v]]
    times = [instance.duration(v, d) for d in range(instance.devices) if allowed[d]]
    return median(times) if times else Fraction(0)


def static_level(instance: Instance, v: int) -> Fraction:
    graph = instance.graph
    after = [int(w) for w in graph.edge_target[graph.edge_source == v]]
    longest = max((static_level(instance, w) for w in after), default=Fraction(0))
    return median_time(instance, v) + longest


KEYS: dict[Strategy, Key] = {
    min_min: lambda instance, v, finishes: -min(finishes),
    max_min: lambda instance, v, finishes: min(finishes),
    sufferage: sufferage_key,
    dls: lambda instance, v, finishes: (
        static_level(instance, v) + median_time(instance, v) - min(finishes)
    ),
}


def naively(strategy: Strategy, instance: Instance) -> tuple[list[int], list[int]]:
    """Placement and order by comparing all ready vertices on all devices in every step."""
    position = instance.graph.position
    placing, order = NaivePlacing(instance), []
    while len(order) < instance.vertices:
        candidates = []
        for v in filter(placing.is_ready, range(instance.vertices)):
            devices = [d for d in range(instance.devices) if placing.may_run(v, d)]
            if devices:
                finishes = [placing.finish(v, d) for d in devices]
                key = KEYS[strategy](instance, v, finishes)
                best = devices[finishes.index(min(finishes))]
                candidates.append((-key, position[v], v, best))
        if not candidates:
            raise NoPlacementError("found no feasible placement")
        *_, v, d = min(candidates)
        placing.place(v, d)
        order.append(v)
    return placing.placement(), order


@every_strategy
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_is_what_comparing_everything_gives(strategy: Strategy, seed: int, memory: Memory) -> None:
    instance = random_instance(np.random.default_rng(seed), 9, 4, memory=memory, rational=False)
    try:
        expected = naively(strategy, instance)
    except NoPlacementError:
        with pytest.raises(NoPlacementError):
            found(strategy, instance)
        return
    partition = found(strategy, instance)
    assert (partition.placement.tolist(), partition.order) == expected


class TestIndependentTasks:
    """Three tasks, of which the last is long."""

    TASKS = independent([2, 3], [3, 4], [8, 9])

    def test_min_min_begins_with_short_ones(self) -> None:
        """t0 until 2 on d0, t1 until 4 on d1, and t2 after t0 until 10."""
        assert placed_and_started(min_min, self.TASKS) == ([0, 1, 0], [0, 0, 2])

    def test_max_min_begins_with_the_long_one(self) -> None:
        """t2 until 8 on d0, then t1 until 4 and t0 until 7 on d1."""
        assert placed_and_started(max_min, self.TASKS) == ([1, 1, 0], [4, 0, 0])

    def test_sufferage_begins_with_what_loses_most(self) -> None:
        """Without d0, t0 would lose 1 and t1 would lose 7, though both want it."""
        tasks = independent([2, 3], [3, 10])
        assert placed_and_started(sufferage, tasks) == ([1, 0], [0, 0])
        assert placed_and_started(min_min, tasks) == ([0, 0], [0, 2])

    def test_what_has_one_device_suffers_most(self) -> None:
        tasks = independent([2, 30], [3, None])
        assert placed_and_started(sufferage, tasks)[1] == [3, 0]

    @every_strategy
    def test_equal_tasks_go_in_topological_order_to_the_first_device(
        self, strategy: Strategy
    ) -> None:
        tasks = independent([4, 4], [4, 4], [4, 4])
        assert placed_and_started(strategy, tasks) == ([0, 1, 0], [0, 0, 4])


class TestDynamicLevels:
    def test_ten_tasks_take_91(self) -> None:
        """Topcuoglu et al. 2002, §4.1: DLS needs 91 where HEFT needs 80."""
        instance = load("heft-10")
        partition = found(dls, instance)
        assert partition.order is not None
        assert retime(instance, partition.placement, partition.order).makespan(instance) == 91

    def test_what_much_must_follow_goes_first(self) -> None:
        """On one device, a has the static level 1 + 9, b only 5."""
        builder = GraphBuilder().vertex("b", 5).vertex("a", 1).vertex("c", 9).edge("a", "c", None)
        instance = Instance(builder.build(), Cluster.uniform(1))
        # After a: c has 9 − 1, b has 5 − 1.
        assert placed_and_started(dls, instance)[1] == [10, 0, 1]

    def test_the_median_run_time_counts(self) -> None:
        """Levels 2 and 3 at start 0; t0 gains 2 − 1 on d0 and t1 gains 3 − 3 on d1."""
        tasks = independent([1, 2, 9], [4, 3, 3])
        assert found(dls, tasks).order == [0, 1]
        # Without that gain, 3 would have gone before 2.
        assert placed_and_started(dls, tasks) == ([0, 1], [0, 0])


class TestReadyVertices:
    @every_strategy
    def test_inputs_must_arrive(self, strategy: Strategy) -> None:
        """b is on d0 at 4 + 3, on d1 at 4 + 6 / 2 + 1."""

        def device_of_b(size: int) -> int:
            builder = GraphBuilder().vertex("a", 4, devices=["slow"], outputs=[size])
            graph = builder.vertex("b", 3).edge("a", "b").build()
            devices = [Device("slow", 1), Device("fast", 3)]
            return placed_and_started(strategy, Instance(graph, Cluster.of(devices, 2)))[0][1]

        assert device_of_b(3) == 1
        assert device_of_b(4) == 0

    @every_strategy
    def test_more_can_be_ready_than_at_first(self, strategy: Strategy) -> None:
        """One task frees forty, more than the room for ready ones at the beginning."""
        builder = GraphBuilder().vertex("fork", 1)
        for i in range(40):
            builder.vertex(f"w{i}", i + 1).edge("fork", f"w{i}", None)
        instance = Instance(builder.build(), Cluster.uniform(4))
        assert placed_and_started(strategy, instance)[0] == naively(strategy, instance)[0]


@every_strategy
class TestConstraints:
    def test_members_of_a_group_follow_the_first(self, strategy: Strategy) -> None:
        builder = GraphBuilder().vertex("a", 30).vertex("b", 3).colocate("a", "b")
        graph = builder.edge("a", "b", None).build()
        devices = [Device("slow", 1), Device("fast", 3)]
        assert placed_and_started(strategy, Instance(graph, Cluster.of(devices)))[0] == [1, 1]

    def test_separated_vertices_do_not_share_a_device(self, strategy: Strategy) -> None:
        builder = GraphBuilder().vertex("a", 3).vertex("b", 3).separate("a", "b")
        devices = [Device("slow", 1), Device("fast", 30)]
        placement, _ = placed_and_started(strategy, Instance(builder.build(), Cluster.of(devices)))
        assert sorted(placement) == [0, 1]

    def test_a_full_device_is_not_chosen(self, strategy: Strategy) -> None:
        builder = GraphBuilder().vertex("a", 6, memory=2).vertex("b", 6, memory=2)
        devices = [Device("slow", 1), Device("fast", 9, memory=3)]
        instance = Instance(builder.build(), Cluster.of(devices), Model(memory="estimate"))
        assert placed_and_started(strategy, instance)[0] == [1, 0]

    def test_a_device_without_link_is_not_chosen(self, strategy: Strategy) -> None:
        builder = GraphBuilder().vertex("a", 4, devices=["slow"])
        graph = builder.vertex("b", 9).edge("a", "b", None).build()
        devices = [Device("slow", 1), Device("fast", 9)]
        assert placed_and_started(strategy, Instance(graph, Cluster.of(devices, 0)))[0] == [0, 0]

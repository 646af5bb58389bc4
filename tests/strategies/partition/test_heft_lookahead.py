"""HEFT with lookahead: the device that serves the successors best (Bittencourt et al. 2010)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from naive_placing import NaivePlacing
from peft_example import example
from task_graphs import devices_and_starts

from optpart import Cluster, Device, GraphBuilder, Instance, Model, retime
from optpart.problem.model import Memory
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.heft import heft
from optpart.strategies.partition.heft_lookahead import heft_lookahead
from optpart.strategies.partition.ranks import upward_rank
from optpart.testing.draw import random_instance

FAR = Fraction(10**30)


def found(instance: Instance) -> Partition:
    return heft_lookahead(instance, np.random.default_rng(0))


def placed_and_started(instance: Instance) -> tuple[list[int], list[float]]:
    return devices_and_starts(instance, found(instance))


class Placing(NaivePlacing):
    """Fills gaps, and takes back what was tried; inputs that are not placed do not count."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self.begin: dict[int, Fraction] = {}
        self.on: dict[int, int] = {}

    def arrival(self, v: int, d: int) -> Fraction:
        graph, latest = self.instance.graph, Fraction(0)
        for edge in (graph.edge_target == v).nonzero()[0]:
            u = int(graph.edge_source[edge])
            if u in self.end:
                delay = self.instance.delay(int(graph.edge_tensor[edge]), self.on[u], d)
                assert delay is not None
                latest = max(latest, self.end[u] + delay)
        return latest

    def start(self, v: int, d: int) -> Fraction:
        """The earliest moment at which nothing that takes time is in the way."""
        ready, p = self.arrival(v, d), self.instance.duration(v, d)
        busy = [
            (self.begin[u], self.end[u])
            for u in self.end
            if self.on[u] == d and self.end[u] > self.begin[u]
        ]
        moments = [ready, *(end for _, end in busy if end > ready)]
        return min(t for t in moments if all(end <= t or begin >= t + p for begin, end in busy))

    def place(self, v: int, d: int) -> None:
        begin = self.start(v, d)
        self.begin[v], self.end[v], self.on[v] = begin, begin + self.instance.duration(v, d), d
        self.device[int(self.instance.unit_of[v])] = d

    def copy(self) -> Placing:
        other = Placing(self.instance)
        other.begin, other.end, other.on = dict(self.begin), dict(self.end), dict(self.on)
        other.device = dict(self.device)
        return other

    def devices(self, v: int) -> list[int]:
        return [d for d in range(self.instance.devices) if self.may_run(v, d)]


def naively(instance: Instance) -> tuple[list[int], list[Fraction]]:
    """Placement and start times by trying every device with all successors, exactly."""
    rank, position = upward_rank(instance), instance.graph.position
    turn = sorted(range(instance.vertices), key=lambda v: (-rank[v], position[v]))
    graph, placing = instance.graph, Placing(instance)
    for v in turn:
        after = {int(w) for w in graph.edge_target[graph.edge_source == v]}
        tried = []
        for d in placing.devices(v):
            trial = placing.copy()
            trial.place(v, d)
            last = trial.end[v] if not after else Fraction(0)
            for w in sorted(after, key=turn.index):
                if not trial.devices(w):
                    last = FAR
                    break
                best = min(trial.devices(w), key=lambda f, w=w, t=trial: t.finish(w, f))
                trial.place(w, best)
                last = max(last, trial.end[w])
            tried.append((last, trial.end[v], d))
        if not tried:
            raise NoPlacementError("found no feasible placement")
        placing.place(v, min(tried)[2])
    starts = [placing.begin[v] for v in range(instance.vertices)]
    return [placing.on[v] for v in range(instance.vertices)], starts


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_is_what_trying_everything_gives(seed: int, memory: Memory) -> None:
    instance = random_instance(np.random.default_rng(seed), 8, 4, memory=memory, rational=False)
    try:
        placement, start = naively(instance)
    except NoPlacementError:
        with pytest.raises(NoPlacementError):
            found(instance)
        return
    partition = found(instance)
    assert partition.placement.tolist() == placement
    assert partition.order is not None
    assert [start[v] for v in partition.order] == sorted(start)


def test_the_example_of_peft_takes_127() -> None:
    """Arabnejad and Barbosa 2014, figure 3: lookahead needs 127 where HEFT needs 133."""
    instance = example()
    partition = found(instance)
    assert partition.order is not None
    assert retime(instance, partition.placement, partition.order).makespan(instance) == 127


class TestChoice:
    def test_of_devices_looks_at_the_successor(self) -> None:
        """a ends at 3 or 4; b then ends at 12 on d0, or at 5 on d1."""
        graph = GraphBuilder().vertex("a").vertex("b").edge("a", "b", size=6).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1), durations=[[3, 4], [9, 1]])
        assert placed_and_started(instance) == ([1, 1], [0, 4])
        assert heft(instance, np.random.default_rng(0)).placement.tolist() == [0, 1]

    def test_the_last_of_the_successors_counts(self) -> None:
        """After a on d0, b and c take turns there until 4 + 3 + 3 = 10.

        After a on d1, c is done there at 8, and b at 11 if it waits, at 5 + 4 + 3 on d0.
        """
        builder = GraphBuilder().vertex("a").vertex("b").vertex("c")
        graph = builder.edge("a", "b", size=4).edge("a", "c", size=4).build()
        times = [[4, 5], [3, 3], [3, 3]]
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1), durations=times)
        assert placed_and_started(instance) == ([0, 0, 0], [0, 4, 7])

    def test_a_successor_that_no_device_is_left_for_makes_a_device_the_last_choice(self) -> None:
        """b fits nowhere but on the fast device, and there only if a is not."""
        builder = GraphBuilder().vertex("a", 9, memory=2).vertex("b", 1, memory=2, devices=["fast"])
        devices = [Device("slow", 1), Device("fast", 9, memory=3)]
        graph = builder.edge("a", "b", None).build()
        instance = Instance(graph, Cluster.of(devices), Model(memory="estimate"))
        assert placed_and_started(instance)[0] == [0, 1]
        with pytest.raises(NoPlacementError):
            heft(instance, np.random.default_rng(0))

    def test_without_successors_it_is_heft(self) -> None:
        builder = GraphBuilder()
        for v, ops in enumerate((6, 9, 6, 2, 4)):
            builder.vertex(f"v{v}", ops)
        instance = Instance(builder.build(), Cluster.of([Device("slow", 1), Device("fast", 3)]))
        same = heft(instance, np.random.default_rng(0))
        assert found(instance).placement.tolist() == same.placement.tolist()


class TestConstraints:
    def test_members_of_a_group_follow_the_first(self) -> None:
        builder = GraphBuilder().vertex("a", 30).vertex("b", 3).colocate("a", "b")
        graph = builder.edge("a", "b", None).build()
        devices = [Device("slow", 1), Device("fast", 3)]
        assert placed_and_started(Instance(graph, Cluster.of(devices)))[0] == [1, 1]

    def test_a_device_without_link_is_not_chosen(self) -> None:
        builder = GraphBuilder().vertex("a", 4, devices=["slow"])
        graph = builder.vertex("b", 9).edge("a", "b", None).build()
        devices = [Device("slow", 1), Device("fast", 9)]
        assert placed_and_started(Instance(graph, Cluster.of(devices, 0)))[0] == [0, 0]

"""List scheduling with insertion, where order, wishes and costs ahead are given.

How gaps are filled and groups are placed, say the tests of HEFT.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from optpart import Cluster, Device, GraphBuilder, Instance, Model
from optpart.kernels.compiled import arrays
from optpart.solution.schedule import retime
from optpart.strategies.partition.insertion import by_priority, insert

DEVICES = [Device("slow", 1), Device("fast", 3)]


def independent(*ops: int, memory: int = 0) -> GraphBuilder:
    builder = GraphBuilder()
    for v, amount in enumerate(ops):
        builder.vertex(f"v{v}", amount, memory=memory)
    return builder


def order(*vertices: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(vertices, dtype=np.int32)


class TestTurn:
    def test_earlier_turns_choose_first(self) -> None:
        """The first takes the fast device until 2, where the second would end at 4."""
        instance = Instance(independent(6, 3).build(), Cluster.of(DEVICES))
        assert insert(instance, order(0, 1)).placement.tolist() == [1, 0]
        assert insert(instance, order(1, 0)).placement.tolist() == [1, 1]


class TestWanted:
    def wanted(self, *devices: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(devices, dtype=np.int64)

    def test_a_unit_goes_where_it_is_wanted(self) -> None:
        instance = Instance(independent(6, 3).build(), Cluster.of(DEVICES))
        found = insert(instance, order(0, 1), wanted=self.wanted(0, -1))
        assert found.placement.tolist() == [0, 1]

    def test_unless_it_does_not_fit_there(self) -> None:
        """Two of three fit on the fast device; the last goes where it ends first of the others."""
        devices = [Device("slow", 1), Device("fast", 3, memory=2), Device("middle", 2)]
        instance = Instance(
            independent(6, 6, 6, memory=1).build(), Cluster.of(devices), Model(memory="estimate")
        )
        found = insert(instance, order(0, 1, 2), wanted=self.wanted(1, 1, 1))
        assert found.placement.tolist() == [1, 1, 2]

    def test_it_may_use_gaps_there(self) -> None:
        """v2 runs on d1 before v1, which waits there for what v0 sends."""
        builder = GraphBuilder().vertex("v0", 4, devices=["d0"]).vertex("v1", 5, devices=["d1"])
        graph = builder.vertex("v2", 3).edge("v0", "v1", size=6).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1))
        found = insert(instance, order(0, 1, 2), wanted=self.wanted(-1, -1, 1))
        assert found.order == [2, 0, 1]
        assert retime(instance, found.placement, found.order).makespan(instance) == 15


class TestAhead:
    def test_costs_ahead_count_when_devices_are_compared(self) -> None:
        """v0 ends at 6 or at 2; 5 more for what follows on the fast device makes that 7."""
        instance = Instance(independent(6).build(), Cluster.of(DEVICES))
        scale = arrays(instance).scale
        for ahead, device in ((3.5, 1), (4.0, 0), (5.0, 0)):
            found = insert(instance, order(0), ahead=np.array([[0.0, ahead * scale]]))
            assert found.placement.tolist() == [device]

    def test_they_do_not_count_as_time(self) -> None:
        instance = Instance(independent(6, 6).build(), Cluster.uniform(1, speed=2))
        found = insert(instance, order(0, 1), ahead=np.full((2, 1), 100.0))
        assert retime(instance, found.placement, found.order).makespan(instance) == Fraction(6)


class TestByPriority:
    def sorted(self, graph: GraphBuilder, *priority: float) -> list[int]:
        instance = Instance(graph.build(), Cluster.uniform(1))
        return [int(v) for v in by_priority(instance, np.array(priority, dtype=np.float64))]

    def test_the_highest_goes_first(self) -> None:
        assert self.sorted(independent(1, 1, 1), 2, 9, 4) == [1, 2, 0]

    def test_but_not_before_its_predecessors(self) -> None:
        graph = independent(1, 1, 1).edge("v0", "v1", None)
        assert self.sorted(graph, 2, 9, 4) == [2, 0, 1]

    def test_of_equals_the_topologically_first(self) -> None:
        graph = independent(1, 1, 1, 1).edge("v3", "v0", None)
        assert self.sorted(graph, 5, 5, 5, 5) == [1, 2, 3, 0]

    def test_several_tensors_between_two_vertices(self) -> None:
        graph = independent(1, 1, 1).edge("v0", "v1", size=1).edge("v0", "v1", size=2)
        assert self.sorted(graph.edge("v0", "v1", None), 1, 3, 2) == [2, 0, 1]

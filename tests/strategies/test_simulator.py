"""Execution under a scheduling strategy: what every device runs next, and that it never dawdles."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from relabelling import relabelled

from optpart import Cluster, Device, GraphBuilder, Instance, Model, Schedule
from optpart.kernels.compiled import arrays
from optpart.kernels.tasks import Tasks, tasks
from optpart.problem.model import Communication
from optpart.solution.verifier import verify
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.as_placed import as_placed
from optpart.strategies.scheduling.fifo import fifo
from optpart.strategies.scheduling.msr import msr
from optpart.strategies.scheduling.pct import path_computation_time, pct
from optpart.strategies.simulator import Priority, Scheduler, simulate
from optpart.testing.draw import random_instance
from optpart.testing.solutions import random_placement


def placed(*devices: int) -> Partition:
    return Partition(np.array(devices, dtype=np.int32))


def starts(instance: Instance, placement: Sequence[int], scheduler: Scheduler = pct) -> list[int]:
    schedule = simulate(instance, placed(*placement), scheduler)
    assert verify(instance, schedule) == []
    return [int(start) for start in schedule.start.fractions()]


def path_times(instance: Instance, placement: Sequence[int]) -> list[float]:
    """Path computation times in time units."""
    times = path_computation_time(tasks(instance, placed(*placement).placement))
    return [float(time) / arrays(instance).scale for time in times]


def thesis_3_2() -> Instance:
    """[L] figure 3.2 as far as §3.2 tells it; node 3 and the tensors inside device 0 are ours."""
    builder = GraphBuilder()
    builder.vertex("1", 20, outputs=[7]).vertex("2", 20, outputs=[10]).vertex("3", 20)
    builder.vertex("5", 30).vertex("7", 50, outputs=[30])
    builder.edge("1", "2").edge("2", "3").edge("7", "5")
    return Instance(builder.build(), Cluster.uniform(3, bandwidth=1))


def thesis_2_5(first: int = 1, second: int = 2) -> tuple[Instance, list[int]]:
    """[L] figure 2.3: a chain on device 0 feeds two chains on devices 1 and 2."""
    builder = GraphBuilder()
    for v, ops in enumerate([30, 50, 60, 30, 40, 80]):
        builder.vertex(str(v), ops, outputs=[50])
    for source, target in ("01", "12", "23", "14", "45"):
        builder.edge(source, target)
    speeds, rates = {first: 30, second: 40}, {first: 25, second: 50}
    bandwidth = [[0, rates[1], rates[2]], [rates[1], 0, 25], [rates[2], 25, 0]]
    devices = [Device("d0", 10), Device("d1", speeds[1]), Device("d2", speeds[2])]
    model = Model("sendrecv", send_ops=Fraction(10))
    instance = Instance(builder.build(), Cluster.of(devices, bandwidth), model)
    return instance, [0, 0, first, first, second, second]


class TestLocalTimes:
    """[L] §3.2: no device decides before everything that can have reached it by then is known."""

    @pytest.mark.parametrize("scheduler", [fifo, pct])
    def test_figure_3_2_runs_node_3_before_node_5(self, scheduler: Scheduler) -> None:
        assert starts(thesis_3_2(), [0, 0, 1, 1, 2], scheduler) == [0, 20, 50, 80, 0]

    @pytest.mark.parametrize("scheduler", [fifo, pct])
    def test_a_device_that_is_behind_goes_first_whatever_its_number(
        self, scheduler: Scheduler
    ) -> None:
        assert starts(thesis_3_2(), [2, 2, 0, 0, 1], scheduler) == [0, 20, 50, 80, 0]

    def test_arrivals_during_a_run_wait_for_its_end(self) -> None:
        builder = GraphBuilder().vertex("a", 2).vertex("b", 7).vertex("c", 1).edge("a", "c", None)
        assert starts(Instance(builder.build(), Cluster.uniform(2)), [0, 1, 1]) == [0, 0, 7]

    def test_arrivals_at_the_end_of_a_run_are_known_then(self) -> None:
        """b ends at 5, when c arrives beside d, which has waited since 0 and leads nowhere."""
        builder = GraphBuilder().vertex("a", 3, outputs=[2]).vertex("b", 5).vertex("c", 4)
        builder.vertex("d", 1).edge("a", "c")
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
        assert starts(instance, [0, 1, 1, 1]) == [0, 0, 5, 9]

    def test_latency_and_bandwidth_delay_an_arrival(self) -> None:
        builder = GraphBuilder().vertex("a", 3, outputs=[8]).vertex("b", 1).edge("a", "b")
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=4, latency=5))
        assert starts(instance, [0, 1]) == [0, 10]
        assert starts(instance, [1, 1]) == [0, 3]

    def test_a_vertex_waits_for_its_last_input(self) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[9]).vertex("b", 4, outputs=[1])
        builder.vertex("c", 1).edge("a", "c").edge("b", "c")
        instance = Instance(builder.build(), Cluster.uniform(3, bandwidth=1))
        assert starts(instance, [0, 1, 2]) == [0, 0, 10]
        assert starts(instance, [2, 1, 2]) == [0, 0, 5]

    def test_a_vertex_without_length_delays_nobody(self) -> None:
        builder = GraphBuilder().vertex("a", 0).vertex("b", 0).vertex("c", 2)
        builder.edge("a", "b", None).edge("b", "c", None)
        assert starts(Instance(builder.build(), Cluster.uniform(2)), [0, 1, 0]) == [0, 0, 0]

    def test_an_empty_graph(self) -> None:
        empty = Instance(GraphBuilder().build(), Cluster.uniform(2))
        assert simulate(empty, placed(), pct).makespan(empty) == 0


def crossroads() -> Instance:
    """On device 0: a (1), b (2), c (3); b leads to d (9) on device 1, c to e (1) on device 0.

    The tensor of b takes 2.
    """
    builder = GraphBuilder().vertex("a", 1).vertex("b", 2, outputs=[4]).vertex("c", 3, outputs=[6])
    builder.vertex("d", 9).vertex("e", 1).edge("b", "d").edge("c", "e")
    return Instance(builder.build(), Cluster.uniform(2, bandwidth=2))


class TestPct:
    def test_path_computation_times(self) -> None:
        """[L] eq. 5.1; nothing is transferred from c to e."""
        assert path_times(crossroads(), [0, 0, 0, 1, 0]) == [1, 2 + 2 + 9, 3 + 1, 9, 1]

    def test_speed_is_that_of_the_device_of_the_vertex(self) -> None:
        graph = GraphBuilder().vertex("a", 6, outputs=[8]).vertex("b", 6).edge("a", "b").build()
        devices = [Device("d0", 1), Device("d1", 3)]
        instance = Instance(graph, Cluster.of(devices, [[0, 2], [4, 0]]))
        for placement, path in (((0, 1), 6 + 4 + 2), ((1, 0), 2 + 2 + 6), ((1, 1), 4)):
            assert path_times(instance, placement)[0] == path

    def test_the_longest_remaining_path_goes_first(self) -> None:
        """b, c, a, e: b leads furthest, then c; a and e are equally long, and a comes first."""
        assert starts(crossroads(), [0, 0, 0, 1, 0]) == [5, 0, 2, 4, 6]

    def test_ties_go_to_the_lower_number(self) -> None:
        builder = GraphBuilder()
        for v in range(5):
            builder.vertex(f"v{v}", 2)
        instance = Instance(builder.build(), Cluster.uniform(1))
        assert starts(instance, [0] * 5) == [0, 2, 4, 6, 8]

    @pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
    def test_section_2_5_takes_14(self, first: int, second: int) -> None:
        """The send to the chain of 30 Ops/EU has 6 EU before it, the other one 5."""
        instance, placement = thesis_2_5(first, second)
        schedule = simulate(instance, placed(*placement), pct)
        assert verify(instance, schedule) == []
        assert schedule.start.fractions() == [0, 3, 11, 13, 11, 12]
        assert schedule.makespan(instance) == 14

    def test_section_2_5_path_computation_times(self) -> None:
        instance, placement = thesis_2_5()
        send_to_d1, send_to_d2 = 1 + 2 + 2 + 1, 1 + 1 + 1 + 2
        assert path_times(instance, placement) == [14, 11, 3, 1, 3, 2, send_to_d1, send_to_d2]

    def test_greed_is_not_optimal(self) -> None:
        """Nothing waits for what is about to arrive: long runs while urgent is on its way."""
        builder = GraphBuilder().vertex("a", 1).vertex("long", 9).vertex("urgent", 1)
        builder.vertex("end", 9).edge("a", "urgent", None).edge("urgent", "end", None)
        instance = Instance(builder.build(), Cluster.uniform(3))
        assert starts(instance, [0, 1, 1, 2]) == [0, 0, 9, 10]


class TestFifo:
    def test_the_first_that_is_executable_goes_first(self) -> None:
        """Device 1: x arrives at 2, y at 3 with the longer path; both wait for z until 4."""
        builder = GraphBuilder().vertex("a", 1, outputs=[1, 2]).vertex("z", 4)
        builder.vertex("x", 1).vertex("y", 5).edge("a", "x", 0).edge("a", "y", 1)
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=1))
        assert starts(instance, [0, 1, 1, 1], fifo) == [0, 0, 4, 5]
        assert starts(instance, [0, 1, 1, 1], pct) == [0, 0, 9, 4]

    def test_a_vertex_is_executable_from_the_arrival_of_its_last_input(self) -> None:
        """x has its first input first, and its last one after y."""
        builder = GraphBuilder().vertex("a", 1, outputs=[1, 2]).vertex("b", 3).vertex("z", 9)
        builder.vertex("x", 1).vertex("y", 1)
        builder.edge("a", "x", 0).edge("b", "x", None).edge("a", "y", 1)
        instance = Instance(builder.build(), Cluster.uniform(3, bandwidth=2))
        assert starts(instance, [0, 1, 2, 2, 2], fifo) == [0, 0, 0, 10, 9]

    def test_ties_are_drawn_by_the_seed(self) -> None:
        builder = GraphBuilder()
        for v in range(6):
            builder.vertex(f"v{v}", 1)
        instance = Instance(builder.build(), Cluster.uniform(1))
        runs = [sequence(simulate(instance, placed(*[0] * 6), fifo, seed)) for seed in range(5)]
        assert len(set(map(tuple, runs))) == 5
        assert runs[3] == sequence(simulate(instance, placed(*[0] * 6), fifo, 3))


class TestTransfersAsTasks:
    def test_a_link_is_a_device_like_any_other(self) -> None:
        """[G] §4.2: the link carries the tensor of the longer path first, then the other."""
        builder = GraphBuilder().vertex("a", 1, outputs=[4, 4]).vertex("b", 1).vertex("c", 5)
        builder.edge("a", "b", 0).edge("a", "c", 1)
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=2), Model("link"))
        assert starts(instance, [0, 1, 1]) == [0, 8, 3]
        assert starts(instance, [0, 1, 0]) == [0, 3, 1]

    def test_a_send_takes_its_turn_among_the_vertices_of_its_device(self) -> None:
        """After a: send (2 + 2 + 1) before z (4)."""
        builder = GraphBuilder().vertex("a", 1, outputs=[4]).vertex("b", 1).vertex("z", 4)
        builder.edge("a", "b").edge("a", "z", None)
        model = Model("sendrecv", send_ops=Fraction(2))
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=2), model)
        assert starts(instance, [0, 1, 0]) == [0, 5, 3]

    def test_a_send_of_the_shorter_path_waits(self) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[4]).vertex("b", 1).vertex("z", 6)
        builder.edge("a", "b").edge("a", "z", None)
        model = Model("sendrecv", send_ops=Fraction(2))
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=2), model)
        assert starts(instance, [0, 1, 0]) == [0, 11, 1]

    def test_a_tensor_crosses_once_per_device(self) -> None:
        """[L] §2.4: b and c on device 1 share one transfer."""
        builder = GraphBuilder().vertex("a", 1, outputs=[4]).vertex("b", 1).vertex("c", 1)
        builder.edge("a", "b").edge("a", "c")
        instance = Instance(builder.build(), Cluster.uniform(2, bandwidth=2), Model("link"))
        schedule = simulate(instance, placed(0, 1, 1), pct)
        assert len(schedule.transfers) == 1
        assert schedule.makespan(instance) == 1 + 2 + 2


COMMUNICATIONS: list[Communication] = ["delay", "sendrecv", "link", "port"]
SCHEDULERS: list[Scheduler] = [fifo, pct, msr, as_placed]


class TestProperties:
    @pytest.mark.parametrize("scheduler", SCHEDULERS)
    @pytest.mark.parametrize("communication", COMMUNICATIONS)
    def test_every_execution_is_valid(
        self, scheduler: Scheduler, communication: Communication
    ) -> None:
        rng = np.random.default_rng(1)
        for _ in range(40):
            instance = random_instance(rng, 6, 3, communication=communication)
            placement = random_placement(rng, instance)
            if placement is not None:
                assert verify(instance, simulate(instance, Partition(placement), scheduler)) == []

    @pytest.mark.parametrize("scheduler", SCHEDULERS)
    @pytest.mark.parametrize("communication", ["delay", "sendrecv", "link"])
    def test_no_device_idles_while_a_vertex_is_executable(
        self, scheduler: Scheduler, communication: Communication
    ) -> None:
        rng = np.random.default_rng(2)
        waited = 0
        for _ in range(50):
            instance = random_instance(rng, 6, 3, communication=communication)
            placement = random_placement(rng, instance)
            if placement is None:
                continue
            schedule = simulate(instance, Partition(placement), scheduler)
            ready, busy = arrivals(instance, schedule), busy_intervals(instance, schedule)
            for v, start in enumerate(schedule.start.fractions()):
                assert covers(busy[int(placement[v])], ready[v], start)
                waited += start > ready[v]
        assert waited > 15

    @pytest.mark.parametrize("scheduler", SCHEDULERS)
    def test_no_link_idles_while_a_tensor_waits(self, scheduler: Scheduler) -> None:
        rng = np.random.default_rng(3)
        waited = 0
        for _ in range(50):
            instance = random_instance(rng, 6, 3, communication="link")
            placement = random_placement(rng, instance)
            if placement is None:
                continue
            schedule = simulate(instance, Partition(placement), scheduler)
            moves = schedule.transfers
            producer = instance.graph.tensor_vertex[moves.tensor].tolist()
            link = list(zip(placement[producer], moves.target, strict=True))
            for c, begin in enumerate(moves.start.fractions()):
                carried = [
                    (moves.start[o], moves.end[o]) for o in range(len(moves)) if link[o] == link[c]
                ]
                made = schedule.end(instance, producer[c])
                assert covers(sorted(carried), made, begin)
                waited += begin > made
        assert waited > 5

    @pytest.mark.parametrize("scheduler", [fifo, pct, msr])
    def test_numbers_do_not_matter_where_nothing_ties(self, scheduler: Scheduler) -> None:
        rng = np.random.default_rng(4)
        for _ in range(40):
            instance, partition = out_tree(rng, 15, 3)
            other = relabelled(instance, rng)
            device = {
                name: other.cluster.index[instance.cluster.names[d]]
                for name, d in zip(instance.graph.names, partition.placement, strict=True)
            }
            moved = placed(*(device[name] for name in other.graph.names))
            first = simulate(instance, partition, scheduler, seed=1)
            second = simulate(other, moved, scheduler, seed=2)
            assert by_name(instance, first) == by_name(other, second)


def test_fifo_runs_in_order_of_arrival() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        instance = random_instance(rng, 6, 3, zero_length=False)
        placement = random_placement(rng, instance)
        if placement is not None:
            schedule = simulate(instance, Partition(placement), fifo)
            ready = arrivals(instance, schedule)
            for d in range(instance.devices):
                run = [ready[v] for v in sequence(schedule) if placement[v] == d]
                assert run == sorted(run)


def test_pct_never_prefers_the_shorter_path() -> None:
    rng = np.random.default_rng(6)
    for _ in range(50):
        # Without latency all times are whole ticks, so that doubles compare exactly; without
        # vertices of length 0 nothing becomes executable by a decision of the same moment.
        instance = random_instance(rng, 6, 3, latency=False, zero_length=False)
        placement = random_placement(rng, instance)
        if placement is None:
            continue
        schedule = simulate(instance, Partition(placement), pct)
        path, ready = exact_path_times(instance, placement), arrivals(instance, schedule)
        start = schedule.start.fractions()
        for v in range(instance.vertices):
            for w in range(instance.vertices):
                if placement[v] == placement[w] and ready[w] <= start[v] < start[w]:
                    assert path[v] >= path[w]


def test_a_strategy_of_your_own() -> None:
    def last_number_first(work: Tasks, partition: Partition, rng: np.random.Generator) -> Priority:
        n = len(work.duration)
        return Priority(np.arange(n, dtype=np.float64), np.arange(n))

    builder = GraphBuilder()
    for v in range(4):
        builder.vertex(f"v{v}", 2)
    instance = Instance(builder.build(), Cluster.uniform(1))
    assert starts(instance, [0] * 4, last_number_first) == [6, 4, 2, 0]


def sequence(schedule: Schedule) -> list[int]:
    """Vertices by start."""
    start = schedule.start.fractions()
    return sorted(range(len(start)), key=start.__getitem__)


def arrivals(instance: Instance, schedule: Schedule) -> list[Fraction]:
    """When the last input of each vertex is on its device."""
    graph, moves = instance.graph, schedule.transfers
    crossed = {
        (int(t), int(d)): end
        for t, d, end in zip(moves.tensor, moves.target, moves.end.fractions(), strict=True)
    }
    ready = [Fraction(0)] * instance.vertices
    for u, v, t in zip(graph.edge_source, graph.edge_target, graph.edge_tensor, strict=True):
        here = int(schedule.placement[v])
        local = schedule.placement[u] == here
        at = schedule.end(instance, int(u)) if local else crossed[int(t), here]
        ready[v] = max(ready[v], at)
    return ready


def busy_intervals(instance: Instance, schedule: Schedule) -> list[list[tuple[Fraction, Fraction]]]:
    """Per device when it runs vertices and sends, ascending."""
    busy: list[list[tuple[Fraction, Fraction]]] = [[] for _ in range(instance.devices)]
    for v, d in enumerate(schedule.placement.tolist()):
        busy[d].append((schedule.start[v], schedule.end(instance, v)))
    if instance.model.communication == "sendrecv":
        moves = schedule.transfers
        for tensor, start in zip(moves.tensor, moves.start.fractions(), strict=True):
            d = int(schedule.placement[instance.graph.tensor_vertex[tensor]])
            busy[d].append((start, start + instance.send_duration(d)))
    return [sorted(intervals) for intervals in busy]


def covers(intervals: list[tuple[Fraction, Fraction]], begin: Fraction, end: Fraction) -> bool:
    """Whether ascending intervals leave no gap between two times."""
    for start, stop in intervals:
        if start <= begin < stop:
            begin = stop
    return begin >= end


def out_tree(rng: np.random.Generator, n: int, k: int) -> tuple[Instance, Partition]:
    """A binary tree in which no two vertices of a device become executable together.

    Every edge has a tensor of its own, and of two siblings one is elsewhere than their parent.
    """
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(f"v{v}", int(rng.integers(1, 10**6)))
    device = [int(rng.integers(k))]
    for v in range(1, n):
        parent = (v - 1) // 2
        builder.edge(f"v{parent}", f"v{v}", size=int(rng.integers(1, 10**6)))
        away = int(rng.integers(1, k)) if v % 2 else int(rng.integers(k))
        device.append((device[parent] + away) % k)
    devices = [Device(f"d{d}", int(rng.integers(1, 100))) for d in range(k)]
    return Instance(builder.build(), Cluster.of(devices, bandwidth=1)), placed(*device)


def by_name(instance: Instance, schedule: Schedule) -> dict[str, Fraction]:
    return dict(zip(instance.graph.names, schedule.start.fractions(), strict=True))


def exact_path_times(instance: Instance, placement: NDArray[np.int32]) -> list[Fraction]:
    """[L] eq. 5.1 in exact arithmetic."""
    graph = instance.graph
    path = [Fraction(0)] * instance.vertices
    for u in reversed(graph.topological_order.tolist()):
        for e in np.flatnonzero(graph.edge_source == u):
            v = int(graph.edge_target[e])
            delay = instance.delay(int(graph.edge_tensor[e]), int(placement[u]), int(placement[v]))
            assert delay is not None
            path[u] = max(path[u], delay + path[v])
        path[u] += instance.duration(u, int(placement[u]))
    return path

"""The enumeration judges other methods, so it is judged by hand and by plainer force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.base.errors import UnsupportedError
from optpart.exact.enumeration import MAX_VERTICES, enumerate_all
from optpart.kernels.ticks import quantum
from optpart.problem.cluster import Matrix
from optpart.problem.model import Communication, Memory
from optpart.problem.rational import RationalArray
from optpart.solution.goal import Goal, Objective
from optpart.solution.result import Budget, Progress, Result, Status
from optpart.solution.schedule import Schedule, Transfers, crossings
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify
from optpart.testing import brute_force
from optpart.testing.draw import draw_instance, random_instance
from optpart.testing.solutions import allowed_placements

COMMUNICATION: tuple[Communication, ...] = get_args(Communication)
MEMORY: tuple[Memory, ...] = get_args(Memory)


def solved(instance: Instance, goal: Goal = Goal()) -> Result:  # noqa: B008
    """Solve without a limit that matters, and check what the result says of itself."""
    result = enumerate_all(instance, budget=Budget(600), goal=goal)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE), result.reason
    if result.schedule is not None:
        assert verify(instance, result.schedule) == []
        assert goal.broken(instance, result.schedule) == ""
    return result


def makespan(instance: Instance, goal: Goal = Goal()) -> Fraction | None:  # noqa: B008
    return solved(instance, goal).makespan


def pinned(vertices: dict[str, tuple[str, int, list[int]]]) -> GraphBuilder:
    """Vertices by name with their device, operations and sizes of outputs."""
    builder = GraphBuilder()
    for name, (device, ops, outputs) in vertices.items():
        builder.vertex(name, ops, outputs=outputs, devices=[device])
    return builder


def cluster(devices: int, bandwidth: Matrix = 1, memory: list[int | None] | None = None) -> Cluster:
    limits = memory or [None] * devices
    return Cluster.of([Device(f"d{d}", 1, memory=limits[d]) for d in range(devices)], bandwidth)


class TestAgreement:
    @pytest.mark.parametrize("memory", ["none", "estimate"])
    def test_with_every_order_of_start(self, memory: Memory) -> None:
        rng = np.random.default_rng(3)
        for _ in range(25):
            instance = random_instance(rng, 6, 3, memory=memory)
            best = brute_force.optimum(instance)
            assert makespan(instance) == (None if best is None else best.makespan)

    @pytest.mark.parametrize("memory", MEMORY)
    @pytest.mark.parametrize("communication", COMMUNICATION)
    def test_with_every_placement_and_every_whole_start(
        self, communication: Communication, memory: Memory
    ) -> None:
        for seed in range(4):
            instance = draw_instance(seed, communication, memory, vertices=3, devices=2, longest=1)
            best, unit = solved(instance).makespan, quantum(instance)
            assert unit is not None
            assert not any_within(instance, 4 * unit if best is None else best - unit, unit)

    @pytest.mark.parametrize("memory", MEMORY)
    @pytest.mark.parametrize("communication", COMMUNICATION)
    def test_on_the_least_traffic(self, communication: Communication, memory: Memory) -> None:
        """The front of makespan and traffic is the same from either end."""
        for seed in range(2):
            instance = draw_instance(seed, communication, memory)
            least = solved(instance, Goal("traffic"))
            both = solved(instance, Goal("lexicographic"))
            if least.traffic is None or both.traffic is None or both.makespan is None:
                assert least.status is both.status is Status.INFEASIBLE
                continue
            assert both.makespan == makespan(instance)
            assert both.traffic >= least.traffic
            short = solved(instance, Goal("traffic", makespan=both.makespan))
            assert short.traffic == both.traffic
            frugal = solved(instance, Goal(traffic=both.traffic))
            assert frugal.makespan == both.makespan


def any_within(instance: Instance, limit: Fraction, unit: Fraction) -> bool:
    """Ask the verifier about every placement and every start that is whole in ``unit``."""
    return any(
        not verify(instance, schedule, most=1)
        for placement in allowed_placements(instance)
        for schedule in whole_schedules(instance, placement.tolist(), limit, unit)
    )


def whole_schedules(
    instance: Instance, device: list[int], limit: Fraction, unit: Fraction
) -> Iterator[Schedule]:
    """Yield all with a makespan within ``limit``; only what breaks precedence is left out."""
    graph = instance.graph
    placement = np.array(device, dtype=np.int32)
    moves = crossings(instance, placement)
    producer = graph.tensor_vertex.tolist()
    edges = list(zip(graph.edge_target.tolist(), graph.edge_tensor.tolist(), strict=True))
    delay = {(t, d): instance.delay(t, device[producer[t]], d) or Fraction(0) for t, d in moves}
    if instance.model.communication == "sendrecv":
        for t, d in moves:
            delay[t, d] += instance.send_duration(device[producer[t]])
    tasks: list[int | tuple[int, int]] = []
    for v in graph.topological_order.tolist():
        tasks += [v, *(move for move in moves if producer[move[0]] == v)]
    start: dict[int | tuple[int, int], Fraction] = {}

    def end(v: int) -> Fraction:
        return start[v] + instance.duration(v, device[v])

    def extend(i: int) -> Iterator[Schedule]:
        if i == len(tasks):
            rows = [(t, d, start[t, d], start[t, d] + delay[t, d]) for t, d in moves]
            times = RationalArray.from_fractions(start[v] for v in range(len(graph)))
            yield Schedule(placement, times, Transfers.of(rows))
            return
        task = tasks[i]
        if isinstance(task, tuple):
            ready, length = end(producer[task[0]]), delay[task]
        else:
            arrivals = [
                start[t, device[task]] + delay[t, device[task]]
                if (t, device[task]) in delay
                else end(producer[t])
                for v, t in edges
                if v == task
            ]
            ready, length = max([Fraction(0), *arrivals]), instance.duration(task, device[task])
        start[task] = ready
        while start[task] + length <= limit:
            yield from extend(i + 1)
            if isinstance(task, tuple) and instance.model.communication == "delay":
                return
            start[task] += unit

    yield from extend(0)


class TestCommunication:
    @staticmethod
    def fork(communication: Communication, channels: int = 1) -> Instance:
        """Tensors of 3 and 2 leave d0 at 1; who gets the larger one runs for 4, the other for 1."""
        graph = pinned({"a": ("d0", 1, [3, 2]), "b": ("d1", 4, []), "c": ("d2", 1, [])})
        graph.edge("a", "b", 0).edge("a", "c", 1)
        return Instance(
            graph.build(), cluster(3), Model(communication, send_ops=Fraction(1), channels=channels)
        )

    def test_a_port_sends_one_after_the_other(self) -> None:
        instance = self.fork("port")
        assert makespan(instance) == 1 + 3 + 4
        assert makespan(instance, Goal(order=(((1, 2), (0, 1)),))) == 1 + 2 + 3 + 4
        two = self.fork("port", channels=2)
        assert makespan(two) == 1 + 3 + 4

    def test_what_takes_no_time_still_needs_a_free_device(self) -> None:
        """A send without length cannot interrupt a vertex."""
        graph = pinned({"a": ("d0", 1, [0]), "b": ("d0", 4, []), "c": ("d1", 4, [])})
        graph.edge("a", "c").edge("a", "b", None)
        instance = Instance(graph.build(), cluster(2), Model("sendrecv"))
        assert makespan(instance) == 5
        # b before a: the send has to wait for b as well.
        graph = pinned({"a": ("d0", 1, [0]), "b": ("d0", 4, []), "c": ("d1", 4, [])})
        graph.edge("a", "c")
        instance = Instance(graph.build(), cluster(2), Model("sendrecv"))
        assert makespan(instance, Goal(order=((1, (0, 1)),))) == 1 + 4 + 4


class TestMemory:
    def test_an_estimate_counts_each_input_once(self) -> None:
        """The fork of 4 bytes a tensor: 4 for a, 4 for b, 4 for c."""

        def fork(capacity: int) -> Instance:
            graph = pinned({"a": ("d0", 1, [4]), "b": ("d0", 1, []), "c": ("d0", 1, [])})
            graph.edge("a", "b").edge("a", "c")
            limited = cluster(1, memory=[capacity])
            return Instance(graph.build(), limited, Model(memory="estimate"))

        assert makespan(fork(12)) == 3
        assert makespan(fork(11)) is None

    @pytest.mark.parametrize("communication", COMMUNICATION)
    def test_an_input_arrives_late_on_purpose(self, communication: Communication) -> None:
        """[M] eq. 2: while a long vertex runs, only one input may wait beside it."""
        graph = pinned(
            {
                "a": ("d0", 1, [3]),
                "b": ("d0", 1, [3]),
                "long": ("d1", 5, []),
                "p": ("d1", 1, []),
                "q": ("d1", 1, []),
            }
        )
        graph.edge("a", "p").edge("b", "q").edge("a", "b", None).edge("p", "q", None)
        devices = cluster(2, bandwidth=None, memory=[None, 3])
        instance = Instance(graph.build(), devices, Model(communication, "edges"))
        result = solved(instance)
        assert result.makespan == 5 + 1 + 1
        assert result.schedule is not None
        assert max(result.schedule.transfers.end.fractions()) >= 5

    def test_an_order_can_hold_too_many_tensors(self) -> None:
        graph = pinned({v: ("d0", 1, [4] if v in "ab" else []) for v in "abcd"})
        graph.edge("a", "c").edge("b", "d")
        one = cluster(1, memory=[4])
        instance = Instance(graph.build(), one, Model(memory="refcount"))
        a, b, c = 0, 1, 2
        assert makespan(instance) == 4
        assert makespan(instance, Goal(order=((a, c), (c, b)))) == 4
        assert makespan(instance, Goal(order=((a, b), (b, c)))) is None

    def test_the_sender_keeps_a_tensor_until_it_has_arrived(self) -> None:
        def best(memory: Memory) -> Fraction | None:
            graph = pinned({"a": ("d0", 1, [3]), "b": ("d1", 1, []), "c": ("d0", 4, [3])})
            graph.edge("a", "b")
            return makespan(
                Instance(graph.build(), cluster(2, memory=[3, None]), Model(memory=memory))
            )

        assert best("none") == 1 + 4
        assert best("refcount") == 1 + 3 + 4

    @pytest.mark.parametrize("communication", ["delay", "link", "port"])
    def test_the_receiver_holds_a_tensor_from_the_start_of_its_transfer(
        self, communication: Communication
    ) -> None:
        def best(memory: Memory) -> Fraction | None:
            graph = pinned({"a": ("d0", 1, [3]), "b": ("d1", 1, []), "e": ("d1", 2, [3])})
            graph.edge("a", "b")
            devices = cluster(2, memory=[None, 3])
            return makespan(Instance(graph.build(), devices, Model(communication, memory)))

        assert best("none") == 1 + 3 + 1
        assert best("refcount") == 2 + 3 + 1


class TestGoal:
    @staticmethod
    def pair() -> Instance:
        """a → b and a → c of 2 operations each, with a tensor of 1 for both; two alike devices."""
        graph = GraphBuilder().vertex("a", 2, outputs=[1]).vertex("b", 2).vertex("c", 2)
        return Instance(graph.edge("a", "b").edge("a", "c").build(), cluster(2))

    @pytest.mark.parametrize(
        ("objective", "makespan", "traffic"),
        [("makespan", 5, 1), ("traffic", 6, 0), ("lexicographic", 5, 1)],
    )
    def test_each_objective(self, objective: Objective, makespan: int, traffic: int) -> None:
        result = solved(self.pair(), Goal(objective))
        assert result.makespan == makespan
        assert result.traffic == traffic
        assert result.objective == objective
        assert result.traffic_bound == (None if objective == "makespan" else traffic)

    def test_the_placement_may_be_given(self) -> None:
        instance = self.pair()
        assert solved(instance, Goal(placement={0: 1, 1: 0, 2: 0})).makespan == 2 + 1 + 2 + 2
        assert solved(instance, Goal(placement={2: 1})).makespan == 5

    def test_the_order_may_be_given(self) -> None:
        graph = GraphBuilder().vertex("a", 2).vertex("b", 3).vertex("c", 4).edge("a", "c", None)
        instance = Instance(graph.build(), cluster(2, bandwidth=0))
        assert makespan(instance) == 6
        assert makespan(instance, Goal(order=((2, 0),))) is None
        # Where they share no device, an order says nothing.
        assert makespan(instance, Goal(order=((1, 0),))) == 6
        assert makespan(instance, Goal(order=((1, 0),), placement={0: 0, 1: 0})) == 9

    def test_limits_decide(self) -> None:
        instance = self.pair()
        assert makespan(instance, Goal(makespan=Fraction(5))) == 5
        assert makespan(instance, Goal(makespan=Fraction(49, 10))) is None
        assert makespan(instance, Goal(traffic=Fraction(0))) == 6
        both = solved(instance, Goal(makespan=Fraction(5), traffic=Fraction(0)))
        assert both.status is Status.INFEASIBLE
        assert "makespan at most 5" in both.reason

    def test_what_does_not_exist_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"goal\.placement"):
            enumerate_all(self.pair(), goal=Goal(placement={7: 0}))


class TestRun:
    def test_an_empty_graph_takes_no_time(self) -> None:
        assert makespan(Instance(GraphBuilder().build(), cluster(2))) == 0

    def test_a_contradiction_is_named(self) -> None:
        graph = GraphBuilder().vertex("a", 1).vertex("b", 1).separate("a", "b")
        result = solved(Instance(graph.build(), cluster(1)))
        assert result.status is Status.INFEASIBLE
        graph.colocate("a", "b")
        assert "colocated and separated" in solved(Instance(graph.build(), cluster(2))).reason

    def test_without_time_it_says_what_it_knows(self) -> None:
        instance = draw_instance(1, vertices=9)
        result = enumerate_all(instance, budget=Budget(0))
        assert (result.status, result.termination) == (
            Status.UNKNOWN,
            Termination.TIME_LIMIT,
        )
        assert result.lower_bound is not None
        assert result.lower_bound > 0

    @pytest.mark.parametrize("objective", get_args(Objective))
    def test_bounds_are_valid_whenever_it_stops(self, objective: Objective) -> None:
        closed = 0
        for seed in range(6):
            # The bottleneck is not defined where memory depends on time.
            memory: Memory = "estimate" if objective == "bottleneck" else "refcount"
            instance = draw_instance(seed, "port", memory, release="end")
            best = solved(instance, Goal(objective))
            for branches in (1, 5, 20, 80):
                budget = Budget(600, deterministic=branches / 10_000)
                result = enumerate_all(instance, budget=budget, goal=Goal(objective))
                if best.makespan is None or best.traffic is None:
                    assert result.status in (Status.UNKNOWN, Status.INFEASIBLE)
                    continue
                assert result.status is not Status.INFEASIBLE
                closed += result.status is Status.OPTIMAL
                assert result.lower_bound is not None
                assert result.lower_bound <= best.makespan
                assert result.traffic_bound is None or result.traffic_bound <= best.traffic
                if result.bottleneck_bound is not None:
                    assert result.bottleneck_bound <= best.bottleneck
        assert 0 < closed < 24

    def test_the_placement_of_the_start_is_tried_first(self) -> None:
        instance = TestGoal.pair()
        start = solved(instance, Goal("traffic")).schedule
        steps: list[Progress] = []
        result = enumerate_all(instance, start=start, watch=steps.append)
        assert [step.objective for step in steps] == [6, 5]
        assert result.makespan == 5
        assert list(result.trace) == steps

    def test_the_same_run_gives_the_same_schedule(self) -> None:
        for communication in COMMUNICATION:
            instance = draw_instance(2, communication)
            first, second = solved(instance).schedule, solved(instance).schedule
            assert first is not None
            assert second is not None
            assert first.placement.tolist() == second.placement.tolist()
            assert first.start.fractions() == second.start.fractions()

    def test_devices_that_are_alike_cost_nothing_but_branches(self) -> None:
        """Capacities that bind nothing keep them apart."""
        rng = np.random.default_rng(4)
        for _ in range(10):
            graph = random_instance(rng, 6, 1, types=False, allowed=False, measured=False).graph
            same = cluster(3)
            unlike = replace(same, memory=(Fraction(10**6), Fraction(10**6 + 1), None))
            assert makespan(Instance(graph, same)) == makespan(Instance(graph, unlike))

    def test_large_graphs_are_refused(self) -> None:
        graph = GraphBuilder()
        for v in range(MAX_VERTICES + 1):
            graph.vertex(str(v), 1)
        with pytest.raises(UnsupportedError, match="at most"):
            enumerate_all(Instance(graph.build(), cluster(2)))

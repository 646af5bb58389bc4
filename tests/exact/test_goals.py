"""What exact methods answer on cases worked out by hand, and CP-SAT to every kind of goal."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from shutil import which
from typing import Any

import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model, retime
from optpart.exact.enumeration import enumerate_all
from optpart.exact.minizinc import minizinc
from optpart.exact.symmetry import interchangeable_devices
from optpart.interop.formats import result as result_format
from optpart.methods.cpsat import cpsat
from optpart.methods.pareto import pareto
from optpart.problem.model import Communication
from optpart.solution.goal import Goal, Measure, Objective
from optpart.solution.job import Job
from optpart.solution.result import Budget, Result, Status, with_bound
from optpart.solution.verifier import verify

ONE = Budget(seconds=30, workers=1)

#: The methods that know every model and goal; CP-SAT alone, unless a test is for all of them.
EXACT: list[Any] = [
    cpsat,
    enumerate_all,
    pytest.param(minizinc, marks=pytest.mark.skipif(not which("minizinc"), reason="no minizinc")),
]
METHOD: dict[str, Any] = {"used": cpsat}


@pytest.fixture(params=EXACT, ids=["cpsat", "enumerate", "minizinc"])
def every_method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHOD, "used", request.param)


def solve(instance: Instance, goal: Goal = Goal()) -> Result:  # noqa: B008
    """Solve, and check what holds for every result."""
    result = METHOD["used"](instance, budget=ONE, goal=goal)
    if result.schedule is not None:
        assert verify(instance, result.schedule) == []
        assert goal.broken(instance, result.schedule) == ""
    return result


def proven(instance: Instance, goal: Goal = Goal()) -> tuple[object, object]:  # noqa: B008
    """Makespan and traffic of a result that is optimal."""
    result = solve(instance, goal)
    assert result.status is Status.OPTIMAL, result.reason
    return result.makespan, result.traffic


def fork(model: Model | None = None, memory: int | None = None) -> Instance:
    """a (2) hands 3 to b (4) and to c (4); two equal devices."""
    builder = GraphBuilder().vertex("a", 2, outputs=[3]).vertex("b", 4).vertex("c", 4)
    builder.edge("a", "b").edge("a", "c")
    cluster = Cluster.uniform(2, bandwidth=1, memory=memory)
    return Instance(builder.build(), cluster, model or Model(), name="fork")


def thesis() -> Instance:
    """[L] §2.5, figure 2.3: sends of 10 operations, all tensors 50."""
    builder = GraphBuilder()
    for v, ops in enumerate([30, 50, 60, 30, 40, 80]):
        builder.vertex(str(v), ops, outputs=[50], devices=[f"d{v // 2}"])
    for source, target in ("01", "12", "23", "14", "45"):
        builder.edge(source, target)
    devices = [Device("d0", 10), Device("d1", 30), Device("d2", 40)]
    bandwidth = [[0, 25, 50], [25, 0, 25], [50, 25, 0]]
    model = Model("sendrecv", send_ops=Fraction(10))
    return Instance(builder.build(), Cluster.of(devices, bandwidth), model)


@pytest.mark.usefixtures("every_method")
class TestThesisExample:
    """[L] §2.5, table 2.1: which send goes first matters."""

    def test_the_best_order_of_sends(self) -> None:
        assert proven(thesis()) == (14, 100)

    @pytest.mark.parametrize(("first", "second", "makespan"), [(1, 2, 14), (2, 1, 15)])
    def test_a_given_order_of_sends(self, first: int, second: int, makespan: int) -> None:
        goal = Goal(order=(((1, first), (1, second)),))
        assert proven(thesis(), goal) == (makespan, 100)


@pytest.mark.usefixtures("every_method")
class TestCommunication:
    """x crosses to b; whether y can cross beside it is for the model to say."""

    def instance(self, communication: Communication, channels: int = 1, **rest: int) -> Instance:
        """a (1) on d0 hands x (4) to b (1) on d1 and y (4) to c (1) on d1."""
        builder = GraphBuilder().vertex("a", 1, outputs=[4, 4], devices=["d0"])
        builder.vertex("b", 1, devices=["d1"]).vertex("c", 1, devices=["d1"])
        builder.edge("a", "b", 0).edge("a", "c", 1)
        model = Model(communication, channels=channels, send_ops=Fraction(rest.get("send", 0)))
        return Instance(builder.build(), Cluster.uniform(2, bandwidth=1), model)

    def test_delay_lets_both_cross_at_once(self) -> None:
        assert proven(self.instance("delay")) == (1 + 4 + 1 + 1, 8)

    def test_sends_take_turns_on_the_sender(self) -> None:
        assert proven(self.instance("sendrecv", send=2)) == (1 + 2 + 2 + 4 + 1, 8)

    def test_a_link_carries_one_at_a_time(self) -> None:
        assert proven(self.instance("link")) == (1 + 4 + 4 + 1, 8)

    def test_a_port_carries_as_many_as_it_has_channels(self) -> None:
        assert proven(self.instance("port")) == (1 + 4 + 4 + 1, 8)
        assert proven(self.instance("port", channels=2)) == (1 + 4 + 1 + 1, 8)

    def test_a_port_serves_all_links_of_its_device(self) -> None:
        builder = GraphBuilder().vertex("a", 1, outputs=[4], devices=["d0"])
        builder.vertex("b", 1, devices=["d1"]).vertex("c", 1, devices=["d2"])
        graph = builder.edge("a", "b").edge("a", "c").build()
        cluster = Cluster.uniform(3, bandwidth=1)
        assert proven(Instance(graph, cluster, Model("link"))) == (1 + 4 + 1, 8)
        assert proven(Instance(graph, cluster, Model("port"))) == (1 + 4 + 4 + 1, 8)

    def test_a_signal_without_length_needs_a_channel_for_its_instant(self) -> None:
        """Two channels; a and c are made at 0 and take 5 to cross; the signal of s arrives at 2.

        Were it to pass beside both, t would run from 2 to 6. As it is, one of them waits until 2.
        """
        builder = GraphBuilder().vertex("a", 0, outputs=[5], devices=["d0"])
        builder.vertex("c", 0, outputs=[5], devices=["d0"]).vertex("s", 2, devices=["d0"])
        for name in "bd":
            builder.vertex(name, 0, devices=["d1"])
        builder.vertex("t", 4, devices=["d1"])
        graph = builder.edge("a", "b").edge("c", "d").edge("s", "t", None).build()
        instance = Instance(graph, Cluster.uniform(2, bandwidth=1), Model("port", channels=2))
        a, c, s = range(3)
        wide = [t for t in range(graph.tensors) if graph.tensor_size[t] == 5]
        (signal,) = (t for t in range(graph.tensors) if graph.tensor_vertex[t] == s)
        assert proven(instance, Goal(order=((a, s), (c, s))))[0] == 7
        after = Goal(order=tuple(((t, 1), (signal, 1)) for t in wide))
        assert proven(instance, after)[0] == 9


@pytest.mark.usefixtures("every_method")
class TestMemory:
    def test_an_active_edge_holds_its_tensor_until_its_target_starts(self) -> None:
        """While b runs, 3 waits for c if c is beside it, and 0 if it starts as its tensor arrives
        ([M] eq. 2).
        """
        together = Goal(placement={0: 0, 1: 0, 2: 0})
        assert proven(fork(Model(memory="edges"), memory=3), together) == (10, 0)
        tight = fork(Model(memory="edges"), memory=2)
        assert solve(tight, together).status is Status.INFEASIBLE
        assert proven(tight) == (9, 3)

    def test_a_copy_is_held_once_until_its_last_use(self) -> None:
        """One copy of 3 serves both consumers; less than 3 serves nobody."""
        assert proven(fork(Model(memory="refcount"), memory=3)) == (9, 3)
        assert solve(fork(Model(memory="refcount"), memory=2)).status is Status.INFEASIBLE

    def test_waiting_may_be_necessary_to_fit(self) -> None:
        """Tensors of 2 on a device of 3: the second is made when the first has left."""
        builder = GraphBuilder()
        for name in "ab":
            builder.vertex(f"{name}0", 1, outputs=[2], devices=["d0"])
            builder.vertex(f"{name}1", 5, devices=["d1"]).edge(f"{name}0", f"{name}1")
        devices = [Device("d0", memory=3), Device("d1")]
        cluster = Cluster.of(devices, bandwidth=1)
        held = Instance(builder.build(), cluster, Model(memory="refcount"))
        # a0 is held until it has arrived at 3; then b0 runs and arrives at 6, b1 runs 8 to 13.
        assert proven(held) == (13, 4)
        assert proven(Instance(builder.build(), cluster)) == (13, 4)
        late = Goal(makespan=Fraction(13), order=((0, 2),))
        assert solve(held, late).schedule is not None

    def test_release_at_the_start_of_the_last_consumer(self) -> None:
        """a hands 2 to b, which makes 2: both fit into 3 only if b frees its input as it starts."""
        builder = GraphBuilder().vertex("a", 1, outputs=[2]).vertex("b", 1, outputs=[2])
        graph = builder.edge("a", "b").build()
        cluster = Cluster.uniform(1, memory=3)
        at_start = Model(memory="refcount", release="start")
        assert proven(Instance(graph, cluster, at_start)) == (2, 0)
        at_end = Instance(graph, cluster, Model(memory="refcount"))
        assert solve(at_end).status is Status.INFEASIBLE


class TestGiven:
    def test_placement(self) -> None:
        assert proven(fork()) == (9, 3)
        assert proven(fork(), Goal(placement={0: 0, 1: 0, 2: 0})) == (10, 0)

    def test_order(self) -> None:
        """Whichever comes first, c waits for its tensor; b first is no loss, on one device."""
        cluster = Cluster.uniform(1)
        builder = GraphBuilder().vertex("a", 5).vertex("b", 1).vertex("c", 4).edge("b", "c", None)
        instance = Instance(builder.build(), cluster)
        assert proven(instance, Goal(order=((0, 1),))) == (10, 0)
        result = solve(instance, Goal(order=((2, 1),)))
        assert result.status is Status.INFEASIBLE
        assert "the order of 1 pairs" in result.reason

    def test_a_placement_that_is_not_allowed(self) -> None:
        builder = GraphBuilder().vertex("a", 1, devices=["d0"]).vertex("b", 1).colocate("a", "b")
        instance = Instance(builder.build(), Cluster.uniform(2))
        result = solve(instance, Goal(placement={0: 1}))
        assert result.status is Status.INFEASIBLE
        assert result.reason == "a is fixed to d1, where it may not run"
        free = GraphBuilder().vertex("a", 1).vertex("b", 1).colocate("a", "b").build()
        result = solve(Instance(free, Cluster.uniform(2)), Goal(placement={0: 1, 1: 0}))
        assert result.reason == "a and b are colocated but fixed to different devices"

    @pytest.mark.parametrize(
        "goal", [Goal(placement={3: 0}), Goal(placement={0: 2}), Goal(order=((0, (0, 2)),))]
    )
    def test_unknown_vertices_and_devices(self, goal: Goal) -> None:
        with pytest.raises(InputError, match="goal"):
            cpsat(fork(), goal=goal)

    def test_devices_that_an_order_names_are_not_alike(self) -> None:
        builder = GraphBuilder().vertex("a", 2, outputs=[3]).vertex("b", 4, outputs=[3])
        graph = builder.vertex("c", 4).edge("a", "b").edge("b", "c").build()
        three, two = (Instance(graph, Cluster.uniform(k, bandwidth=1)) for k in (3, 2))
        to_d1 = Goal(order=(((0, 1), (1, 1)), (0, 1)))
        assert interchangeable_devices(three, to_d1) == [[0, 2]]
        assert interchangeable_devices(two, Goal(order=(((0, 1), 2),))) == []
        # What is said of both destinations alike tells neither apart.
        assert interchangeable_devices(two, Goal(order=(((0, 0), 2), ((0, 1), 2)))) == [[0, 1]]


class TestDecision:
    def test_within_the_optimum_and_a_tick_less(self) -> None:
        within = solve(fork(), Goal(makespan=Fraction(9)))
        assert within.makespan == 9
        too_short = solve(fork(), Goal(makespan=Fraction(9) - Fraction(1, 10**6)))
        assert too_short.status is Status.INFEASIBLE
        assert str(Fraction(9) - Fraction(1, 10**6)) in too_short.reason

    def test_any_schedule_within_it_will_do(self) -> None:
        result = solve(fork(), Goal(makespan=Fraction(100)))
        assert result.makespan is not None
        assert result.makespan <= 100
        assert result.given == "makespan at most 100"


class TestTraffic:
    def test_least_traffic(self) -> None:
        result = solve(fork(), Goal("traffic"))
        assert result.status is Status.OPTIMAL
        assert result.traffic == 0
        assert result.traffic_bound == 0
        assert result.gap == 0

    def test_least_traffic_within_a_makespan(self) -> None:
        assert proven(fork(), Goal("traffic", makespan=Fraction(19, 2))) == (9, 3)

    def test_a_tensor_counts_once_per_destination(self) -> None:
        """b and c are apart from a and eat the same tensor."""
        builder = GraphBuilder().vertex("a", 2, outputs=["1/3"]).vertex("b", 4).vertex("c", 4)
        builder.edge("a", "b").edge("a", "c").separate("a", "b").separate("a", "c")
        instance = Instance(builder.build(), Cluster.uniform(3, bandwidth=1))
        assert proven(instance, Goal("traffic"))[1] == Fraction(1, 3)
        assert proven(instance, Goal("lexicographic")) == (6 + Fraction(1, 3), Fraction(2, 3))

    def test_a_limit_of_traffic(self) -> None:
        assert proven(fork(), Goal(traffic=Fraction(5, 2))) == (10, 0)

    def test_the_result_says_what_was_minimised(self) -> None:
        document = result_format.to_dict(solve(fork(), Goal("traffic")))
        assert document["objective"] == "traffic"
        assert document["traffic_bound"] == "0"
        assert "objective" not in result_format.to_dict(solve(fork()))

    def test_a_bound_of_the_makespan_proves_no_traffic(self) -> None:
        result = cpsat(fork(), budget=Budget(0, 1), goal=Goal("lexicographic"))
        assert result.status is Status.FEASIBLE
        assert result.makespan is not None
        assert with_bound(result, result.makespan).status is Status.FEASIBLE


class TestPareto:
    def points(self, front: Sequence[Result]) -> list[tuple[object, object]]:
        assert all(point.status is Status.OPTIMAL for point in front)
        return [(point.makespan, point.traffic) for point in front]

    def test_by_hand(self) -> None:
        assert self.points(pareto(Job(fork(), budget=ONE))) == [(9, 3), (10, 0)]

    def test_a_limit_cuts_the_front(self) -> None:
        front = pareto(Job(fork(), Goal(makespan=Fraction(19, 2)), ONE))
        assert self.points(front) == [(9, 3)]

    def test_without_any_schedule(self) -> None:
        builder = GraphBuilder().vertex("a", devices=["d0"]).vertex("b", devices=["d1"])
        instance = Instance(builder.edge("a", "b", None).build(), Cluster.uniform(2, bandwidth=0))
        assert [point.status for point in pareto(Job(instance, budget=ONE))] == [Status.INFEASIBLE]

    def test_without_time_the_last_is_not_proven(self) -> None:
        front = pareto(Job(fork(), budget=Budget(0, 1)))
        assert front[-1].status is Status.FEASIBLE


class TestRounding:
    """Times without a common tick: memory is relaxed by less than the ticks that rounding takes."""

    @pytest.mark.parametrize("memory", ["edges", "refcount"])
    def test_a_bound_holds_and_a_schedule_is_valid(self, memory: str) -> None:
        builder = GraphBuilder().vertex("a", 2, outputs=[3]).vertex("b", 4).vertex("c", 4)
        builder.edge("a", "b").edge("a", "c")
        primes = 10**9 + 7, 10**9 + 9
        devices = [Device(f"d{i}", Fraction(p, 10**9), memory=6) for i, p in enumerate(primes)]
        model = Model(memory="edges" if memory == "edges" else "refcount")
        instance = Instance(builder.build(), Cluster.of(devices, bandwidth=1), model)
        result = solve(instance)
        assert result.schedule is not None
        assert result.gap is not None
        assert result.gap < 1e-5

    def test_a_schedule_to_start_from_is_kept(self) -> None:
        start = retime(fork(), [0, 0, 0], [0, 1, 2])
        result = cpsat(fork(), budget=Budget(0, 1), start=start, goal=Goal("traffic"))
        assert result.status is Status.OPTIMAL
        assert result.traffic == 0


@pytest.mark.parametrize(
    ("objective", "order"),
    [
        ("makespan", [(1, 9), (2, 3), (3, 1)]),
        ("traffic", [(3, 1), (2, 3), (9, 3)]),
        ("lexicographic", [(1, 9), (2, 3), (2, 4), (3, 1)]),
    ],
)
def test_what_is_better(objective: Objective, order: list[tuple[int, int]]) -> None:
    """Pairs of makespan and traffic from best to worst."""
    goal = Goal(objective)
    values = [valued(makespan, crossing) for makespan, crossing in order]
    for one, other in product(range(len(values)), repeat=2):
        assert goal.better(values[one], values[other]) == (one < other)


def test_the_makespan_ignores_the_traffic() -> None:
    assert not Goal().better(valued(2, 1), valued(2, 5))


def valued(makespan: int, traffic: int) -> dict[Measure, Fraction]:
    return {"makespan": Fraction(makespan), "traffic": Fraction(traffic)}

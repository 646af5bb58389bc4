"""What holds for every bound: it never exceeds the makespan of a schedule, whoever made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import get_args

import numpy as np
import pytest
from relabelling import relabelled

from optpart import Cluster, GraphBuilder, Instance
from optpart.base import clock
from optpart.kernels import ticks
from optpart.lower_bounds.best import BOUNDS, Bound, Cost, LowerBound, all_bounds, best_bound
from optpart.methods import registry
from optpart.methods.solver_bound import solver_rows
from optpart.problem.model import Communication, Memory
from optpart.search import bounding
from optpart.solution.result import Budget
from optpart.testing.brute_force import optimum
from optpart.testing.draw import draw_instance, random_instance

#: More than any bound needs on an instance of a few vertices.
ENOUGH = 60.0


@pytest.mark.parametrize("memory", ["none", "estimate"])
@pytest.mark.parametrize("rational", [False, True])
def test_no_bound_exceeds_the_optimum(memory: Memory, rational: bool) -> None:
    rng = np.random.default_rng(1)
    feasible = 0
    for _ in range(4):
        instance = random_instance(rng, 6, 3, memory=memory, rational=rational)
        best = optimum(instance)
        for bound in BOUNDS.values():
            value = bound.compute(instance, seconds=ENOUGH, makespan=None)
            if best is not None:
                feasible += 1
                assert value is not None
                assert value <= best.makespan
    assert feasible >= 2 * len(BOUNDS)


@pytest.mark.parametrize("communication", get_args(Communication))
@pytest.mark.parametrize("memory", get_args(Memory))
def test_no_bound_exceeds_a_verified_schedule(communication: Communication, memory: Memory) -> None:
    for seed in count():  # until there is a schedule
        instance = draw_instance(seed, communication, memory)
        spans = [registry.get(name)(instance).makespan for name in registry.heuristics()[::4]]
        if found := [span for span in spans if span is not None]:
            break
    for bound in BOUNDS.values():
        value = bound.compute(instance, seconds=ENOUGH, makespan=None)
        assert value is not None
        assert value <= min(found)


def value(bound: LowerBound, instance: Instance) -> Fraction | None:
    return bound.compute(instance, seconds=ENOUGH, makespan=None)


every_bound = pytest.mark.parametrize("bound", BOUNDS.values(), ids=[*BOUNDS])


@every_bound
def test_an_empty_graph_takes_no_time(bound: LowerBound) -> None:
    assert value(bound, Instance(GraphBuilder().build(), Cluster.uniform(2))) == 0


@every_bound
def test_of_a_vertex_without_a_device_there_is_none(bound: LowerBound) -> None:
    graph = GraphBuilder().vertex("a").build()
    assert value(bound, Instance(graph, Cluster.uniform(1), durations=[[None]])) is None


@every_bound
def test_relabelling_changes_nothing(bound: LowerBound) -> None:
    rng = np.random.default_rng(3)
    for _ in range(5):
        instance = random_instance(rng, 7, 3)
        assert value(bound, instance) == value(bound, relabelled(instance, rng))


@every_bound
def test_on_a_rounded_grid_it_is_still_valid(
    bound: LowerBound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
    rng = np.random.default_rng(5)
    for _ in range(5):
        instance = random_instance(rng, 6, 3, memory="estimate")
        best, found = optimum(instance), value(bound, instance)
        assert best is None or (found is not None and found <= best.makespan)


def three_on_two() -> Instance:
    builder = GraphBuilder()
    for v in range(3):
        builder.vertex(f"v{v}", 4).vertex(f"w{v}", 1)
    return Instance(builder.build(), Cluster.uniform(2))


def test_the_best_is_the_largest() -> None:
    """15 operations on two devices take 8; the rest find nothing that refutes 8."""
    values = {bound.name: bound.value for bound in all_bounds(three_on_two())}
    known = {"critical-path": 4, "load": 8, "one-machine": 4, "energy": 8, "destructive": 8}
    assert known.items() <= values.items()
    best = best_bound(three_on_two())
    assert best.name == "load"
    assert best.value == 8


def test_it_ends_at_a_known_makespan() -> None:
    known = optimum(three_on_two())
    assert known is not None
    assert best_bound(three_on_two(), makespan=known.makespan).name == "load"


def test_the_solver_takes_part_when_asked() -> None:
    found = all_bounds(three_on_two(), 20.0, besides=solver_rows())
    assert [bound.name for bound in found] == [*BOUNDS, "intervals", "cpsat"]
    assert found[-1].value == 8


def test_without_time_every_bound_is_still_valid() -> None:
    assert all(bound.value is not None for bound in all_bounds(three_on_two(), 0.0))


def test_the_first_proof_of_infeasibility_ends_it() -> None:
    graph = GraphBuilder().vertex("a", devices=["d0"]).vertex("b", devices=["d1"])
    instance = Instance(graph.edge("a", "b", None).build(), Cluster.uniform(2, bandwidth=0))
    assert best_bound(instance).value is None
    values = {bound.name: bound.value for bound in all_bounds(instance)}
    seen = ("critical-path", "load", "cases", "one-machine", "energy", "crossings", "destructive")
    assert [values[name] for name in (*seen, "branching")] == [None] * 8


class TestABoundAddedToTheTable:
    """One row is enough to take part everywhere."""

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[Cost], list[float]]:
        """Add a bound of a cost; return the list of the seconds that it is given."""

        def add(cost: Cost) -> list[float]:
            given: list[float] = []

            def compute(
                instance: Instance, /, *, seconds: float, makespan: Fraction | None
            ) -> Fraction:
                given.append(seconds)
                return Fraction(1)

            monkeypatch.setitem(BOUNDS.rows, "new", Bound("new", cost, compute))
            return given

        return add

    @pytest.mark.parametrize("cost", get_args(Cost))
    def test_it_is_computed_with_the_others(
        self, calls: Callable[[Cost], list[float]], cost: Cost
    ) -> None:
        given = calls(cost)
        assert [bound.name for bound in all_bounds(three_on_two())] == list(BOUNDS)
        assert len(given) == 1

    @pytest.mark.parametrize("cost", get_args(Cost))
    def test_it_takes_part_in_search(
        self, calls: Callable[[Cost], list[float]], cost: Cost
    ) -> None:
        given = calls(cost)
        assert bounding.bounded(three_on_two(), 5.0, None) == 8
        assert len(given) == 1

    @pytest.mark.parametrize(("cost", "times"), [("cheap", 1), ("timed", 0), ("anytime", 0)])
    def test_search_uses_a_cheap_one_on_large_instances_too(
        self,
        calls: Callable[[Cost], list[float]],
        monkeypatch: pytest.MonkeyPatch,
        cost: Cost,
        times: int,
    ) -> None:
        given = calls(cost)
        monkeypatch.setattr(bounding, "BOUNDED", 0)
        assert bounding.bounded(three_on_two(), 5.0, None) == 8
        assert len(given) == times

    @pytest.mark.parametrize(("cost", "times"), [("cheap", 1), ("timed", 1), ("anytime", 0)])
    def test_it_is_computed_before_cpsat_on_small_instances_unless_it_never_ends_by_itself(
        self, calls: Callable[[Cost], list[float]], cost: Cost, times: int
    ) -> None:
        given = calls(cost)
        no_bound_reaches_it = random_instance(np.random.default_rng(65), 13, 3)
        found = registry.get("cpsat")(no_bound_reaches_it, budget=Budget(20.0, 1))
        assert found.makespan == 15
        assert len(given) == times

    def test_a_cheap_one_leaves_the_others_their_time(
        self,
    ) -> None:
        given: list[float] = []

        def compute(
            instance: Instance, /, *, seconds: float, makespan: Fraction | None
        ) -> Fraction:
            given.append(seconds)
            return Fraction(1)

        row = Bound("b", "anytime", compute)
        cheap = Bound("a", "cheap", lambda x, *, seconds, makespan: Fraction(1))
        best_bound(three_on_two(), 60.0, among=[cheap, cheap, row, row])
        assert given == pytest.approx([15.0, 60.0], abs=5.0)


class TestTurns:
    """Bounds that could go on for ever take turns, and the largest gets the rest of the time."""

    @pytest.fixture
    def given(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
        """Let a clock stand still between bounds; return who was given how much."""
        given: list[tuple[str, float]] = []
        monkeypatch.setattr(clock, "now", lambda: sum(seconds for _, seconds in given))
        return given

    @staticmethod
    def row(given: list[tuple[str, float]], name: str, value: int, takes: float = 1.0) -> Bound:
        def compute(
            instance: Instance, /, *, seconds: float, makespan: Fraction | None
        ) -> Fraction:
            given.append((name, seconds * takes))
            return Fraction(value) + Fraction(seconds) / 1000

        return Bound(name, "anytime", compute)

    def test_each_has_a_turn_and_the_largest_gets_the_other_half(
        self, given: list[tuple[str, float]]
    ) -> None:
        rows = [self.row(given, *each) for each in (("a", 1), ("b", 3), ("c", 2))]
        best = best_bound(three_on_two(), 60.0, among=rows)
        assert given == [("a", 10.0), ("b", 10.0), ("c", 10.0), ("b", 30.0)]
        assert best == LowerBound("b", 3 + Fraction(30, 1000), 30.0, 30.0)

    def test_what_can_go_on_does_not_begin_anew(self, given: list[tuple[str, float]]) -> None:
        def rise(
            instance: Instance, seconds: float, makespan: Fraction | None, *, known: Fraction
        ) -> Fraction:
            given.append((f"from {float(known)}", seconds))
            return known + 1

        row = replace(self.row(given, "a", 2), rise=rise)
        best = best_bound(three_on_two(), 60.0, among=[row, self.row(given, "b", 1)])
        assert [name for name, _ in given] == ["a", "b", "from 2.015"]
        assert best.value == 3 + Fraction(15, 1000)

    def test_one_that_ended_gets_no_more_however_large(
        self, given: list[tuple[str, float]]
    ) -> None:
        rows = [self.row(given, "a", 1), self.row(given, "b", 3, takes=0.25)]
        best_bound(three_on_two(), 64.0, among=rows)
        assert [name for name, _ in given] == ["a", "b", "a"]
        assert sum(seconds for _, seconds in given) == 64.0

    def test_the_last_gets_all_that_is_left_if_no_other_could_use_it(
        self, given: list[tuple[str, float]]
    ) -> None:
        rows = [self.row(given, "a", 1, takes=0.25), self.row(given, "b", 3)]
        best_bound(three_on_two(), 64.0, among=rows)
        assert given == [("a", 4.0), ("b", 60.0)]

    def test_none_gets_less_than_it_had(self, given: list[tuple[str, float]]) -> None:
        overrun = self.row(given, "a", 1, takes=3.0)
        best_bound(three_on_two(), 60.0, among=[overrun, self.row(given, "b", 0)])
        assert [name for name, _ in given] == ["a", "b"]

    def test_each_is_listed_once_with_its_largest_value_and_all_its_time(
        self, given: list[tuple[str, float]]
    ) -> None:
        rows = [self.row(given, "a", 1), self.row(given, "b", 3)]
        found = all_bounds(three_on_two(), 60.0, besides=rows, without=set(BOUNDS))
        assert [(bound.name, bound.seconds) for bound in found] == [("a", 15.0), ("b", 45.0)]
        assert found[1].value == 3 + Fraction(30, 1000)

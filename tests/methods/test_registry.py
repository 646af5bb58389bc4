"""Every method has one signature, one registry, and results that the verifier accepts."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from functools import cache
from importlib.metadata import EntryPoint
from inspect import signature
from itertools import pairwise, product
from typing import Any, get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder, InputError, Instance, Model
from optpart.base.errors import UnsupportedError
from optpart.methods import registry
from optpart.methods.parts import METHODS, PARTITIONERS, USUAL_SCHEDULERS
from optpart.methods.registry import entries, get, heuristics, pairs, register, starts
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Status, Watch, conclude
from optpart.solution.schedule import Schedule, retime
from optpart.solution.verifier import verify
from optpart.strategies.base import NoPlacementError
from optpart.testing.brute_force import Optimum, optimum
from optpart.testing.draw import random_instance

#: Topcuoglu, Hariri and Wu (2002), figure 2: run times per processor, and data on the edges.
TEN_TASKS_TIMES = [
    [14, 16, 9],
    [13, 19, 18],
    [11, 13, 19],
    [13, 8, 17],
    [12, 13, 10],
    [13, 16, 9],
    [7, 15, 11],
    [5, 11, 14],
    [18, 12, 20],
    [21, 7, 16],
]
TEN_TASKS_EDGES = [
    (1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16), (3, 7, 23),
    (4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11), (9, 10, 13),
]  # fmt: skip


def ten_tasks() -> Instance:
    builder = GraphBuilder()
    for v in range(1, 11):
        builder.vertex(str(v))
    for u, v, size in TEN_TASKS_EDGES:
        builder.edge(str(u), str(v), size=size)
    return Instance(
        builder.build(), Cluster.uniform(3, bandwidth=1), durations=TEN_TASKS_TIMES, name="ten"
    )


def pair(model: Model | None = None, memory: int | None = None) -> Instance:
    """Two vertices a → b of 6 operations and 4 memory each, with a tensor of size 2."""
    builder = GraphBuilder().vertex("a", 6, memory=4, outputs=[2]).vertex("b", 6, memory=4)
    cluster = Cluster.uniform(2, bandwidth=1, memory=memory)
    return Instance(builder.edge("a", "b").build(), cluster, model or Model())


def all_on_first(
    instance: Instance,
    *,
    budget: Budget | None = None,
    seed: int = 0,
    start: Schedule | None = None,
    watch: Watch | None = None,
) -> Result:
    """Everything on device 0."""
    order = instance.graph.topological_order.tolist()
    schedule = retime(instance, [0] * instance.vertices, order)
    return conclude(instance, "all-on-first", schedule, seed=seed)


class TestRegistry:
    def plug_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        point = EntryPoint("elsewhere", f"{__name__}:all_on_first", METHODS.group)
        found = {METHODS.group: {"elsewhere": point}}
        monkeypatch.setattr("optpart.base.registry.points", lambda group: found.get(group, {}))

    def test_an_unknown_name_suggests_close_ones(self) -> None:
        register("mine")(all_on_first)
        for name in [
            *METHODS,
            *(f"{p}+{s}" for p in PARTITIONERS for s in USUAL_SCHEDULERS),
            "mine",
        ]:
            with pytest.raises(InputError) as caught:
                get(f"{name}-")
            assert name in caught.value.remedy
        with pytest.raises(InputError, match="no method 'nonsense'; 'optpart methods' lists"):
            get("nonsense")

    def test_an_unknown_name_suggests_plug_ins_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plug_in(monkeypatch)
        with pytest.raises(InputError, match="did you mean elsewhere"):
            get("elswhere")

    @pytest.mark.parametrize(
        "name", ["", "+", "pct", "hash", "hash+", "+pct", "hash+nonsense", "hash+pct+fifo", "HEFT"]
    )
    def test_half_a_name_is_not_a_method(self, name: str) -> None:
        with pytest.raises(InputError, match="no method"):
            get(name)

    def test_pairs_are_all_pairs_and_the_strategies_with_an_order_of_their_own(self) -> None:
        assert "heft" in pairs()
        for partitioning, part in PARTITIONERS.items():
            for scheduling in USUAL_SCHEDULERS:
                assert (f"{partitioning}+{scheduling}" in pairs()) is not part.special

    def test_heuristics_are_a_few_of_the_pairs(self) -> None:
        assert set(heuristics()) < set(pairs())
        assert {"heft", "hash+fifo", "critical-path+pct"} <= set(heuristics())

    def test_starts_are_these_and_early_on_the_contiguous_split(self) -> None:
        assert set(heuristics()) < set(starts()) < set(pairs())
        assert starts()[:4] == ["heft", "heft+pct", "contiguous-split", "contiguous-split+pct"]
        assert sorted(starts()[2:4] + heuristics()) == sorted(starts())
        assert starts(groups=True) == [*starts()[:2], "heft-groups", *starts()[2:]]

    def test_a_method_of_your_own_joins_by_a_decorator(self) -> None:
        assert register("mine", "everything on device 0")(all_on_first) is all_on_first
        assert get("mine") is all_on_first
        result = get("mine")(pair(), budget=Budget(1), seed=3)
        assert result.makespan == 12
        assert result.seed == 3
        assert [e.summary for e in entries() if e.name == "mine"] == ["everything on device 0"]

    def test_its_docstring_is_its_summary(self) -> None:
        register("mine")(all_on_first)
        assert [e.summary for e in entries() if e.name == "mine"] == ["Everything on device 0."]

    def test_a_method_of_another_package_joins_by_an_entry_point(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.plug_in(monkeypatch)
        assert get("elsewhere")(pair()).makespan == 12
        assert "elsewhere" in [entry.name for entry in entries()]

    def test_the_list_names_strategies_and_solvers(self) -> None:
        kinds = {entry.name: entry.kind for entry in entries()}
        assert kinds["hash+SCHEDULER"] == "partitioning"
        assert kinds["PARTITIONING+pct"] == "scheduling"
        assert kinds["heft"] == "heuristic"
        assert kinds["cpsat"] == "solver"
        assert all(entry.summary for entry in entries())


@pytest.mark.parametrize("time", ["first", "second"])
def test_what_a_test_registers_ends_with_it(time: str) -> None:
    assert "of-one-test" not in [name for _, name, *_ in registry.registered()]
    register("of-one-test")(all_on_first)


class TestHeft:
    def test_ten_tasks_take_80(self) -> None:
        instance = ten_tasks()
        result = get("heft")(instance)
        assert result.makespan == 80
        assert result.schedule is not None
        assert verify(instance, result.schedule) == []

    def test_ten_tasks_run_where_and_when_the_paper_says(self) -> None:
        """Figure 3 (a), which breaks ties in the same way."""
        schedule = get("heft")(ten_tasks()).schedule
        assert schedule is not None
        assert (schedule.placement + 1).tolist() == [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]
        assert schedule.start.fractions() == [0, 27, 9, 18, 28, 26, 38, 57, 56, 73]

    def test_its_placement_may_be_scheduled_otherwise(self) -> None:
        makespan = get("heft+pct")(ten_tasks()).makespan
        assert makespan is not None
        assert makespan >= 73


COMMUNICATIONS: list[Communication] = ["delay", "sendrecv", "link", "port"]


@cache
def drawn(seed: int, count: int, vertices: int, devices: int, **rules: Any) -> list[Instance]:
    """Draw instances; every heuristic gets the same ones."""
    rng = np.random.default_rng(seed)
    return [random_instance(rng, vertices, devices, **rules) for _ in range(count)]


@cache
def with_optima() -> list[tuple[Instance, Optimum | None]]:
    return [(instance, optimum(instance)) for instance in drawn(4, 10, 5, 3, memory="estimate")]


@pytest.mark.parametrize("name", pairs())
class TestEveryHeuristic:
    def test_returns_a_valid_schedule_or_a_reason(self, name: str) -> None:
        found = 0
        for communication, memory in product(COMMUNICATIONS, ["none", "estimate"]):
            instance = drawn(2, 1, 8, 4, communication=communication, memory=memory)[0]
            result = get(name)(instance)
            if result.schedule is None:
                assert result.status is Status.UNKNOWN
                assert result.makespan is None
                assert result.reason.startswith("found no feasible placement: no device was left")
            else:
                found += 1
                assert verify(instance, result.schedule) == []
                assert result.makespan == result.schedule.makespan(instance)
                assert result.status is Status.FEASIBLE  # it proves nothing
                assert result.lower_bound is None
        # One device often cannot hold, or may not run, everything.
        assert found >= (1 if name.startswith("single") else 6)

    def test_a_schedule_that_exceeds_the_memory_is_dropped_with_the_reason(self, name: str) -> None:
        """While c waits for b, a tensor of 9 from a is held in a memory of 8."""
        builder = GraphBuilder().vertex("a", 1, outputs=[9]).vertex("b", 1).vertex("c", 1)
        builder.edge("a", "b", None).edge("b", "c", None).edge("a", "c")
        cluster = Cluster.uniform(1, memory=8)
        for memory in ("edges", "refcount"):
            result = get(name)(Instance(builder.build(), cluster, Model(memory=memory)))
            assert result.status is Status.UNKNOWN
            assert result.schedule is None
            assert result.reason.startswith("its schedule is not valid: memory")

    def test_satisfies_every_rule_of_placement(self, name: str) -> None:
        for instance in drawn(3, 6, 8, 4, memory="estimate"):
            schedule = get(name)(instance).schedule
            if schedule is not None:
                placement = schedule.placement.tolist()
                check_allowed(instance, placement)
                check_groups(instance, placement)
                check_estimate(instance, placement)

    def test_is_never_better_than_the_optimum(self, name: str) -> None:
        for instance, best in with_optima():
            makespan = get(name)(instance).makespan
            if makespan is not None:
                assert best is not None
                assert makespan >= best.makespan

    def test_same_seed_same_result(self, name: str) -> None:
        for seed, instance in enumerate(drawn(5, 2, 8, 4, zero_length=False)):
            first, second = (get(name)(instance, seed=seed) for _ in range(2))
            assert first.seed == seed
            assert first.reason == second.reason
            if first.schedule is not None and second.schedule is not None:
                assert first.schedule.placement.tolist() == second.schedule.placement.tolist()
                assert first.schedule.start.fractions() == second.schedule.start.fractions()

    def test_an_empty_graph_and_a_single_vertex(self, name: str) -> None:
        assert get(name)(Instance(GraphBuilder().build(), Cluster.uniform(2))).makespan == 0
        single = GraphBuilder().vertex("a", 6).build()
        slow_and_fast = Cluster.of([Device("d0", 1), Device("d1", 4)])
        assert get(name)(Instance(single, slow_and_fast)).makespan in (6, Fraction(3, 2))

    def test_the_reason_names_the_unit_without_a_device(self, name: str) -> None:
        result = get(name)(pair(Model(memory="estimate"), memory=5))
        assert result.status is Status.UNKNOWN
        assert result.schedule is None
        assert result.reason == "found no feasible placement: no device was left for a"

    def test_nothing_crosses_without_a_link(self, name: str) -> None:
        builder = GraphBuilder()
        for v in range(8):
            builder.vertex(f"v{v}", 1, outputs=[1])
        for u, v in pairwise(range(8)):
            builder.edge(f"v{u}", f"v{v}", None if u % 2 else 0)
        result = get(name)(Instance(builder.build(), Cluster.uniform(3, bandwidth=0)))
        assert result.makespan == 8


def check_allowed(instance: Instance, placement: list[int]) -> None:
    graph, cluster, given = instance.graph, instance.cluster, instance.given_durations
    for v, d in enumerate(placement):
        assert graph.device_types[v] in (None, cluster.types[d])
        assert cluster.names[d] in graph.allowed_devices.get(v, cluster.names)
        assert given is None or given.possible[v, d]


def check_groups(instance: Instance, placement: list[int]) -> None:
    for group in instance.graph.colocation:
        assert len({placement[v] for v in group}) == 1
    for a, b in instance.graph.separation:
        assert placement[a] != placement[b]


def check_estimate(instance: Instance, placement: list[int]) -> None:
    """Return the memory of [L] §4.1 (3), summed in the most direct way."""
    graph = instance.graph
    used = [Fraction(0)] * instance.devices
    for v, d in enumerate(placement):
        inputs = set(graph.edge_tensor[graph.edge_target == v].tolist())
        outputs = np.flatnonzero(graph.tensor_vertex == v).tolist()
        used[d] += graph.memory[v] + sum(graph.tensor_size[t] for t in (*inputs, *outputs))
    for d, capacity in enumerate(instance.cluster.memory):
        assert capacity is None or used[d] <= capacity


def test_fifo_draws_ties_by_the_seed() -> None:
    builder = GraphBuilder()
    for v in range(6):
        builder.vertex(f"v{v}", 1)
    instance = Instance(builder.build(), Cluster.uniform(1))
    drawn = {
        tuple(result.schedule.start.fractions())
        for seed in range(5)
        if (result := get("fastest+fifo")(instance, seed=seed)).schedule is not None
    }
    assert len(drawn) == 5


def test_having_no_placement_is_a_separate_error() -> None:
    from optpart.strategies.partition.fastest import fastest

    with pytest.raises(NoPlacementError, match="no device was left for a"):
        fastest(pair(Model(memory="estimate"), memory=5), np.random.default_rng(0))


def test_same_result_whatever_the_hash_seed() -> None:
    """The order of sets of strings differs between processes."""
    program = (
        "from optpart import load\nfrom optpart.methods import registry\n"
        "instance = load('small-30-4-ccr1-t-g-tight-s23')\n"
        "for name in registry.pairs():\n"
        "    print(name, registry.get(name)(instance, seed=1).makespan)\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-P", "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == len(pairs())


class TestScope:
    """Methods declare which goals they support."""

    @pytest.fixture(autouse=True)
    def _clean(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("optpart.exact.minizinc.which", lambda command: command)

    @pytest.mark.parametrize("option", ["checkpoint", "pool"])
    @pytest.mark.parametrize("name", METHODS)
    def test_a_solver_has_the_options_that_it_declares(self, name: str, option: str) -> None:
        assert registry.takes(name, option) == (option in signature(get(name)).parameters)

    @pytest.mark.parametrize("name", ["heft", "hash+fifo"])
    def test_heuristics_take_no_goal(self, name: str) -> None:
        assert not registry.takes_goal(name)
        assert registry.supports(name, pair()) == ""
        reason = registry.supports(name, pair(), Goal("traffic"))
        assert reason == "can only minimise the makespan"

    def test_methods_of_your_own_declare_it_by_their_parameters(self) -> None:
        def with_goal(instance: Instance, *, goal: Goal | None = None, **_: object) -> Result:
            raise NotImplementedError

        register("mine")(all_on_first)
        register("mine-too")(with_goal)
        assert not registry.takes_goal("mine")
        assert registry.takes_goal("mine-too")

    @pytest.mark.parametrize(
        ("goal", "unable"),
        [
            (Goal(), {}),
            (Goal(placement={0: 1}), {}),
            (Goal("traffic"), {"milp": "milp does not minimise traffic"}),
            (Goal(makespan=Fraction(9)), {"search": "an order or a limit is not supported"}),
            (Goal(order=((0, 1),)), {"search": "an order or a limit is not supported"}),
            (
                Goal(order=(((0, 1), (0, 0)),)),
                {
                    "search": "an order or a limit is not supported",
                    "milp": "milp does not order transfers",
                },
            ),
        ],
    )
    def test_solvers_say_which_goals_they_refuse(self, goal: Goal, unable: dict[str, str]) -> None:
        for name in ("cpsat", "search", "milp", "minizinc", "enumerate"):
            assert registry.supports(name, pair(), goal) == unable.get(name, "")

    @pytest.mark.parametrize("communication", get_args(Communication))
    @pytest.mark.parametrize("memory", get_args(Memory))
    def test_solvers_refuse_exactly_what_supports_denies(
        self, communication: Communication, memory: Memory
    ) -> None:
        instance = pair(Model(communication=communication, memory=memory), memory=9)
        for name in ("milp", "enumerate"):
            refused = ""
            try:
                get(name)(instance, budget=Budget(5, 1))
            except UnsupportedError as error:
                refused = error.problem
            assert registry.supports(name, instance) == refused

    def test_large_graphs_are_not_enumerated(self) -> None:
        builder = GraphBuilder()
        for v in range(13):
            builder.vertex(str(v), 1)
        instance = Instance(builder.build(), Cluster.uniform(2))
        assert registry.supports("enumerate", instance) == "enumerate does not support 13 vertices"

    def test_a_missing_command_is_a_reason(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("optpart.exact.minizinc.which", lambda command: None)
        assert registry.supports("minizinc", pair()) == "the command is not installed"

    def test_supporting_lists_the_methods_that_can(self) -> None:
        assert registry.supporting(pair(), Goal("traffic")) == [
            "auto", "cpsat", "search", "hybrid", "minizinc", "enumerate",
        ]  # fmt: skip
        # Blocks that are free need not be contiguous.
        assert set(registry.supporting(pair())) == {*METHODS, *pairs()} - {"pipeline"}

    def test_unknown_names_and_invalid_goals_are_input_errors(self) -> None:
        with pytest.raises(InputError, match="no method 'nonsense'"):
            registry.supports("nonsense", pair())
        with pytest.raises(InputError, match="no method 'nonsense'"):
            registry.takes_goal("nonsense")
        with pytest.raises(InputError):
            registry.supports("cpsat", pair(), Goal(placement={0: 7}))

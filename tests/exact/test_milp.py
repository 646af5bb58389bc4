"""MILP proves what brute force finds, with either solver, and keeps what a goal gives."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from signalling import signal_with_the_job
from task_graphs import task_graph

from optpart import Cluster, Device, GraphBuilder, Instance, Model, UnsupportedError, retime
from optpart.base.errors import InputError
from optpart.exact import milp as module
from optpart.exact.milp_task import Solver, proven_ticks
from optpart.exact.process import shared
from optpart.methods.milp import milp
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Goal, Objective
from optpart.solution.metrics import traffic
from optpart.solution.result import Budget, Progress, Result, Status
from optpart.solution.termination import Termination
from optpart.solution.verifier import verify
from optpart.testing.brute_force import optimum
from optpart.testing.draw import random_instance

BUDGET = Budget(seconds=30, workers=1)


def solve(instance: Instance, goal: Goal | None = None, solver: Solver = "HiGHS") -> Result:
    """Solve, and check what holds for every result."""
    result = milp(instance, budget=BUDGET, goal=goal or Goal(), solver=solver)
    if result.schedule is not None:
        assert verify(instance, result.schedule) == []
        assert result.makespan == result.schedule.makespan(instance)
    return result


def check(instance: Instance, solver: Solver = "HiGHS") -> bool:
    """Assert that the solver agrees with brute force; say whether there is a schedule."""
    best, result = optimum(instance), solve(instance, solver=solver)
    if best is None:
        assert result.status is Status.INFEASIBLE
        assert result.schedule is None
        assert result.reason
    else:
        assert result.status is Status.OPTIMAL
        assert result.makespan == best.makespan
        assert result.lower_bound == best.makespan
        assert result.reason == ""
    return best is not None


def independent(n: int, devices: int, seed: int = 0) -> Instance:
    """Vertices without edges whose run times differ by device: slow to close."""
    rng = np.random.default_rng(seed)
    builder = GraphBuilder()
    for v in range(n):
        builder.vertex(f"v{v}")
    rows = rng.integers(50, 100, size=(n, devices)).tolist()
    return Instance(builder.build(), Cluster.uniform(devices), durations=rows)


class TestAgainstBruteForce:
    @pytest.mark.parametrize("memory", ["none", "estimate"])
    @pytest.mark.parametrize("rational", [False, True])
    def test_everything_at_once(self, memory: Memory, rational: bool) -> None:
        rng = np.random.default_rng(11)
        draws = [random_instance(rng, 6, 3, memory=memory, rational=rational) for _ in range(8)]
        assert 4 <= sum(map(check, draws)) <= 8

    def test_alike_devices(self) -> None:
        rng = np.random.default_rng(3)
        for _ in range(8):
            graph = random_instance(
                rng, 6, 3, types=False, allowed=False, durations=False, measured=False, far=False
            ).graph
            check(Instance(graph, Cluster.uniform(3, bandwidth=int(rng.integers(1, 5)))))

    def test_cbc_agrees(self) -> None:
        require_cbc()
        rng = np.random.default_rng(12)
        draws = [random_instance(rng, 6, 3, memory="estimate") for _ in range(20)]
        assert 5 <= sum(check(instance, "CBC") for instance in draws) < 20

    def test_cbc_words_infeasibility_in_more_than_one_way(self) -> None:
        """Here it answers "Integer infeasible"."""
        require_cbc()
        builder = GraphBuilder().vertex("v0", 2, device_type="CPU").vertex("v1", "2/3", memory=1)
        builder.vertex("v2", memory=1, outputs=["3/2"]).vertex("v3", "4/3", memory=1)
        builder.vertex("v4", "2/3", outputs=[0, 0]).vertex("v5", 8, memory=4, outputs=[3, 3])
        builder.vertex("v6", "8/3", memory="4/3", device_type="CPU", devices=["d1", "d2"])
        for edge in ("v4 v1 1", "v4 v5 1", "v4 v6 0", "v4 v0 0", "v4 v3 1", "v5 v2 1", "v5 v6 0",
                     "v5 v0 1", "v5 v3 1", "v2 v6 0", "v2 v0 0"):  # fmt: skip
            source, target, output = edge.split()
            builder.edge(source, target, int(output))
        for source, target in (
            ("v4", "v6"),
            ("v4", "v0"),
            ("v5", "v2"),
            ("v5", "v3"),
            ("v6", "v3"),
        ):
            builder.edge(source, target, None)
        cluster = Cluster.of(
            [
                Device("d0", "3/2", "GPU", "475/24"),
                Device("d1", 1, "CPU", "475/24"),
                Device("d2", "3/2", "CPU", "95/12"),
            ],
            [[1, 0, 1], [None, None, 2], ["1/2", "1/3", "4/3"]],
            [[0, 0, 1], [0, 0, "1/3"], [0, 0, 0]],
        )
        assert not check(Instance(builder.build(), cluster, Model(memory="estimate")), "CBC")


def require_cbc() -> None:
    try:
        milp(independent(6, 2), budget=BUDGET, solver="CBC")
    except UnsupportedError as error:
        pytest.skip(str(error))


class TestGolden:
    @pytest.mark.parametrize(("devices", "makespan"), [(2, 17), (3, 16)])
    def test_kwok_ahmad_nine_nodes(self, classic: Any, devices: int, makespan: int) -> None:
        data = classic["kwok_ahmad_9"]
        result = solve(task_graph(data["w"], data["edges"], devices))
        assert result.status is Status.OPTIMAL
        assert result.makespan == makespan

    def test_graham_1969(self, classic: Any) -> None:
        data = classic["graham1969"]
        result = solve(task_graph(data["w"], data["edges"], 3))
        assert result.status is Status.OPTIMAL
        assert result.makespan == 12

    def test_the_heft_example(self, classic: Any) -> None:
        data = classic["heft2002"]
        graph = task_graph([0] * len(data["cost"]), data["edges"], 3).graph
        cluster = Cluster.uniform(3, bandwidth=1)
        result = solve(Instance(graph, cluster, durations=data["cost"]))
        assert result.status is Status.OPTIMAL
        assert result.makespan == 73


class TestGoal:
    def random(self, seed: int) -> Instance:
        rng = np.random.default_rng(seed)
        return random_instance(rng, 5, 3, types=False, allowed=False, separation=False)

    @pytest.mark.parametrize("seed", range(8))
    def test_a_given_placement(self, seed: int) -> None:
        """The same as an instance in which these vertices may go nowhere else."""
        instance = self.random(seed)
        goal = Goal(placement={v: v % instance.devices for v in range(0, instance.vertices, 2)})
        if goal.contradiction(instance):
            result = solve(instance, goal)
            assert result.status is Status.INFEASIBLE
            return
        best, result = optimum(goal.narrowed(instance)), solve(instance, goal)
        assert result.status is (Status.OPTIMAL if best else Status.INFEASIBLE)
        assert result.makespan == (best.makespan if best else None)

    @pytest.mark.parametrize("seed", range(8))
    def test_a_given_order_is_one_of_two(self, seed: int) -> None:
        """Of two vertices one is first, or they are apart; the better of both is the optimum."""
        instance = self.random(seed)
        best = optimum(instance)
        if best is None or instance.vertices < 2:
            pytest.skip("no two vertices, or no schedule")
        results = [solve(instance, Goal(order=(pair,))) for pair in ((0, 1), (1, 0))]
        found = [result.makespan for result in results if result.makespan is not None]
        assert min(found) == best.makespan
        for result, (a, b) in zip(results, ((0, 1), (1, 0)), strict=True):
            if result.schedule is None:
                assert result.status is Status.INFEASIBLE
            elif result.schedule.placement[a] == result.schedule.placement[b]:
                assert result.schedule.end(instance, a) <= result.schedule.start[b]

    def test_an_order_against_the_edges(self) -> None:
        graph = GraphBuilder().vertex("a", 2).vertex("b", 3).edge("a", "b", None).build()
        against = Goal(order=((1, 0),))
        assert solve(Instance(graph, Cluster.uniform(2)), against).makespan == 5
        result = solve(Instance(graph, Cluster.uniform(1)), against)
        assert result.status is Status.INFEASIBLE
        assert "the order of 1 pairs" in result.reason

    @pytest.mark.parametrize("seed", range(8))
    def test_a_limit_of_traffic(self, seed: int) -> None:
        """All placements that keep it, tried out."""
        instance = self.random(seed)
        limit = instance.graph.tensor_size.sum() / 4
        within = []
        for devices in product(range(instance.devices), repeat=instance.vertices):
            placed = Goal(placement=dict(enumerate(devices)))
            if traffic(instance, np.array(devices, dtype=np.int32)) > limit:
                continue
            if placed.contradiction(instance):
                continue
            best = optimum(placed.narrowed(instance))
            within += [best.makespan] if best else []
        result = solve(instance, Goal(traffic=limit))
        assert result.makespan == min(within, default=None)
        assert result.status is (Status.OPTIMAL if within else Status.INFEASIBLE)

    def test_a_limit_of_the_makespan_decides(self) -> None:
        instance = independent(6, 2)
        best = optimum(instance)
        assert best is not None
        yes = solve(instance, Goal(makespan=best.makespan))
        assert yes.makespan == best.makespan
        no = solve(instance, Goal(makespan=best.makespan - Fraction(1, 2)))
        assert no.status is Status.INFEASIBLE

    @pytest.mark.parametrize("objective", ["traffic", "lexicographic"])
    def test_other_objectives_are_unsupported(self, objective: Objective) -> None:
        with pytest.raises(UnsupportedError, match="use makespan"):
            milp(independent(3, 2), goal=Goal(objective))

    def test_orders_of_transfers_are_unsupported(self) -> None:
        graph = GraphBuilder().vertex("a", outputs=[1, 1]).vertex("b").edge("a", "b").build()
        instance = Instance(graph, Cluster.uniform(2))
        with pytest.raises(UnsupportedError, match="does not order transfers"):
            milp(instance, goal=Goal(order=(((0, 0), (1, 1)),)))

    def test_unknown_vertices_and_devices(self) -> None:
        with pytest.raises(InputError, match="no vertex 9"):
            milp(independent(3, 2), goal=Goal(placement={9: 0}))


class TestScope:
    @pytest.mark.parametrize("communication", ["sendrecv", "link", "port"])
    def test_other_communication_is_unsupported(self, communication: Communication) -> None:
        self.refused(Model(communication))

    @pytest.mark.parametrize("memory", ["edges", "refcount"])
    def test_other_memory_is_unsupported(self, memory: Memory) -> None:
        self.refused(Model(memory=memory))

    def refused(self, model: Model) -> None:
        graph = GraphBuilder().vertex("a", 1).build()
        with pytest.raises(UnsupportedError, match="use delay with none or estimate"):
            milp(Instance(graph, Cluster.uniform(2), model))


class TestBounds:
    def test_a_margin_of_a_quarter_and_the_tolerances(self) -> None:
        assert proven_ticks(17.0, starts=10, rows=100, horizon=18) == 17
        assert proven_ticks(16.75, starts=10, rows=100, horizon=18) == 17
        assert proven_ticks(16.3, starts=10, rows=100, horizon=18) == 17
        assert proven_ticks(16.2, starts=10, rows=100, horizon=18) == 16

    def test_wide_models_prove_less(self) -> None:
        """A million ticks and ten thousand rows: 30 ticks are in doubt."""
        assert proven_ticks(900_000.0, starts=100, rows=10_000, horizon=10**6) == 899_970

    @pytest.mark.parametrize("bound", [float("inf"), float("-inf"), float("nan")])
    def test_a_bound_that_is_not_finite_proves_nothing(self, bound: float) -> None:
        assert proven_ticks(bound, 1, 1, 1) is None

    def test_run_times_of_any_denominator(self) -> None:
        """Too many ticks for an exact grid; the bound of a rounded one is below the optimum."""
        rng = np.random.default_rng(2)
        for _ in range(5):
            rows = [
                [Fraction(int(rng.integers(1, 10**9)), int(rng.integers(1, 10**9))) for _ in "123"]
                for _ in range(5)
            ]
            builder = GraphBuilder()
            for v in range(5):
                builder.vertex(f"v{v}")
            self.brackets(Instance(builder.build(), Cluster.uniform(3), durations=rows))

    def test_an_exact_grid_too_fine_for_floating_point(self) -> None:
        rng = np.random.default_rng(5)
        for _ in range(5):
            builder = GraphBuilder()
            for v in range(6):
                builder.vertex(f"v{v}", int(rng.integers(10**7, 10**8)))
            self.brackets(Instance(builder.build(), Cluster.uniform(2)))

    def brackets(self, instance: Instance) -> None:
        best, result = optimum(instance), solve(instance)
        assert best is not None
        assert result.makespan is not None
        assert result.lower_bound is not None
        assert result.lower_bound <= best.makespan <= result.makespan
        assert result.makespan - result.lower_bound < best.makespan / 10**3

    def test_on_coarse_grids_nothing_wrong_is_claimed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A few ticks to the makespan, so that rounding decides much."""
        monkeypatch.setattr(module, "HORIZON", 0)
        rng = np.random.default_rng(3)
        for draw in range(24):
            monkeypatch.setattr(module, "_ROUNDED", 2 ** int(rng.integers(2, 8)))
            instance = random_instance(rng, 6, 3, memory="estimate" if draw % 2 else "none")
            best, result = optimum(instance), solve(instance)
            if best is None:
                assert result.status is Status.INFEASIBLE
                continue
            assert result.makespan is not None
            assert result.lower_bound is not None
            assert result.lower_bound <= best.makespan <= result.makespan


class TestRuns:
    def test_a_given_start_is_used(self) -> None:
        instance = independent(5, 2)
        best = optimum(instance)
        assert best is not None
        start = retime(instance, best.placement, best.order)
        assert milp(instance, budget=Budget(0, 1), start=start).makespan == best.makespan

    @pytest.mark.parametrize("solver", ["HiGHS", "CBC"])
    def test_the_time_limit_holds(self, solver: Solver) -> None:
        if solver == "CBC":
            require_cbc()
        result = milp(HARD, budget=Budget(1, 1), solver=solver)
        assert result.status is Status.FEASIBLE
        # One that goes on past its limit is ended from outside, which counts as a failure.
        assert result.termination is Termination.TIME_LIMIT

    def test_steps_improve(self) -> None:
        seen: list[Progress] = []
        result = milp(HARD, budget=Budget(1, 1), watch=seen.append)
        assert tuple(step for step in seen if step in result.trace) == result.trace
        assert seen[-1].objective == result.makespan
        assert seen[-1].bound == result.lower_bound
        bounds = [step.bound for step in seen if step.bound is not None]
        assert bounds == sorted(bounds)

    def test_an_interrupt_returns_the_best_so_far(self) -> None:
        def interrupt(step: Progress) -> None:
            if step.bound:
                raise KeyboardInterrupt

        result = milp(HARD, budget=BUDGET, watch=interrupt)
        assert result.status is Status.FEASIBLE
        assert result.termination is Termination.INTERRUPTED
        assert check(independent(5, 2))

    def test_a_death_of_the_solver_costs_only_that_solve(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        signal_with_the_job(monkeypatch, signal.SIGKILL)
        result = milp(HARD, budget=Budget(600, 1))
        assert result.status is Status.FEASIBLE
        assert result.reason == "the solver died (signal 9)"
        assert result.termination is Termination.FAILED
        assert check(independent(5, 2))

    def test_the_callers_process_stays_free_of_its_solvers(self) -> None:
        """HiGHS, which PuLP loads, and OR-Tools cannot be loaded together."""
        code = "import sys, optpart.exact.milp; print({'pulp', 'highspy'} & set(sys.modules))"
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == "set()"


#: Nothing that closes within seconds.
HARD = independent(60, 5)


@pytest.fixture(scope="module", autouse=True)
def _stopped() -> Iterator[None]:
    yield
    shared(module.WORKER).stop()

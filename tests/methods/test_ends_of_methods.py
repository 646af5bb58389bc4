"""Every method says why it ended, in each of the ways in which it can end."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from shutil import which
from typing import Any

import pytest

from optpart import Budget, Cluster, Device, GraphBuilder, Instance, Model, Result, Status, conclude
from optpart.exact import milp as milp_module
from optpart.exact import minizinc as minizinc_module
from optpart.exact import solve as solve_module
from optpart.exact.packing import Packed
from optpart.methods import registry
from optpart.methods.pareto import pareto
from optpart.methods.solve import ask
from optpart.problem.model import Communication
from optpart.solution.goal import Goal
from optpart.solution.job import Job
from optpart.solution.result import Progress
from optpart.solution.termination import Termination
from optpart.study.run import Run, execute
from optpart.testing.draw import draw_instance

needs_minizinc = pytest.mark.skipif(which("minizinc") is None, reason="MiniZinc is not installed")
EXACT = ["auto", "cpsat", "milp", "enumerate", pytest.param("minizinc", marks=needs_minizinc)]
SEARCHES = ["search", "hybrid"]

TEN = Budget(10, 1)


def pair(ops: int = 3, **options: Any) -> Instance:
    """Two vertices that fit on either of two devices."""
    graph = GraphBuilder().vertex("a", ops).vertex("b", ops).build()
    return Instance(graph, Cluster.uniform(2), **options)


def too_large() -> Instance:
    graph = GraphBuilder().vertex("a", 1, memory=5).build()
    return Instance(graph, Cluster.of([Device("d", memory=4)]), Model(memory="estimate"))


def hard(communication: Communication = "delay", vertices: int = 25) -> Instance:
    return draw_instance(11, communication, "none", vertices=vertices, devices=3)


def hard_for(method: str) -> Instance:
    return hard(vertices=12 if method == "enumerate" else 25)


def solved(method: str, instance: Instance, budget: Budget = TEN, **options: Any) -> Result:
    run: Callable[..., Result] = registry.get(method)
    return run(instance, budget=budget, **options)


class TestProven:
    @pytest.mark.parametrize("method", [*EXACT, *SEARCHES])
    @pytest.mark.parametrize(
        ("make", "status"), [(pair, Status.OPTIMAL), (too_large, Status.INFEASIBLE)]
    )
    def test_by_the_method(self, method: str, make: Callable[[], Instance], status: Status) -> None:
        result = solved(method, make())
        assert (result.status, result.termination) == (status, Termination.PROVEN)

    def test_by_the_bounds_that_a_heuristic_is_given(self) -> None:
        assert registry.get("heft")(pair()).termination is Termination.COMPLETED
        assert ask(pair(), "heft").answer().termination is Termination.PROVEN
        assert ask(too_large(), "heft").answer().termination is Termination.PROVEN

    def test_on_the_whole_front(self) -> None:
        assert [result.termination for result in pareto(Job(pair(), budget=TEN))] == [
            Termination.PROVEN
        ]


class TestCompleted:
    @pytest.mark.parametrize("method", ["heft", "hash+pct"])
    @pytest.mark.parametrize("make", [hard, too_large])
    def test_a_heuristic_runs_to_its_end(self, method: str, make: Callable[[], Instance]) -> None:
        assert registry.get(method)(make()).termination is Termination.COMPLETED

    @pytest.mark.parametrize("method", ["auto", "cpsat", "milp"])
    def test_a_schedule_answers_a_decision_problem(self, method: str) -> None:
        result = solved(method, pair(), goal=Goal(makespan=Fraction(6)))
        assert (result.status, result.termination) == (Status.FEASIBLE, Termination.COMPLETED)


class TestLimits:
    @pytest.mark.parametrize("method", [*EXACT, *SEARCHES])
    def test_time(self, method: str) -> None:
        result = solved(method, hard_for(method), Budget(0, 1))
        assert not result.status.proven
        assert result.termination is Termination.TIME_LIMIT

    @pytest.mark.parametrize("method", SEARCHES)
    def test_moves(self, method: str) -> None:
        result = solved(method, hard(), Budget(600, 1, deterministic=1))
        assert (result.termination, result.reason) == (Termination.MOVE_LIMIT, "move limit")

    @pytest.mark.parametrize("method", SEARCHES)
    def test_time_where_moves_are_counted(self, method: str) -> None:
        result = solved(method, hard(), Budget(0.3, 1, deterministic=10**6))
        assert (result.termination, result.reason) == (Termination.TIME_LIMIT, "time limit")

    def test_deterministic_time(self) -> None:
        result = solved("enumerate", hard(vertices=12), Budget(60, 1, deterministic=0.001))
        assert result.termination is Termination.TIME_LIMIT


class TestInterrupted:
    @pytest.mark.parametrize("method", [*EXACT, *SEARCHES])
    def test_the_best_so_far_stays(self, method: str) -> None:
        def interrupt(step: Progress) -> None:
            if step.objective is not None:
                raise KeyboardInterrupt

        result = solved(method, hard_for(method), watch=interrupt)
        assert result.schedule is not None
        assert result.termination is Termination.INTERRUPTED

    def test_also_while_a_search_prepares_for_cpsat(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What the search remarks does not hide that it was interrupted."""

        def improve(instance: Instance, budget: Budget, seed: int, start: object) -> Result:
            del budget, seed, start
            ended = Termination.INTERRUPTED
            return conclude(instance, "search", None, termination=ended, reason="interrupted; so")

        monkeypatch.setattr(solve_module, "_PROVABLE", 0)
        start = registry.get("heft")(pair()).schedule
        result = solve_module.solve(pair(), budget=TEN, start=start, improve=improve)
        assert result.termination is Termination.INTERRUPTED

    def test_also_while_cpsat_looks_for_the_first_placement_of_a_search(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from optpart.search import search as search_module

        def cut_short(instance: Instance, **_: object) -> Result:
            return conclude(instance, "cpsat", None, termination=Termination.INTERRUPTED)

        def nothing(*_: object) -> None:
            return None

        monkeypatch.setattr(solve_module, "solve", cut_short)
        monkeypatch.setattr(search_module, "repaired", nothing)
        monkeypatch.setattr(search_module, "pack", lambda *_: Packed(None, ""))
        result = search_module.run_search(
            "search", Job(hard(), budget=TEN), starts=lambda *_, **__: iter(())
        )
        assert (result.schedule, result.termination) == (None, Termination.INTERRUPTED)

    def test_a_front_ends_there_even_if_the_point_is_proven(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def cut_short(job: Job, watch: object) -> Result:
            one = registry.get("single+fifo")(job.instance)
            ended = Termination.INTERRUPTED
            return conclude(
                job.instance,
                "cpsat",
                one.schedule,
                bound=one.values,
                termination=ended,
                goal=job.goal,
            )

        monkeypatch.setattr("optpart.methods.pareto.cpsat", cut_short)
        monkeypatch.setattr("optpart.methods.pareto.confirmed", lambda result, goal: result)
        assert len(pareto(Job(hard(), budget=TEN))) == 1


class TestRounding:
    """That of CP-SAT is tested where that is."""

    SLOW = Cluster.of([Device(f"d{d}", speed) for d, speed in enumerate((97, 89, 83, 79))])

    def test_leaves_a_gap(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(milp_module, "HORIZON", 0)
        monkeypatch.setattr(milp_module, "_ROUNDED", 2**7)
        builder = GraphBuilder()
        for v, ops in enumerate((101, 103, 107, 109, 113)):
            builder.vertex(f"v{v}", ops)
        result = solved("milp", Instance(builder.build(), self.SLOW))
        assert (result.status, result.termination) == (Status.FEASIBLE, Termination.ROUNDING)


class TestUnsupported:
    @pytest.mark.parametrize(
        ("method", "module", "limit"),
        [
            ("cpsat", solve_module, "_MAX_TERMS"),
            ("milp", milp_module, "_MAX_ROWS"),
            pytest.param("minizinc", minizinc_module, "_MAX_TERMS", marks=needs_minizinc),
        ],
    )
    def test_too_large_a_model(
        self, method: str, module: Any, limit: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, limit, 1)
        result = solved(method, hard())
        assert not result.status.proven
        assert result.termination is Termination.UNSUPPORTED
        assert "too large" in result.reason

    def test_a_model_in_a_sweep(self) -> None:
        result = execute(Run(hard("port"), "milp", 0, TEN))
        assert (result.termination, result.refused) == (Termination.UNSUPPORTED, False)


class TestFailed:
    """What a solver's death leaves is tested where the solvers are."""

    def test_a_method_of_the_users_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(instance: Instance, **_: object) -> Result:
            raise ZeroDivisionError(instance.name)

        monkeypatch.setattr(registry, "get", lambda _: broken)
        result = execute(Run(pair(), "broken", 0, TEN))
        assert (result.termination, result.refused) == (Termination.FAILED, True)

    def test_a_method_that_returns_something_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "get", lambda _: lambda *_, **__: 7)
        result = execute(Run(pair(), "seven", 0, TEN))
        assert (result.termination, result.refused) == (Termination.FAILED, True)

    def test_a_proof_that_is_contradicted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def infeasible(instance: Instance, **_: object) -> Result:
            return conclude(instance, "cpsat", None, infeasible="no room")

        monkeypatch.setattr(registry, "get", lambda _: infeasible)
        result = execute(Run(pair(), "cpsat", 0, TEN))
        assert (result.status, result.termination) == (Status.UNKNOWN, Termination.FAILED)

"""From names to proven strategies, and back from their files."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from optpart.applications.training import strategy_file
from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.comparison import Bounded, bounded, check_bound, compare
from optpart.applications.training.compiled import Options
from optpart.applications.training.graph import Line, TrainingGraph
from optpart.applications.training.makers import MAKERS
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.question import Question, ask, check, ordered, solve
from optpart.base.errors import ContradictionError, InputError
from optpart.solution.result import Budget
from optpart.solution.verifier import verify
from optpart.testing.chains import chain, cluster
from optpart.testing.training import layer_chain

GRAPH = chain(3, ("a", "b"))
BRIEF = Budget(1)


def question(
    graph: TrainingGraph = GRAPH, where: TrainingCluster | None = None, **options: object
) -> Question:
    where = where or cluster(("a", "b"), bandwidth=10)
    return ask(graph, where, 12, groups=3, options=Options(**options))  # type: ignore[arg-type]


class TestCompare:
    def test_every_maker_has_a_row_and_the_best_is_the_shortest(self) -> None:
        found = compare(question().problem, ("ev-ar", "single", "round-robin"), budget=BRIEF)
        assert [name for name, _ in found.rows] == ["ev-ar", "single", "round-robin"]
        assert found.best is not None
        assert found.best[1].makespan == min(made.makespan or 0 for _, made in found.rows)
        assert found.bound.value is not None
        assert found.bound.value <= (found.best[1].makespan or 0)

    def test_out_of_memory_is_never_feasible(self) -> None:
        # 100 bytes of weights with two slots are 300 bytes a layer.
        tight = cluster(("a", "b"), bandwidth=10, memory=(1000, 1000))
        found = compare(question(where=tight).problem, ("single", "blocks"), budget=BRIEF)
        (_, single), (_, blocks) = found.rows
        assert (single.feasible, single.makespan) == (False, None)
        assert single.reason.startswith("out of memory: ")
        assert blocks.feasible
        assert found.best is not None
        assert found.best[0] == "blocks"

    def test_parameters_that_fit_nowhere_are_named(self) -> None:
        tiny = cluster(("a", "b"), memory=(500, 500))
        with pytest.raises(InputError, match=r"parameters w2, w1.* need .* but all devices have"):
            compare(question(where=cluster(("a", "b"), memory=(400, 400))).problem, budget=BRIEF)
        with pytest.raises(InputError, match="parameters w0: need 600 bytes"):
            compare(question(chain(1, ("a", "b"), weights=200), tiny).problem, budget=BRIEF)

    def test_an_unknown_maker(self) -> None:
        with pytest.raises(InputError, match="method: unknown 'ev'; choose one of ev-ps, ev-ar"):
            compare(question().problem, ("ev",))

    def test_a_bound_above_a_verified_strategy_ends_everything(self) -> None:
        with pytest.raises(ContradictionError, match="a bound of 5, but x has a verified one of 4"):
            check_bound(Bounded(Fraction(5)), Fraction(4), "x")
        with pytest.raises(ContradictionError, match="no strategy, but x has"):
            check_bound(Bounded(None, infeasible=True), Fraction(4), "x")


class TestBound:
    def test_it_counts_the_actions_of_strategies_besides(self) -> None:
        problem = question().problem
        made = solve(question(), "cp-ar", budget=BRIEF).made
        assert made.strategy is not None
        assert bounded(problem).actions == bounded(problem, besides=[made.strategy]).actions

    def test_options_without_a_bound_are_said(self) -> None:
        found = bounded(question(collectives="ring").problem)
        assert found.value == found.whatever
        assert not found.infeasible
        assert "collectives" in found.reason

    def test_the_bound_of_all_strategies_is_not_above_that_of_some(self) -> None:
        found = bounded(question().problem)
        assert found.value is not None
        assert found.whatever is not None
        assert 0 < found.whatever <= found.value

    def test_memory_that_is_left_out_does_not_bound(self) -> None:
        tight = cluster(("a", "b"), bandwidth=10, memory=(400, 600))
        free = bounded(question(where=tight, memory="none").problem)
        assert free.value == bounded(question().problem).value


class TestSolve:
    def test_a_file_is_verified_by_itself(self, tmp_path: Path) -> None:
        asked = question()
        solved = solve(asked, "cp-ps", budget=BRIEF)
        path = tmp_path / "s.json"
        solved.save(path)
        assert solved.order == ()
        found = check(path, GRAPH, asked.problem.cluster)
        assert found.faults == ()
        assert found.schedule.makespan(found.compiled.instance) == solved.made.makespan
        assert found.file.lower_bound == solved.bound.value

    def test_exact_is_at_least_as_good_as_the_rest_and_closes_the_gap(self) -> None:
        asked = ask(chain(2, ("a", "b")), cluster(("a", "b"), bandwidth=10), 12, groups=2)
        best = solve(asked, "exact", budget=Budget(10))
        others = compare(asked.problem, budget=BRIEF)
        assert best.gap == 0
        assert others.best is not None
        assert (best.made.makespan or 0) <= (others.best[1].makespan or 0)

    @pytest.mark.parametrize("tick", [None, Fraction(1, 3), Fraction(5, 2), Fraction(3)])
    def test_no_bound_is_above_a_verified_strategy_whatever_the_tick(
        self, tick: Fraction | None
    ) -> None:
        for seed in range(4):
            rng = np.random.default_rng(seed)
            lines = [[Line(Fraction(), Fraction(int(x))) for x in rng.integers(1, 5, size=2)]]
            graph = layer_chain(lines * (1 + seed % 2), kinds=("a", "b"))
            where = cluster(("a", "b"), bandwidth=1000)
            asked = ask(
                graph, where, int(rng.integers(6, 12)), groups=1, options=Options(tick=tick)
            )
            for method in ("exact", "cp-ar"):
                found = solve(asked, method, budget=BRIEF)  # would end in a contradiction
                assert found.made.compiled is not None
                assert found.made.schedule is not None
                assert not verify(found.made.compiled.instance, found.made.schedule)
                assert found.bound.whatever is not None
                assert found.bound.whatever <= (found.bound.value or 0)
                assert (found.bound.value or 0) <= (found.made.makespan or 0)

    def test_an_order_by_another_method_is_kept_in_the_file(self, tmp_path: Path) -> None:
        asked = question()
        rank = solve(asked, "round-robin", budget=BRIEF)
        found = solve(asked, "round-robin", order="cpsat", budget=BRIEF)
        assert (found.made.makespan or 0) <= (rank.made.makespan or 0)
        assert found.method.startswith("round-robin, order by ")
        found.save(tmp_path / "s.json")
        assert check(tmp_path / "s.json", GRAPH, asked.problem.cluster).faults == ()

    def test_an_unknown_order_is_refused(self) -> None:
        with pytest.raises(InputError, match="no method 'nonsense'"):
            solve(question(), "ev-ar", order="nonsense", budget=BRIEF)

    def test_what_is_not_feasible_is_not_written(self, tmp_path: Path) -> None:
        tight = cluster(("a", "b"), bandwidth=10, memory=(800, 800))
        found = solve(question(where=tight), "single", budget=BRIEF)
        assert found.made.makespan is None
        assert found.gap is None


class TestCheck:
    def claims(self, tmp_path: Path, **claims: object) -> tuple[str, ...]:
        asked = question()
        path = tmp_path / "s.json"
        solve(asked, "ev-ar", budget=BRIEF).save(path)
        path.write_text(json.dumps(json.loads(path.read_text()) | claims))
        return check(path, GRAPH, asked.problem.cluster).faults

    def test_claims_that_do_not_hold(self, tmp_path: Path) -> None:
        (fault,) = self.claims(tmp_path, makespan=1, lower_bound=None)
        assert fault.startswith("makespan is ")
        assert fault.endswith(", not 1")
        (fault,) = self.claims(tmp_path, lower_bound=10**9)
        assert fault.startswith("lower_bound 1000000000 is above the makespan ")

    def test_memory_that_does_not_suffice(self, tmp_path: Path) -> None:
        asked = question()
        path = tmp_path / "s.json"
        solve(asked, "single", budget=BRIEF).save(path)
        tight = cluster(("a", "b"), bandwidth=10, memory=(800, 800))
        (fault, *_) = check(path, GRAPH, tight).faults
        assert fault.startswith("memory: ")

    def test_a_missing_link_under_data_parallelism(self, tmp_path: Path) -> None:
        asked = question()
        path = tmp_path / "s.json"
        solve(asked, "ev-ar", budget=BRIEF).save(path)
        with pytest.raises(InputError, match=r"s\.json: allreduce over a0, b1: no link"):
            check(path, GRAPH, cluster(("a", "b"), bandwidth=0))

    def test_a_file_that_names_neither_model_nor_cluster(self, tmp_path: Path) -> None:
        asked = question()
        path = tmp_path / "s.json"
        solve(asked, "ev-ar", budget=BRIEF).save(path)
        with pytest.raises(InputError, match=r"s\.json: model: is not named; give the model with"):
            check(path)
        with pytest.raises(InputError, match="the strategy of another model than 'chain'"):
            check(path, chain(3, ("a", "b"), weights=7), asked.problem.cluster)
        assert strategy_file.read_document(path)["batch"] == 12


def test_the_best_order_is_proven_and_verified() -> None:
    graph = chain(1, activation=1, weights=60)
    problem = StrategyProblem(graph, cluster(["a", "a"]), 6)
    made = MAKERS["ev-ps"](problem)
    best = ordered(made, methods=("cpsat",), budget=Budget(60, 1))
    assert made.makespan is not None
    assert made.compiled is not None
    assert best.bound <= best.makespan <= made.makespan
    assert best.optimal
    assert not verify(made.compiled.instance, best.schedule)
    assert (best.by == "rank") == (best.makespan == made.makespan)


def test_a_strategy_out_of_memory_has_no_order() -> None:
    problem = StrategyProblem(chain(2), cluster(["a", "a"], memory=[650] * 2), 6)
    made = MAKERS["single"](problem)
    with pytest.raises(InputError, match="memory"):
        ordered(made)


def test_a_spent_budget_runs_no_method() -> None:
    made = MAKERS["single"](StrategyProblem(chain(2), cluster(["a", "a"]), 6))
    best = ordered(made, budget=Budget(0))
    assert (best.by, best.makespan, best.bound) == ("rank", made.makespan, 0)

"""What does not fit into the memory allowed is refused before it begins, or left out."""

from dataclasses import replace

import numpy as np
import pytest

import optpart
from optpart import Instance
from optpart.base.errors import InputError, UnsupportedError
from optpart.exact import process
from optpart.exact.messages import Limits
from optpart.exact.process import SolverProcess, SolverTooLargeError
from optpart.exact.series import block_path
from optpart.exact.solve import WORKER, model_terms
from optpart.interop.generate.cluster import drawn_cluster
from optpart.interop.generate.layered import layered
from optpart.methods import registry
from optpart.methods.cpsat import cpsat
from optpart.methods.fitting import require_memory, unfit_bounds
from optpart.methods.milp import milp
from optpart.problem import footprint
from optpart.problem.model import Model
from optpart.search.evaluator import Evaluator
from optpart.search.layout import layout_of
from optpart.search.neighbourhood import Exact
from optpart.search.searcher_process import SearcherProcess
from optpart.solution.goal import Goal
from optpart.solution.result import Budget
from optpart.solution.termination import Termination
from optpart.testing.draw import draw_instance
from optpart.testing.modules import draw_modules


@pytest.fixture(scope="module")
def instance() -> Instance:
    """An instance of 60 vertices on six devices."""
    graph = layered(1, levels=6, width=(5, 20), vertices=60, level_edges=80, random_edges=20)
    return Instance(graph, drawn_cluster(1, 6), name="drawn")


def between(instance: Instance) -> int:
    """Return a ceiling that suffices for a heuristic but not for a solver's model."""
    return footprint.of_process(instance) + 2**20


@pytest.mark.parametrize("method", ["cpsat", "milp", "search", "hybrid"])
def test_a_method_is_refused_before_it_begins_with_what_fits_instead(instance, method) -> None:
    with pytest.raises(UnsupportedError, match=f"{method} would need .* use auto, which fits"):
        optpart.solve(instance, method, memory=between(instance))


def test_nothing_is_named_instead_where_nothing_fits(instance) -> None:
    with pytest.raises(UnsupportedError, match=r"; allow more$"):
        optpart.solve(instance, "heft", memory="2 MiB")


@pytest.mark.parametrize("solver", [cpsat, milp])
def test_a_solver_builds_no_model_that_does_not_fit(instance, solver, monkeypatch) -> None:
    monkeypatch.setattr(SolverProcess, "solve", lambda *_: pytest.fail("a model was built"))
    result = solver(instance, budget=Budget(600, 1, memory=between(instance)))
    assert result.schedule is not None
    assert result.termination is Termination.MEMORY_LIMIT
    assert "would need about" in result.reason


def test_a_fixed_placement_needs_less(instance) -> None:
    first = dict.fromkeys(instance.graph.names, "d0")
    placed = Goal.of(instance, placement=first).narrowed(instance)
    assert model_terms(placed) < model_terms(instance)


def test_bounds_that_do_not_fit_are_left_out_with_a_reason(instance, caplog) -> None:
    memory = between(instance)
    assert set(unfit_bounds(instance, Budget(memory=memory))) == {"crossings", "branching", "cpsat"}
    names = {bound.name for bound in optpart.bounds(instance, seconds=0, memory=memory)}
    assert not names & {"crossings", "branching", "cpsat"}
    assert "cpsat is left out: it would need about" in caplog.text


def test_a_bound_whose_model_would_not_be_built_leaves_its_time_to_others(
    instance, monkeypatch, caplog
) -> None:
    monkeypatch.setattr("optpart.exact.solve._MAX_TERMS", model_terms(instance))
    assert unfit_bounds(instance, Budget(memory=2**40)) == {}
    monkeypatch.setattr("optpart.exact.solve._MAX_TERMS", model_terms(instance) - 1)
    assert set(unfit_bounds(instance, Budget(memory=2**40))) == {"cpsat"}
    found = optpart.bounds(instance, seconds=0, memory=2**40)
    assert "cpsat" not in {bound.name for bound in found}
    assert "cpsat is left out: it has too large a model" in caplog.text


def test_a_budget_takes_bytes_and_texts_with_a_unit() -> None:
    assert Budget(memory="1 GiB") == Budget(memory=2**30)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        Budget(memory=-1)


def test_enough_memory_changes_nothing(instance) -> None:
    for method in ("auto", "cpsat", "milp", "hybrid", "heft"):
        require_memory(instance, method, Goal(), Budget(memory=2**40))
    assert unfit_bounds(instance, Budget(memory=2**40)) == {}


def test_a_solver_that_takes_more_than_allowed_is_stopped(monkeypatch) -> None:
    monkeypatch.setattr(process, "resident", lambda pid: 2**30)
    solver = SolverProcess(WORKER)
    with pytest.raises(SolverTooLargeError, match="2 GiB of memory were in use, of 1 GiB allowed"):
        list(solver.solve(None, Limits(600.0, 1, 0, None, 2**30)))
    assert solver.worker is None


class TestAllSolverProcessesKnowTheLimit:
    """The limit of a method reaches the solvers that it starts for parts of its work."""

    @pytest.fixture
    def told(self, monkeypatch) -> list[int | None]:
        """Return a list to which every solve adds its limit."""
        told: list[int | None] = []
        solve = SolverProcess.solve

        def listening(self, task, limits, grace=None):
            told.append(limits.memory)
            return solve(self, task, limits, grace)

        monkeypatch.setattr(SolverProcess, "solve", listening)
        return told

    def test_of_blocks_between_modules(self, monkeypatch) -> None:
        told = []
        solve = block_path.solve

        def listening(instance, *, budget, seed):
            told.append(budget.memory)
            return solve(instance, budget=budget, seed=seed)

        monkeypatch.setattr(block_path, "solve", listening)
        module = draw_modules(4, vertices=8, devices=3, memory=False)
        instance = replace(module, model=Model(communication="port"))
        registry.get("series")(instance, budget=Budget(60, 1, memory=2**33))
        assert set(told) == {2**33}

    @pytest.mark.parametrize("method", ["cpsat", "milp", "series"])
    def test_of_packings_for_a_start(self, told, method, monkeypatch) -> None:
        monkeypatch.setattr(registry, "starts", lambda **_: [])
        monkeypatch.setattr("optpart.search.layout.repaired", lambda *_: None)
        monkeypatch.setattr("optpart.search.fill.filled", lambda *_: None)
        instance = draw_instance(11, "delay", "estimate", vertices=12, devices=3)
        registry.get(method)(instance, budget=Budget(60, 1, 1.0, memory=2**33))
        assert set(told) == {2**33}

    def test_of_parts_in_a_search(self, told) -> None:
        instance = draw_instance(11, "delay", "none", vertices=12, devices=3)
        start = layout_of(instance, registry.get("hash+pct")(instance).schedule)
        evaluator, rng = Evaluator(instance, "makespan"), np.random.default_rng(0)
        Exact(evaluator, start, rng, seconds=None, memory=2**33).step(0.0)
        assert told == [2**33]

    def test_which_workers_of_a_search_share(self, monkeypatch) -> None:
        jobs = []
        assign = SearcherProcess.assign

        def watched(self, job):
            jobs.append(job.memory)
            assign(self, job)

        monkeypatch.setattr(SearcherProcess, "assign", watched)
        monkeypatch.setattr("optpart.base.children.worker.available_processors", lambda: 2)
        instance = draw_instance(11, "delay", "none", vertices=40, devices=3)
        registry.get("hybrid")(instance, budget=Budget(1, 2, memory=2**33))
        assert jobs == [2**32]

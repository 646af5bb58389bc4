"""Rules that remove solutions: each can be left out, and each is noticed where it is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import count, cycle, islice, product
from typing import Any, get_args

import numpy as np
import pytest

from optpart import Cluster, Device, GraphBuilder
from optpart.base.errors import ContradictionError
from optpart.exact import identical, run, symmetry, worker
from optpart.exact import solve as module
from optpart.exact.cross_check import compare
from optpart.exact.enumeration import enumerate_all
from optpart.exact.longest_path import Choices
from optpart.exact.model import ScheduleModel
from optpart.kernels import horizon as horizons
from optpart.kernels import ticks
from optpart.lower_bounds.windows import NEVER, Windows
from optpart.methods.cpsat import cpsat
from optpart.methods.milp import milp
from optpart.problem.instance import Instance
from optpart.problem.model import Communication, Memory
from optpart.solution.goal import Goal
from optpart.solution.pruning import ALL, Pruning
from optpart.solution.result import Budget, Result
from optpart.solution.schedule import Schedule
from optpart.testing.draw import draw_instance
from optpart.testing.goals import draw_goal

#: One worker: for tiny models starting threads takes longer than solving.
ONE = Budget(seconds=20, workers=1)

#: So that it is the solver that decides.
NO_BOUNDS = frozenset({Pruning.BOUNDS, Pruning.WINDOWS})

MODELS = [(c, m) for c in get_args(Communication) for m in get_args(Memory)]

Question = tuple[Instance, Goal, Result]


def questions() -> Iterator[Question]:
    """Yield tiny instances with goals, and what enumeration answers."""
    for seed in count():
        instance = draw_instance(seed, *MODELS[seed % len(MODELS)], vertices=(2, 5))
        known = enumerate_all(instance, budget=ONE).schedule
        goal = draw_goal(instance, known, seed)
        yield instance, goal, enumerate_all(instance, budget=ONE, goal=goal)


@cache
def some_questions() -> list[Question]:
    return list(islice(questions(), 10))


def rounded_questions() -> Iterator[Question]:
    """Yield tiny instances whose times have no common tick."""
    for seed, model in enumerate(cycle(get_args(Communication))):
        instance = draw_instance(seed, model, "none", vertices=(4, 6), devices=(1, 2), exact=False)
        yield instance, Goal(), enumerate_all(instance, budget=ONE)


def nearly_identical_machines() -> Iterator[Question]:
    """Yield forks on two devices that differ in speed, or whose link takes time."""
    for slow, rate in product((1, 2), (None, 1)):
        builder = GraphBuilder().vertex("a", 2, outputs=[6])
        for name in "bcd":
            builder.vertex(name, 4).edge("a", name)
        cluster = Cluster.of([Device("d0", 1), Device("d1", slow)], rate)
        instance = Instance(builder.build(), cluster)
        yield instance, Goal(), enumerate_all(instance, budget=ONE)


def contradicted(question: Question, without: frozenset[Pruning] = frozenset()) -> bool:
    """Whether CP-SAT and enumeration differ, or CP-SAT notices by itself."""
    instance, goal, judge = question
    try:
        result = cpsat(instance, budget=ONE, goal=goal, without=without)
        compare(result, judge)
    except (ContradictionError, AssertionError):
        return True
    return result.status is not judge.status and not goal.decides


def refuted(question: Question) -> bool:
    """Whether enumeration refutes what CP-SAT, without a start, claims to have proven."""
    instance, goal, judge = question
    try:
        compare(module.solve(instance, budget=ONE, goal=goal), judge)
    except (ContradictionError, AssertionError):
        return True
    return False


@pytest.mark.parametrize("rule", [*Pruning, *(pytest.param(rules, id="all") for rules in [ALL])])
def test_the_answer_is_the_same_without_it(rule: Pruning | frozenset[Pruning]) -> None:
    without = rule if isinstance(rule, frozenset) else frozenset({rule})
    for instance, goal, judge in some_questions():
        result = cpsat(instance, budget=ONE, goal=goal, without=without)
        compare(result, judge)
        assert result.status is judge.status or goal.decides


@pytest.mark.parametrize(
    "rule", [Pruning.SYMMETRY, Pruning.WINDOWS, Pruning.BOUNDS, Pruning.LOAD_CUTS]
)
def test_the_answer_of_the_milp_is_the_same_without_it(rule: Pruning) -> None:
    for seed in range(4):
        instance = draw_instance(seed, "delay", "estimate", vertices=(3, 4))
        result = milp(instance, budget=ONE, without=frozenset({rule}))
        judge = enumerate_all(instance, budget=ONE)
        compare(result, judge)
        assert result.status is judge.status


class TestMutation:
    """Break the premise of a rule, and a drawn instance shows it."""

    @pytest.fixture(autouse=True)
    def here(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Solve in this process, where the model can be mutated."""

        class Here:
            def solve(self, task: Any, limits: Any, grace: float) -> list[Any]:
                messages: list[Any] = []
                worker._solve(task, limits, messages.append)
                return messages

        @contextmanager
        def borrowed(name: str) -> Iterator[Here]:
            yield Here()

        monkeypatch.setattr(run, "borrowed", borrowed)

    def noticed(
        self,
        among: Iterator[Question],
        most: int = 600,
        without: frozenset[Pruning] = frozenset(),
    ) -> bool:
        return any(contradicted(question, without) for question in islice(among, most))

    def test_nothing_is_noticed_where_nothing_is_wrong(self) -> None:
        assert not self.noticed(questions(), 40)

    def test_symmetry(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(symmetry, "_CONDITIONS", ())
        assert self.noticed(questions())

    @pytest.mark.parametrize("side", ["head", "tail"])
    def test_windows(self, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
        original = module.sharpened

        def narrower(*arguments: Any, **options: Any) -> Windows:
            window = original(*arguments, **options)
            table = getattr(window, side)
            return replace(
                window, **{side: np.where((table > 0) & (table < NEVER), table + 1, table)}
            )

        monkeypatch.setattr(module, "sharpened", narrower)
        assert self.noticed(questions())

    def test_bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = module.load_ticks
        monkeypatch.setattr(
            module, "load_ticks", lambda *given, **options: original(*given, **options) + 1
        )
        assert self.noticed(questions())

    def test_horizon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = horizons._longest
        monkeypatch.setattr(horizons, "_longest", lambda *given: list(original(*given))[1:])
        monkeypatch.setattr("optpart.methods.registry.heuristics", list)
        assert self.noticed(questions())

    def test_incumbent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = module._Solve._limit

        def shorter(solve: Any) -> Any:
            limit = original(solve)
            return limit if limit is None else limit * 9 / 10

        monkeypatch.setattr(module._Solve, "_limit", shorter)
        assert self.noticed(questions())

    def test_load_cuts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without a start, which would not let the solver claim that there is nothing better."""
        assert not any(map(refuted, islice(questions(), 20)))
        original = ScheduleModel._load_cuts

        def beyond_the_bound(model: ScheduleModel) -> None:
            task = model.task
            model.task = replace(task, lower=task.upper)
            original(model)
            model.task = task

        monkeypatch.setattr(ScheduleModel, "_load_cuts", beyond_the_bound)
        assert any(map(refuted, islice(questions(), 20)))

    @pytest.mark.parametrize("premise", ["_equally_fast", "_crossing_is_free"])
    def test_identical(self, premise: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(identical, premise, lambda instance: True)
        assert self.noticed(nearly_identical_machines(), without=NO_BOUNDS)

    @pytest.mark.parametrize("choices", ["placed", "ordered"])
    def test_longest_paths(self, choices: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A few ticks to the makespan, and only the choices of the other kind."""
        monkeypatch.setattr(ticks, "MAX_HORIZON", 16)
        monkeypatch.setattr(module, "_TICKS", 16)
        assert not any(map(refuted, islice(rounded_questions(), 30)))
        original = module.longest_path

        def fewer(instance: Instance, schedule: Schedule) -> Choices | None:
            found = original(instance, schedule)
            return found and replace(found, **{choices: frozenset()})

        monkeypatch.setattr(module, "longest_path", fewer)
        assert any(map(refuted, islice(rounded_questions(), 300)))

"""Without any time, methods answer with one heuristic and do nothing twice.

The heuristic verifies its schedule, and so does every method for its own result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from optpart import Budget, Instance, Model, Schedule
from optpart.methods import cpsat, registry
from optpart.methods.solver_bound import solver_bound
from optpart.solution import record, result
from optpart.solution.job import Job
from optpart.solution.verifier import Violation, verify
from optpart.testing.draw import draw_instance

NO_TIME = Budget(0.0, 1)


@pytest.fixture
def instance() -> Instance:
    return draw_instance(1, vertices=25, devices=3)


@pytest.mark.parametrize(
    ("method", "times"),
    [("search", 2), ("hybrid", 2), ("series", 2), ("cpsat", 2), ("milp", 2), ("auto", 3)],
)
def test_a_start_is_verified_where_it_is_made_and_in_results(
    instance: Instance, method: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[Schedule] = []

    def counted(instance: Instance, schedule: Schedule, most: int = 20) -> list[Violation]:
        verified.append(schedule)
        return verify(instance, schedule, most)

    monkeypatch.setattr(result, "verify", counted)
    monkeypatch.setattr(record, "verify", counted)
    found = registry.get(method)(instance, budget=NO_TIME)
    assert found.schedule is not None
    tried = {id(schedule) for schedule in verified}
    assert (len(tried), len(verified)) == (1, times)
    assert verified[-1] is found.schedule


@pytest.mark.parametrize("memory", ["none", "estimate"])
def test_a_bound_shares_what_is_computed_of_the_instance(
    instance: Instance, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Instance] = []
    solve = cpsat.solve

    def kept(job: Job, *rest: Any, **options: Any) -> object:
        seen.append(job.instance)
        return solve(job, *rest, **options)

    monkeypatch.setattr(cpsat, "solve", kept)
    asked = replace(instance, model=Model(memory=memory))  # type: ignore[arg-type]
    solver_bound(asked, 0.0)
    solver_bound(replace(asked, model=Model("link", memory)), 0.0)  # type: ignore[arg-type]
    assert seen[0] is asked
    assert seen[1].model == asked.model

"""What contradicts the question is an answer, INFEASIBLE with its reason, whatever the method."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from commandline import Run

import optpart as op
from optpart.base.errors import InputError, UnsupportedError
from optpart.interop.formats import native
from optpart.methods import registry
from optpart.methods.fitting import require_memory
from optpart.problem.cluster import Cluster, Device
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Status
from optpart.testing.draw import draw_instance
from optpart.testing.goals import GoalKind, draw_goal

METHODS = [
    name
    for name in registry.taking("goal")
    if registry.METHODS[name].available and (name != "minizinc" or which(name))
]


def pair(*, only_b: bool = False, together: bool = True, durations: Any = None) -> Instance:
    """Return a chain of two vertices, colocated by default, on two devices."""
    builder = (
        GraphBuilder()
        .vertex("u", 2, devices=["b"] if only_b else None).vertex("v", 1)
        .edge("u", "v", None)
    )  # fmt: skip
    graph = (builder.colocate("u", "v") if together else builder).build()
    return Instance(graph, Cluster.of([Device("a"), Device("b")]), durations=durations)


GROUP = "the group of u (2 vertices) may run on none of a"
CASES: list[tuple[Instance, dict[str, Any], str]] = [
    (pair(only_b=True), {"device_order": ["a"]}, GROUP),
    (pair(durations=[[1, 3], [None, 0]]), {"device_order": ["a"]}, GROUP),
    (pair(only_b=True), {"placement": {"v": "a"}}, "v is fixed to a, where it may not run"),
    (pair(only_b=True, together=False), {"placement": {"u": "a"}},
     "u is fixed to a, where it may not run"),
    (pair(), {"placement": {"u": "a", "v": "b"}},
     "u and v are colocated but fixed to different devices"),
    (pair(), {"placement": {"u": "b"}, "device_order": ["a"]},
     "u is fixed to b, which is not in the order of devices"),
]  # fmt: skip


@pytest.mark.parametrize("objective", ["makespan", "bottleneck", "traffic"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_the_same_reason(method: str, objective: Any) -> None:
    for instance, given, reason in CASES:
        try:
            found = op.solve(instance, method, objective=objective, seconds=5, **given)
        except UnsupportedError:
            goal = Goal.of(instance, objective=objective, **given)
            assert method not in op.supporting(instance, goal)
            continue
        assert (found.status, found.reason) == (Status.INFEASIBLE, reason)


def test_every_method_answers_some_of_these() -> None:
    goals = [
        (instance, Goal.of(instance, objective=objective, **given))
        for instance, given, _ in CASES
        for objective in ("makespan", "bottleneck")
    ]
    able = {name for instance, goal in goals for name in op.supporting(instance, goal)}
    assert able >= {*METHODS}


@pytest.mark.parametrize("options", [["-m", "cpsat"], ["-m", "milp"], ["--pareto"], []])
@pytest.mark.parametrize("number", [0, 1])
def test_the_program_ends_with_3(run: Run, tmp_path: Path, number: int, options: list[str]) -> None:
    native.write(CASES[number][0], tmp_path / "pair.json")
    found = run("solve", tmp_path / "pair.json", "--device-order", "a", *options)
    assert (found.code, found.err) == (3, "")
    assert found.out == f"unnamed: INFEASIBLE: {GROUP}\n"
    found = run("pipeline", tmp_path / "pair.json", "--device-order", "a")
    assert (found.code, found.err) == (3, "")
    assert found.out == f"unnamed: INFEASIBLE: {GROUP}\n"


@cache
def drawn() -> list[tuple[Instance, Goal]]:
    kinds: tuple[GoalKind, ...] = ("blocks", "some-placement", "mixed")
    instances = [
        draw_instance(seed, "delay", "estimate", vertices=(2, 5), no_links=False)
        for seed in range(240)
    ]
    return [
        (each, draw_goal(each, None, seed, kinds[seed % 3])) for seed, each in enumerate(instances)
    ]


def test_some_goals_leave_a_group_no_device() -> None:
    count = 0
    for instance, goal in drawn():
        with suppress(InputError):
            goal.narrowed(instance)
            continue
        assert goal.contradiction(instance)
        count += 1
    assert count > 3


@pytest.mark.parametrize("method", METHODS)
def test_what_a_method_needs_is_known_for_every_goal(method: str) -> None:
    for instance, goal in drawn():
        require_memory(instance, method, goal, Budget())

"""Problems of PyJobShop as instances and back, in the JSON that it writes: it need not be here."""

from __future__ import annotations

import json
import sys
from copy import deepcopy
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

import optpart as op
from optpart.base.errors import InputError, UnsupportedError
from optpart.interop.formats import pyjobshop
from optpart.solution.termination import Termination

NEVER = 2**42


class Document:
    """What the converter needs of a ``ProblemData``."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def to_json(self, **options: Any) -> str:
        return json.dumps(self.document, **options)


def task(name: str, **given: Any) -> dict[str, Any]:
    never = {"latest_start": NEVER, "latest_end": NEVER}
    flags = {"allow_idle": False, "allow_breaks": False, "optional": False}
    return (
        {"job": None, "earliest_start": 0, "earliest_end": 0, "name": name} | never | flags | given
    )


def mode(number: int, machine: int, duration: Any, **given: Any) -> dict[str, Any]:
    of = {"task": number, "resources": [machine], "duration": duration, "demands": [0], "name": ""}
    return of | given


def problem() -> dict[str, Any]:
    """Two machines; ``a`` on either, then ``b`` on the second."""
    machine = {"breaks": [], "no_idle": False, "type": "machine"}
    job = {"weight": 1, "release_date": 0, "deadline": NEVER, "due_date": None, "name": "",
           "tasks": [0, 1]}  # fmt: skip
    return {
        "jobs": [job],
        "resources": [machine | {"name": "x"}, machine | {"name": "y"}],
        "tasks": [task("a", job=0), task("b", job=0)],
        "modes": [mode(0, 0, 5), mode(0, 1, 3), mode(1, 1, 4)],
        "constraints": {
            "end_before_start": [{"task1": 0, "task2": 1, "delay": 0}],
            "identical_resources": [], "different_resources": [], "setup_times": [],
        },
        "objective": {"weight_makespan": 1, "weight_tardy_jobs": 0},
    }  # fmt: skip


def changed(place: str, value: Any) -> dict[str, Any]:
    """Return the problem with another value at a place such as ``tasks.0.optional``."""
    document: Any = problem()
    *path, last = (int(key) if key.isdecimal() else key for key in place.split("."))
    at = document
    for key in path:
        at = at[key]
    at[last] = value
    return document


def test_modes_are_run_times_and_tasks_wait_for_each_other() -> None:
    instance = op.from_pyjobshop(Document(problem()), "two")
    assert (instance.name, instance.graph.names, instance.cluster.names) == (
        "two", ("a", "b"), ("x", "y"),
    )  # fmt: skip
    assert instance.vertex_allowed.tolist() == [[True, True], [False, True]]
    assert [instance.duration(0, 0), instance.duration(0, 1), instance.duration(1, 1)] == [5, 3, 4]
    assert instance.graph.pairs() == [(0, 1)]
    assert op.solve(instance).makespan == 7


def test_a_model_is_taken_as_well() -> None:
    model = SimpleNamespace(data=lambda: Document(problem()))
    assert op.from_pyjobshop(model) == op.from_pyjobshop(Document(problem()))


def test_identical_and_different_resources_are_colocation_and_separation() -> None:
    pair = [{"task1": 0, "task2": 1}]
    together = op.from_pyjobshop(Document(changed("constraints.identical_resources", pair)))
    assert op.solve(together).placement == {"a": "y", "b": "y"}
    apart = op.from_pyjobshop(Document(changed("constraints.different_resources", pair)))
    assert op.solve(apart).makespan == 9


def test_without_names_of_their_own_tasks_are_numbered() -> None:
    instance = op.from_pyjobshop(Document(changed("tasks.1.name", "a")))
    assert instance.graph.names == ("task0", "task1")
    assert instance.cluster.names == ("x", "y")


@pytest.mark.parametrize(
    ("place", "value", "part"),
    [
        ("resources.0.type", "renewable", "resources[0].type: 'renewable'"),
        ("resources.0.capacity", 3, "resources[0].capacity: 3"),
        ("resources.1.breaks", [[1, 2]], "resources[1].breaks: [[1, 2]]"),
        ("resources.1.no_idle", True, "resources[1].no_idle: True"),
        ("jobs.0.weight", 2, "jobs[0].weight: 2"),
        ("jobs.0.release_date", 1, "jobs[0].release_date: 1"),
        ("jobs.0.deadline", 9, "jobs[0].deadline: 9"),
        ("jobs.0.due_date", 0, "jobs[0].due_date: 0"),
        ("tasks.0.earliest_start", 1, "tasks[0].earliest_start: 1"),
        ("tasks.0.latest_end", 9, "tasks[0].latest_end: 9"),
        ("tasks.1.optional", True, "tasks[1].optional: True"),
        ("tasks.1.allow_idle", True, "tasks[1].allow_idle: True"),
        ("tasks.1.new_in_a_later_version", 0, "tasks[1].new_in_a_later_version: 0"),
        ("modes.2.resources", [0, 1], "modes[2]: takes other than one machine"),
        ("modes.2.resources", [], "modes[2]: takes other than one machine"),
        ("modes.2.demands", [1], "modes[2]: takes other than one machine"),
        ("modes.1.resources", [0], "modes[1]: is a second mode of 'a' on 'x'"),
        ("constraints.end_before_start.0.delay", -1, "constraints.end_before_start[0].delay"),
        ("constraints.setup_times", [{"machine": 0}], "constraints.setup_times"),
        ("objective.weight_makespan", 0, "objective.weight_makespan: is 0"),
        ("objective.weight_tardy_jobs", 1, "objective.weight_tardy_jobs: is 1"),
    ],
)
def test_what_no_instance_can_say_is_named(place: str, value: Any, part: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        op.from_pyjobshop(Document(changed(place, value)))
    assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "what", [3, Document(changed("modes.0.duration", Fraction(1, 2))), "heft-10"]
)
def test_what_is_no_problem_is_refused(what: Any) -> None:
    with pytest.raises(InputError, match=r"^data: cannot be read .*; give a ProblemData"):
        op.from_pyjobshop(what)


def test_an_instance_goes_there_and_back() -> None:
    pair = [{"task1": 0, "task2": 1}]
    for kind in ("end_before_start", "identical_resources", "different_resources"):
        given = changed(f"constraints.{kind}", [row | {"delay": 0} for row in pair])
        here = pyjobshop.from_dict(given, "one")
        there = pyjobshop.to_dict(here)
        assert [row["name"] for row in there["tasks"]] == ["a", "b"]
        for row in there["constraints"]["end_before_start"]:
            row["delay"] = 0
        for row in there["modes"]:
            row["demands"] = []
        assert pyjobshop.from_dict({"jobs": []} | there, "one") == here


def test_fractions_become_whole_units() -> None:
    builder = op.GraphBuilder().vertex("a", "1/2").vertex("b", "2/3")
    instance = op.Instance(builder.build(), op.Cluster.of([op.Device("x")]))
    assert pyjobshop.scale(instance) == 6
    assert [row["duration"] for row in pyjobshop.to_dict(instance)["modes"]] == [3, 4]


def pair(**given: Any) -> op.Instance:
    graph = op.GraphBuilder().vertex("a", 1, outputs=[2]).vertex("b", 1).edge("a", "b").build()
    cluster = op.Cluster.of([op.Device("x"), op.Device("y")])
    return replace(op.Instance(graph, cluster), **given)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"model": op.Model("port")}, "model.communication: PyJobShop has no 'port'"),
        ({"model": op.Model(memory="estimate")}, "model.memory: PyJobShop has no 'estimate'"),
        ({"cluster": op.Cluster.of([op.Device("x"), op.Device("y")], 1)}, "edges: that from 'a'"),
        ({"cluster": op.Cluster.of([op.Device("x"), op.Device("y")], 0)}, "edges: that from 'a'"),
        ({"durations": [[1, 1], [None, None]]}, "vertices[1]: 'b' has no device"),
        ({"durations": [[1, 1], [1, 2**42]]}, "durations: in whole units"),
    ],
)
def test_what_pyjobshop_cannot_say_is_named(given: dict[str, Any], part: str) -> None:
    with pytest.raises(UnsupportedError, match=r"; solve it with optpart$") as error:
        op.to_pyjobshop(pair(**given))
    assert part in str(error.value)


def test_without_pyjobshop_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyjobshop", None)
    with pytest.raises(InputError, match=r"^needs the package pyjobshop; install optpart\[pyjob"):
        op.to_pyjobshop(pair())


Solved = Enum("Solved", ["OPTIMAL", "TIME_LIMIT", "INFEASIBLE"])


def solved(rows: list[tuple[int, int, int]], bound: float, status: Any = Solved.OPTIMAL) -> Any:
    """Return a result as PyJobShop does, of machines, starts and ends."""
    tasks = [
        SimpleNamespace(resources=[where], start=start, end=end, present=True)
        for where, start, end in rows
    ]
    best = SimpleNamespace(tasks=tasks)
    return SimpleNamespace(best=best, lower_bound=bound, status=status, runtime=0.5)


def test_a_schedule_of_pyjobshop_is_verified_and_proven_anew() -> None:
    result = op.result_from_pyjobshop(pair(), solved([(0, 0, 1), (1, 1, 2)], 2))
    assert (result.status, result.makespan, result.claim) == (op.Status.OPTIMAL, 2, None)
    assert op.verify(pair(), result) == []


def test_its_bound_is_a_claim_from_which_no_status_follows() -> None:
    late = solved([(0, 0, 1), (1, 2, 3)], 3)
    result = op.result_from_pyjobshop(pair(), late)
    assert (result.status, result.makespan, result.lower_bound) == (op.Status.FEASIBLE, 3, 2)
    assert result.claim is not None
    assert result.claim.lower_bound == 3
    none = op.result_from_pyjobshop(pair(), solved([], float("inf"), Solved.INFEASIBLE))
    assert none.status is op.Status.UNKNOWN
    assert none.claim is not None
    assert none.claim.infeasible
    short = op.result_from_pyjobshop(pair(), solved([], 0, Solved.TIME_LIMIT))
    assert (short.termination, short.claim) == (Termination.TIME_LIMIT, None)


@pytest.mark.parametrize(
    "rows", [[(0, 0, 1), (0, 0, 1)], [(0, 1, 2), (0, 0, 1)], [(0, 0, 1), (1, 0, 1)]]
)
def test_a_schedule_that_breaks_a_rule_is_rejected(rows: list[tuple[int, int, int]]) -> None:
    result = op.result_from_pyjobshop(pair(), solved(rows, 0))
    assert (result.schedule, result.termination) == (None, Termination.REJECTED)
    assert result.reason.startswith("its schedule is not valid")


@pytest.mark.parametrize("rows", [[(0, 0, 1)], [(0, 0, 1), (2, 1, 2)], [(0, 0, 1), (0, 1, 3)]])
def test_a_result_of_another_problem_is_refused(rows: list[tuple[int, int, int]]) -> None:
    with pytest.raises(InputError, match=r"^result: has .*; give a result of the problem"):
        op.result_from_pyjobshop(pair(), solved(rows, 0))
    absent = deepcopy(solved([(0, 0, 1), (0, 1, 2)], 0))
    absent.best.tasks[1].present = False
    with pytest.raises(InputError, match="'b', or no device"):
        op.result_from_pyjobshop(pair(), absent)

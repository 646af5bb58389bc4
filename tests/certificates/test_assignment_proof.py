"""Assignments: the judge accepts their records, and another reader the same as sums of rows."""

from __future__ import annotations

import json
from math import inf
from typing import Any, Literal

import pytest
from crowds import crowd
from proof_readers import Sum, row_of, veripb_refutes

from optpart import Budget, Instance, Schedule
from optpart.certificates import check
from optpart.certificates.assignment_proof import (
    AssignmentProof,
    UnlikeAssignmentsError,
    refutation,
)
from optpart.certificates.check import Problem, RejectedError, Windows, refute_by_probing
from optpart.certificates.cutting_planes import text
from optpart.certificates.probing import NotRefutedError, assignment_record
from optpart.interop.formats import native
from optpart.kernels.ticks import Grid
from optpart.methods import registry


def windows_of(instance: Instance, horizon: int) -> Windows:
    grid = Grid.of(instance)
    problem = Problem(check.read_json(native.dumps(instance).encode(), "instance"))
    return Windows(problem, grid.scale, grid.time(horizon + 1))


def longest(instance: Instance) -> tuple[int, dict[str, Any]]:
    """Return the greatest horizon that is refuted, and the record."""
    found = None
    for horizon in range(10, 200):
        windows = windows_of(instance, horizon)
        if windows.feasible:
            try:
                record = assignment_record(instance, windows, Grid.of(instance), inf)
            except NotRefutedError:
                break
            found = horizon, record
    assert found is not None
    return found


def files(proof: AssignmentProof) -> tuple[list[Sum], str]:
    rows = [row_of(text(row).removesuffix(" ;")) for row in proof.script.rows]
    lines = ["pseudo-Boolean proof version 2.0", f"f {len(rows)}", *proof.script.lines]
    lines += ["output NONE", f"conclusion UNSAT : {len(rows) + len(proof.script.lines)}"]
    return rows, "\n".join([*lines, "end pseudo-Boolean proof"])


@pytest.mark.parametrize("memory", ["none", "estimate"])
@pytest.mark.parametrize("seed", [0, 1, 2, 5, 6, 7])
def test_whole_pieces(seed: int, memory: Literal["none", "estimate"]) -> None:
    instance = crowd(seed, memory)
    horizon, record = longest(instance)
    record = json.loads(json.dumps(record))
    refute_by_probing(windows_of(instance, horizon), record)
    rows, proof = files(refutation(windows_of(instance, horizon), record["claims"]))
    assert veripb_refutes(rows, proof)
    without = [[*rows[:at], ({}, 0), *rows[at + 1 :]] for at in range(len(rows))]
    assert not all(veripb_refutes(fewer, proof) for fewer in without)
    best = registry.get("cpsat")(instance, budget=Budget(10, 1)).schedule
    if best is not None:
        with pytest.raises(RejectedError):
            refute_by_probing(windows_of(instance, horizon + 1), record)
        assert satisfied(instance, best, record["claims"])


def satisfied(instance: Instance, schedule: Schedule, claims: list[Any]) -> bool:
    """Return whether a schedule satisfies the same rows for a horizon that admits it."""
    windows = windows_of(instance, Grid.of(instance).floor(schedule.makespan(instance)))
    formula = AssignmentProof(windows, claims)
    place = {}
    for said in formula.said:
        _, u, d, x = said.split()
        place[x] = int(schedule.placement[windows.members[int(u)][0]] == int(d))
    rows = [row_of(text(row).removesuffix(" ;")) for row in formula.script.rows]
    return all(sum(a * place[x] for x, a in terms.items()) >= least for terms, least in rows)


def test_what_the_judge_does_not_look_at_is_left_out() -> None:
    instance = crowd(0, "none")
    horizon, record = longest(instance)
    windows = windows_of(instance, horizon)
    gone = [
        (u, d)
        for u, on in enumerate(windows.possible)
        for d in range(instance.devices)
        if d not in on
    ]
    claims = [["not", *gone[0], [["full", 0, []]]], *record["claims"], ["work", [[99]], [[99]]]]
    refute_by_probing(windows_of(instance, horizon), {"claims": claims})
    assert veripb_refutes(*files(refutation(windows, claims)))


def test_claims_about_times_are_not_about_assignments() -> None:
    windows = windows_of(crowd(0, "none"), 20)
    with pytest.raises(UnlikeAssignmentsError):
        refutation(windows, [["not", 0, 0, [["head", 1, 0, 3]]]])
    short = windows_of(crowd(0, "none"), 0)
    refute_by_probing(short, {"claims": []})
    with pytest.raises(UnlikeAssignmentsError):  # paths alone leave nothing possible
        refutation(short, [])

"""Is a result file true? Its schedule, and every figure that it claims."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

from optpart.errors import FaultsOf, InputError
from optpart.formats.result import read_document, schedule_from_dict
from optpart.goal import Objective
from optpart.instance import Instance
from optpart.metrics import traffic
from optpart.rational import rational
from optpart.report.text import number
from optpart.result import Status
from optpart.verify import Violation
from optpart.verify import verify as verify_schedule


@dataclass(frozen=True)
class Check:
    """What checking a result found.

    Attributes
    ----------
    violations : tuple of Violation
        Empty if the schedule is valid and the claims agree with it.
    makespan : Fraction or None
        Of the schedule.
    summary : str
        What is true of a valid result, in one line.
    """

    violations: tuple[Violation, ...]
    makespan: Fraction | None
    summary: str


def check_result(instance: Instance, path: str | Path) -> Check:
    """Check a result file against its instance.

    The lower bound is not proven again: whether it is one is for its method to say, and for a
    certificate to show.

    Raises
    ------
    InputError
        If the file is no result, or holds no schedule.
    """
    document = read_document(path)
    with FaultsOf(path):
        if document.get("schedule") is None:
            raise InputError("schedule", "missing", "give a result that holds a schedule")
        schedule = schedule_from_dict(document["schedule"], instance)
        claims = {
            key: None if document.get(key) is None else rational(document[key], key)
            for key in ("makespan", "lower_bound", "traffic", "traffic_bound")
        }
    violations = verify_schedule(instance, schedule)
    if any(violation.rule == "complete" for violation in violations):
        return Check(tuple(violations), None, "")
    makespan = schedule.makespan(instance)
    found = {"makespan": makespan, "traffic": traffic(instance, schedule.placement)}
    violations += _claims(document, instance, claims, found)
    bound = claims["lower_bound"]
    summary = f"valid: makespan {number(makespan, up=True)}"
    if bound is not None:
        summary += f", claimed lower bound {number(bound, up=False)}"
    if claims["traffic_bound"] is not None:
        summary += f", claimed traffic bound {number(claims['traffic_bound'], up=False)}"
    if document.get("given"):
        summary += f", given {document['given']}"
    return Check(tuple(violations), makespan, summary)


def _claims(
    document: Any,
    instance: Instance,
    claims: dict[str, Fraction | None],
    found: dict[str, Fraction],
) -> list[Violation]:
    wrong = []
    if document.get("instance_sha256") not in (None, instance.sha256):
        wrong.append(Violation("instance", "the result is of another instance (sha256 differs)"))
    for key, value in found.items():
        if claims[key] is not None and claims[key] != value:
            wrong.append(Violation(key, f"claimed {claims[key]}, but it is {value}"))
    for name, key in (("lower_bound", "makespan"), ("traffic_bound", "traffic")):
        bound = claims[name]
        if bound is not None and bound > found[key]:
            wrong.append(Violation(name, f"claimed {bound}, above the {key} {found[key]}"))
    objective = document.get("objective", "makespan")
    if objective not in get_args(Objective):
        wrong.append(Violation("objective", f"unknown {objective!r}"))
    if document.get("status") == Status.OPTIMAL:
        if objective != "traffic" and claims["lower_bound"] != found["makespan"]:
            wrong.append(Violation("status", "OPTIMAL, but the lower bound is not the makespan"))
        if objective != "makespan" and claims["traffic_bound"] != found["traffic"]:
            wrong.append(Violation("status", "OPTIMAL, but the traffic bound is not the traffic"))
    if document.get("status") not in set(Status):
        wrong.append(Violation("status", f"unknown {document.get('status')!r}"))
    return wrong

"""The check of a result file: its schedule, and every figure that it claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

from optpart.base.errors import FaultsOf, InputError
from optpart.base.escaping import shortened
from optpart.base.rounding import between, number
from optpart.interop.formats.json import sequence
from optpart.interop.formats.result import (
    claim,
    constraints,
    read_document,
    schedule_from_dict,
    termination,
)
from optpart.problem.instance import Instance
from optpart.problem.rational import non_negative, rational
from optpart.problem.units import with_unit
from optpart.solution.contiguity import first_violation
from optpart.solution.goal import (
    BOUND_KEYS,
    MINIMISED,
    Measure,
    Objective,
    bound_of,
    objective_gap,
    undefined_bottleneck,
)
from optpart.solution.metrics import bottleneck, traffic
from optpart.solution.result import Status
from optpart.solution.termination import Termination
from optpart.solution.verifier import Violation
from optpart.solution.verifier import verify as verify_schedule
from optpart.study.report.text import claimed

#: The numbers of a result, and their readers.
_NUMBERS = {
    "makespan": rational,
    "traffic": rational,
    "gap": rational,
    "lower_bound": non_negative,
    "traffic_bound": non_negative,
    "bottleneck": rational,
    "bottleneck_bound": non_negative,
    "seconds": non_negative,
}

#: The precision with which times and gaps are written.
_ROUNDING = Fraction(1, 10**6)

_ZERO = Fraction(0)

#: Seconds, value and bound.
_Step = tuple[Fraction, Fraction | None, Fraction | None]


@dataclass(frozen=True)
class Check:
    """The outcome of checking a result.

    Attributes
    ----------
    violations : tuple of Violation
        Empty if the schedule is valid and the claims agree with it.
    makespan : Fraction or None
        The makespan of the schedule.
    summary : str
        The figures of a valid result, in one line.
    """

    violations: tuple[Violation, ...]
    makespan: Fraction | None
    summary: str


def check_result(
    instance: Instance,
    path: str | Path,
    *,
    contiguous: bool = False,
    device_order: tuple[int, ...] = (),
) -> Check:
    """Check a result file against its instance.

    The lower bound is not proven again: its method vouches for it, or a certificate proves it.

    Parameters
    ----------
    contiguous : bool
        Whether blocks must be contiguous, even if the file does not say so.
    device_order : tuple of int
        An order of devices that the blocks must follow, besides that of the file.

    Raises
    ------
    InputError
        If the file is not a result, or neither holds nor claims a schedule.
    """
    document = read_document(path)
    with FaultsOf(path):
        return check_document(instance, document, contiguous=contiguous, device_order=device_order)


def check_document(
    instance: Instance,
    document: Any,
    *,
    contiguous: bool = False,
    device_order: tuple[int, ...] = (),
) -> Check:
    """Check the document of a result; see :func:`check_result`."""
    claims = {
        key: None if document.get(key) is None else read(document[key], key)
        for key, read in _NUMBERS.items()
    }
    trace = _trace(document.get("trace", []))
    wrong = _status(document, claims)
    unproven = _termination(document)
    try:
        stated, along = constraints(document, instance)
        if document.get("schedule") is None:
            if wrong or unproven:
                return Check((*wrong, *unproven), None, "")
            raise InputError("schedule", "missing", "give a result that holds a schedule")
        schedule = schedule_from_dict(document["schedule"], instance)
    except InputError:
        _check_origin(document, instance)  # says more than that a name is unknown
        raise
    violations = verify_schedule(instance, schedule) + wrong
    if any(violation.rule == "complete" for violation in violations):
        return Check(tuple(violations), None, "")
    makespan = schedule.makespan(instance)
    found: dict[Measure, Fraction] = {
        "makespan": makespan,
        "traffic": traffic(instance, schedule.placement),
    }
    if not violations:  # a tensor may have to cross where there is no link
        found["bottleneck"] = bottleneck(instance, schedule.placement)
    for order in dict.fromkeys((along, device_order)):
        if order or contiguous or stated:
            broken = first_violation(instance, schedule.placement, order)
            violations += [Violation("contiguity", broken)] if broken else []
    violations += _claims(document, instance, claims, found)
    violations += [*_steps(trace, document, claims, found), *unproven]
    bound = claims["lower_bound"]
    unit = instance.time_unit
    shown, shown_bound = (with_unit(text, unit) for text in between(makespan, bound))
    summary = f"valid: makespan {shown}"
    if bound is not None:
        summary += f", claimed lower bound {shown_bound}"
    if claims["traffic_bound"] is not None:
        summary += f", claimed traffic bound {number(claims['traffic_bound'], up=False)}"
    if claims["bottleneck"] is not None:
        loads = between(claims["bottleneck"], claims["bottleneck_bound"])
        shown, shown_bound = (with_unit(text, unit) for text in loads)
        summary += f", bottleneck {shown}, claimed bottleneck bound {shown_bound}"
    of_file = claim(document)
    if of_file is not None:
        summary += f", {claimed(of_file)}"
        for measure, value in of_file.bounds.items():
            if measure in found and value > found[measure]:
                above = f"claimed {value}, above the {measure} {found[measure]}"
                violations.append(Violation(f"claimed.{BOUND_KEYS[measure]}", above))
    if document.get("given"):
        summary += f", given {document['given']}"
    return Check(tuple(violations), makespan, summary)


def _trace(value: Any) -> list[_Step]:
    """Read the steps of a run: seconds, value and bound."""
    steps = []
    for i, entry in enumerate(sequence(value, "trace")):
        place = f"trace[{i}]"
        if len(sequence(entry, place)) != 3:
            raise InputError(place, "not a triple", "give [seconds, value, bound]")
        seconds, *values = entry
        numbers = [None if each is None else rational(each, place) for each in values]
        steps.append((non_negative(seconds, place), numbers[0], numbers[1]))
    return steps


def _status(document: Any, claims: dict[str, Fraction | None]) -> list[Violation]:
    """Return violations where the status or a claim disagrees with the presence of a schedule."""
    status, there = document.get("status"), document.get("schedule") is not None
    if status not in list(Status):
        return [Violation("status", f"unknown {_short(status)}")]
    if there != (status in (Status.OPTIMAL, Status.FEASIBLE)):
        what = "there is a schedule" if there else "there is no schedule"
        return [Violation("status", f"{status}, but {what}")]
    return [
        Violation(key, f"claimed {claims[key]}, but there is no schedule")
        for key in ("makespan", "traffic", "bottleneck")
        if not there and claims[key] is not None
    ]


def _termination(document: Any) -> list[Violation]:
    """Return whether a proof is said to have ended the method and the status claims none."""
    status, why = document.get("status"), termination(document)
    if why is not Termination.PROVEN or status in (Status.OPTIMAL, Status.INFEASIBLE):
        return []
    return [Violation("termination", f"{why}, but the status is {_short(status)}")]


def _check_origin(document: Any, instance: Instance) -> None:
    """Raise :class:`InputError` if a result says that it is of another instance."""
    if document.get("instance_sha256") not in (None, instance.sha256):
        other = document.get("instance")
        said = f" ({_short(other)})" if other and other != instance.name else ""
        raise InputError("", f"is of another instance{said}", "give a result of this one")


def _claims(
    document: Any,
    instance: Instance,
    claims: dict[str, Fraction | None],
    found: Mapping[Measure, Fraction],
) -> list[Violation]:
    wrong = []
    if document.get("instance_sha256") not in (None, instance.sha256):
        wrong.append(Violation("instance", "the result is of another instance (sha256 differs)"))
    for key, value in found.items():
        if claims[key] is not None and claims[key] != value:
            wrong.append(Violation(key, f"claimed {claims[key]}, but it is {value}"))
    bounds = {
        measure: bound for measure, key in BOUND_KEYS.items() if (bound := claims[key]) is not None
    }
    too_high = [
        measure for measure in found if bounds.get(measure, found[measure]) > found[measure]
    ]
    for measure in too_high:
        above = f"claimed {bounds[measure]}, above the {measure} {found[measure]}"
        wrong.append(Violation(BOUND_KEYS[measure], above))
    objective = document.get("objective", "makespan")
    if objective not in get_args(Objective):
        return [*wrong, Violation("objective", f"unknown {_short(objective)}")]
    if objective == "bottleneck" and (problem := undefined_bottleneck(instance)):
        return [*wrong, Violation("objective", problem)]
    if document.get("status") == Status.OPTIMAL:
        for measure in MINIMISED[objective]:
            if bounds.get(measure) != found.get(measure):
                said = f"OPTIMAL, but the {bound_of(measure)} is not the {measure}"
                wrong.append(Violation("status", said))
    if too_high:
        return wrong  # there is no gap to check
    return wrong + _gap(claims["gap"], objective_gap(objective, found, bounds))


def _gap(claimed: Fraction | None, actual: float | None) -> list[Violation]:
    if claimed is None:
        return []
    if actual is None:
        return [Violation("gap", f"claimed {number(claimed, up=True)}, but there is no bound")]
    # A gap of 0 means proven, and must be exact.
    same = abs(claimed - Fraction(actual)) <= _ROUNDING and (claimed == 0) == (actual == 0)
    return [] if same else [Violation("gap", f"claimed {_short(claimed)}, but it is {actual}")]


def _steps(
    trace: list[_Step],
    document: Any,
    claims: dict[str, Fraction | None],
    found: Mapping[Measure, Fraction],
) -> Iterator[Violation]:
    """Yield violations where the trace goes back in time, or claims more than the result."""
    last = _ZERO
    for i, (seconds, value, bound) in enumerate(trace):
        place = f"trace[{i}]"
        if seconds < last:
            yield Violation(
                place,
                f"at {number(seconds, up=True)} s, before the step at {number(last, up=True)} s",
            )
        last = max(last, seconds)
        key = document.get("objective", "makespan")
        if key not in ("makespan", "bottleneck") or key not in found:
            continue
        if value is not None and value < found[key]:
            yield Violation(place, f"value {value}, below the {key} {found[key]}")
        if bound is not None and bound > found[key]:
            yield Violation(place, f"bound {bound}, above the {key} {found[key]}")
    if claims["seconds"] is not None and last > claims["seconds"] + _ROUNDING:
        yield Violation(
            "trace",
            f"ends at {number(last, up=True)} s, "
            f"but the run at {number(claims['seconds'], up=True)} s",
        )


def _short(value: object) -> str:
    """Return a value of the file in few characters."""
    text = repr(value) if isinstance(value, str) else str(value)
    return shortened(text, 60)

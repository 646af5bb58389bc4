"""Audit of results: claims that contradict a verified schedule are discarded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from numbers import Real
from textwrap import shorten
from typing import TypeVar, get_args

import numpy as np

from optpart.base.errors import InputError
from optpart.problem.feasibility import excluded
from optpart.problem.instance import Instance
from optpart.problem.rational import rational
from optpart.solution.goal import BOUND_KEYS, Goal, Measure, Objective
from optpart.solution.result import (
    Progress,
    Result,
    Status,
    conclude,
    proven_infeasible,
    refused,
    with_status,
)
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination

_REMEDY = "return what optpart.conclude returns"
_LONGEST = 300

Value = TypeVar("Value")


@dataclass(frozen=True)
class Finding:
    """A claim that is discarded because it is false.

    Attributes
    ----------
    instance : str
        Name of the instance.
    source : str
        The source of the claim: a method, with its seed if there are several, ``library``, or a
        row of a store.
    problem : str
        The error of the source, or the contradiction.
    """

    instance: str
    source: str
    problem: str

    def __str__(self) -> str:
        return one_line(f"{self.instance}: {self.source}: {self.problem}")


def one_line(text: str) -> str:
    """Return external text on one line, shortened if it is too long."""
    return shorten(text, _LONGEST, placeholder=" …")


def described(error: BaseException) -> str:
    """Return an exception's name and message, even if producing the message fails."""
    try:
        return one_line(f"{type(error).__name__}: {error}").removesuffix(":")
    except Exception:
        return type(error).__name__


def audited(
    claimed: object, instance: Instance, method: str, seed: int, goal: Goal | None = None
) -> Result:
    """Return the part of a method's result that can be trusted.

    The schedule is verified. A valid one is kept even if other claims are false. Bounds and
    statuses are kept only if all claims agree with the schedule.

    Parameters
    ----------
    claimed : object
        The return value of a method; it may be anything.
    goal : Goal, optional
        The goal of the method, which the schedule must satisfy.

    Returns
    -------
    Result
        With the given method and seed; ``refused``, with the reason, if a claim is false.
    """
    try:
        read = _read(claimed, instance)
        known = conclude(
            instance,
            method,
            read.schedule,
            termination=read.termination,
            reason=read.reason,
            seconds=read.seconds,
            seed=seed,
            workers=read.workers,
            trace=read.trace,
            goal=goal or _goal(read),
        )
    except InputError as error:
        return refusal(instance, method, seed, f"{error.place}: {error.problem}".lstrip(": "))
    except Exception as error:  # reading a foreign object may raise anything
        return refusal(instance, method, seed, f"its result cannot be read ({described(error)})")
    known = replace(
        known, versions=read.versions, schedule_by=read.schedule_by, bound_by=read.bound_by
    )
    if goal is None:
        known = replace(known, given=read.given)
    if read.schedule is not None and known.schedule is None:
        known = replace(known, termination=Termination.REJECTED)
    full = replace(known, bounds=read.bounds)
    if known.schedule is not None:
        full = with_status(full)
    elif read.status is Status.INFEASIBLE:
        full = proven_infeasible(full, read.reason or excluded(instance, method, read.given))
    problem = _denial(read, full) or (read.refused and (read.reason or "refused"))
    return refused(known, problem) if problem else full


def refusal(instance: Instance, method: str, seed: int, why: str, seconds: float = 0.0) -> Result:
    """Return the result of a method whose output cannot be used at all."""
    return refused(conclude(instance, method, None, seconds=seconds, seed=seed), one_line(why))


def contradicted(result: Result, least: Fraction, by: str) -> str:
    """Return how a verified schedule contradicts a result's claims; empty if it does not.

    The schedule must satisfy the fixed decisions and limits of the result.

    Parameters
    ----------
    least : Fraction
        Makespan of the schedule.
    by : str
        The method that found it.
    """
    claim = result.claim
    if result.status is Status.INFEASIBLE or (claim is not None and claim.infeasible):
        return contradiction("INFEASIBLE", least, by)
    if claim is not None and claim.lower_bound is not None and claim.lower_bound > least:
        return contradiction(f"bound {claim.lower_bound} {claim}", least, by)
    if result.lower_bound is None or result.lower_bound <= least:
        return ""
    proven = result.status is Status.OPTIMAL and result.makespan == result.lower_bound
    said = "OPTIMAL at" if proven else "bound"
    return contradiction(f"{said} {result.lower_bound}", least, by)


def contradiction(claim: str, least: Fraction, by: str) -> str:
    """Return the message for a claim that a verified schedule contradicts."""
    return f"{claim} contradicts a verified schedule of {least} by {by}"


def denied(result: Result, why: str) -> Result:
    """Return a result without its claims, but with its verified schedule."""
    bare = refused(replace(result, bounds={}, claim=None), why)
    return replace(bare, status=Status.UNKNOWN) if bare.schedule is None else with_status(bare)


def findings(instance: Instance, results: Iterable[Result]) -> list[Finding]:
    """List the refused results, with their seeds if a method has several."""
    results = list(results)
    return [
        Finding(instance.name, _source(result, results), result.reason)
        for result in results
        if result.refused
    ]


def _source(result: Result, among: Sequence[Result]) -> str:
    several = len({other.seed for other in among if other.method == result.method}) > 1
    return f"{result.method}, seed {result.seed}" if several else result.method


def _denial(claimed: Result, known: Result) -> str:
    """Return a claim that the result's own schedule contradicts or does not support."""
    makespan = known.makespan
    if makespan is None:
        if claimed.schedule is not None:
            return known.reason
        if claimed.makespan is not None:
            return f"a makespan of {claimed.makespan} without a schedule"
        if claimed.status in (Status.OPTIMAL, Status.FEASIBLE):
            return f"{claimed.status} without a schedule"
        return ""
    if claimed.status is Status.INFEASIBLE:
        return f"INFEASIBLE contradicts its own schedule of {makespan}"
    for measure, value in known.values.items():
        said, bound = claimed.values.get(measure, value), claimed.bounds.get(measure, value)
        if said != value:
            return f"{measure} {said} is not that of its schedule, which is {value}"
        if bound > value:
            kind = "" if measure == "makespan" else f"{measure} "
            return f"{kind}bound {bound} contradicts its own schedule of {value}"
    if claimed.status is Status.OPTIMAL and known.status is not Status.OPTIMAL:
        return "OPTIMAL without a bound that proves it"
    return ""


def _read(claimed: object, instance: Instance) -> Result:
    """Return a claim with every field checked for its type."""
    if not isinstance(claimed, Result):
        raise InputError("", f"returned {type(claimed).__name__!r}, not a Result", _REMEDY)
    if claimed.instance is not instance and claimed.instance.sha256 != instance.sha256:
        raise InputError("", "returned a result for another instance", _REMEDY)
    if claimed.schedule is not None and type(claimed.schedule) is not Schedule:
        raise _wrong("schedule", claimed.schedule)
    if claimed.objective not in get_args(Objective):
        raise _wrong("objective", claimed.objective)
    if claimed.status not in list(Status):
        raise _wrong("status", claimed.status)
    if claimed.termination not in (None, *Termination):
        raise _wrong("termination", claimed.termination)
    versions = _of("versions", claimed.versions, dict)
    for package, version in versions.items():
        _of("versions", package, str)
        _of("versions", version, str)
    return Result(
        instance,
        "",
        Status(claimed.status),
        values=_numbers("values", claimed.values),
        bounds=_numbers("bounds", claimed.bounds),
        schedule=claimed.schedule,
        reason=" ".join(_of("reason", claimed.reason, str).split()),
        seconds=_seconds("seconds", claimed.seconds),
        workers=_of("workers", claimed.workers, int),
        trace=tuple(_step(step) for step in _of("trace", claimed.trace, tuple)),
        versions=versions,
        objective=claimed.objective,
        given=_of("given", claimed.given, str),
        refused=_of("refused", claimed.refused, bool),
        termination=claimed.termination and Termination(claimed.termination),
        contiguous=_of("contiguous", claimed.contiguous, bool),
        device_order=_of("device_order", claimed.device_order, tuple),
        schedule_by=_of("schedule_by", claimed.schedule_by, str),
        bound_by=_of("bound_by", claimed.bound_by, str),
    )


def _goal(read: Result) -> Goal:
    """Return the part of the goal that a result states exactly; the rest is text."""
    goal = Goal(read.objective, contiguous=read.contiguous, device_order=read.device_order)
    goal.check(read.instance)
    return goal


def _step(step: object) -> Progress:
    read = _of("trace", step, Progress)
    _seconds("trace", read.seconds)
    _exact("trace", read.objective)
    _exact("trace", read.bound)
    return read


def _of(place: str, value: object, kind: type[Value]) -> Value:
    if not isinstance(value, kind):
        raise _wrong(place, value)
    return value


def _numbers(place: str, given: object) -> dict[Measure, Fraction]:
    """Return exact numbers by measure; those that are ``None`` are left out."""
    found: dict[Measure, Fraction] = {}
    if not isinstance(given, Mapping):
        raise _wrong(place, given)
    for measure, value in given.items():
        if measure not in get_args(Measure):
            raise _wrong(place, measure)
        number = _exact(BOUND_KEYS[measure] if place == "bounds" else measure, value)
        if number is not None:
            found[measure] = number
    return found


def _exact(place: str, value: object) -> Fraction | None:
    """Return an exact number; reject floats and text."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer, Fraction)):
        raise _wrong(place, value)
    return rational(value, place)


def _seconds(place: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _wrong(place, value)
    seconds = float(value)
    if not isfinite(seconds) or seconds < 0:
        raise _wrong(place, value)
    return seconds


def _wrong(place: str, value: object) -> InputError:
    shown = shorten(repr(value), 40, placeholder="…")
    return InputError(place, f"{shown} is not {_KINDS.get(place, f'a valid {place}')}", _REMEDY)


_KINDS = {
    "values": "exact numbers by measure",
    "bounds": "exact numbers by measure",
    "makespan": "an exact number",
    "lower_bound": "an exact number",
    "traffic": "an exact number",
    "traffic_bound": "an exact number",
    "bottleneck": "an exact number",
    "bottleneck_bound": "an exact number",
    "contiguous": "a boolean",
    "device_order": "a tuple of device numbers",
    "seconds": "a duration",
    "workers": "a number of workers",
    "reason": "text",
    "given": "text",
    "refused": "a boolean",
    "versions": "a table of versions",
}

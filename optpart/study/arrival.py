"""Results from elsewhere, rebuilt from their documents and verified again."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeVar, cast, get_args

from optpart.base.choices import choice
from optpart.base.errors import InputError
from optpart.interop.formats.json import sequence, version
from optpart.interop.formats.result import (
    FORMAT,
    claim,
    constraints,
    schedule_from_dict,
    termination,
)
from optpart.problem.instance import Instance
from optpart.problem.rational import rational
from optpart.solution.audit import audited
from optpart.solution.goal import BOUND_KEYS, Measure, Objective
from optpart.solution.result import Progress, Result, Status, with_claim
from optpart.solution.termination import Termination

Value = TypeVar("Value")

#: More seconds than any run takes; every smaller number fits a double.
_LONGEST = 10**12


def rebuild(document: Any, instance: Instance) -> Result:
    """Build the result that a document describes.

    The schedule is verified, and everything else in the document must agree with it. Bounds are
    taken from the document: of one that comes from a file,
    :func:`~optpart.solution.result.only_claimed` makes them claims.

    Raises
    ------
    InputError
        If the document is not a result, belongs to another instance, or contradicts itself.
    """
    version(document, FORMAT)
    if document.get("instance_sha256") != instance.sha256:
        raise InputError(
            "instance_sha256", "belongs to another instance", "give a result of this instance"
        )
    reason = _field(document, "reason", str, "")
    schedule = document.get("schedule")
    contiguous, device_order = constraints(document, instance)
    claimed = Result(
        instance,
        _field(document, "method", str),
        _status(document.get("status")),
        values=_numbers(document, {measure: measure for measure in BOUND_KEYS}),
        bounds=_numbers(document, BOUND_KEYS),
        schedule=None if schedule is None else schedule_from_dict(schedule, instance),
        reason=reason,
        seconds=_seconds(document.get("seconds", 0), "seconds"),
        seed=_field(document, "seed", int, 0),
        workers=_field(document, "workers", int, 1),
        trace=tuple(
            _step(entry, f"trace[{i}]")
            for i, entry in enumerate(sequence(document.get("trace", []), "trace"))
        ),
        versions=_versions(document.get("versions", {})),
        objective=_objective(document.get("objective", "makespan")),
        given=_field(document, "given", str, ""),
        refused=_field(document, "refused", bool, False),
        termination=termination(document),
        contiguous=contiguous,
        device_order=device_order,
    )
    if claimed.termination is Termination.PROVEN and not claimed.status.proven:
        problem = f"{claimed.termination}, but the status is {claimed.status}"
        raise InputError("termination", problem, "give a result as optpart writes it")
    result = audited(claimed, instance, claimed.method, claimed.seed)
    if result.refused and not claimed.refused:
        raise InputError("", result.reason, "give a result as optpart writes it")
    return with_claim(result, claim(document))


def _field(
    document: Mapping[str, Any], key: str, kind: type[Value], default: Value | None = None
) -> Value:
    value = document.get(key, default)
    if not isinstance(value, kind):
        raise InputError(key, f"not a {kind.__name__}", "give a result as optpart writes it")
    return value


def _numbers(document: Any, keys: Mapping[Measure, str]) -> dict[Measure, Fraction]:
    read = {measure: _number(document.get(key), key) for measure, key in keys.items()}
    return {measure: value for measure, value in read.items() if value is not None}


def _number(value: Any, place: str) -> Fraction | None:
    return None if value is None else rational(value, place)


def _seconds(value: Any, place: str) -> float:
    exact = rational(value, place)
    if not 0 <= exact <= _LONGEST:
        raise InputError(place, "no duration", "give seconds")
    return float(exact)


def _step(entry: Any, place: str) -> Progress:
    if len(sequence(entry, place)) != 3:
        raise InputError(place, "not a triple", "give [seconds, value, bound]")
    seconds, objective, bound = entry
    return Progress(_seconds(seconds, place), _number(objective, place), _number(bound, place))


def _status(value: Any) -> Status:
    if value not in list(Status):
        raise InputError("status", f"unknown {value!r}", choice(value, Status))
    return Status(value)


def _objective(value: Any) -> Objective:
    if value not in get_args(Objective):
        raise InputError("objective", f"unknown {value!r}", choice(value, get_args(Objective)))
    return cast(Objective, value)


def _versions(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise InputError("versions", "not an object of strings", "give a version per package")
    return value

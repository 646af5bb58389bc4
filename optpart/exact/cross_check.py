"""A second opinion on proven claims, by a method that shares no mathematics with the first."""

from __future__ import annotations

from optpart.base.errors import ContradictionError
from optpart.exact.enumeration import enumerate_all
from optpart.solution.goal import Goal, bound_of, exceeded
from optpart.solution.result import Budget, Result, Status

#: Larger instances would take enumeration longer than :data:`SECONDS`.
MAX_VERTICES = 9

#: Wall-clock seconds that a second opinion may take.
SECONDS = 0.1


def confirmed(result: Result, goal: Goal | None = None) -> Result:
    """Return the result of a small instance unless enumeration contradicts it.

    Parameters
    ----------
    result : Result
        Only claims of more than feasibility are checked, on at most :data:`MAX_VERTICES` vertices.
    goal : Goal, optional
        The goal that the result answers.

    Raises
    ------
    ContradictionError
        If enumeration, within :data:`SECONDS`, finds a schedule that the result excludes, or
        excludes the schedule of the result.
    """
    proven = result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    if not proven or result.method == "enumerate" or result.instance.vertices > MAX_VERTICES:
        return result
    other = enumerate_all(result.instance, budget=Budget(SECONDS, 1), goal=goal or Goal())
    compare(result, other)
    return result


def compare(one: Result, other: Result) -> None:
    """Raise :class:`ContradictionError` if two results for the same question exclude each other."""
    reason = _excludes(one, other) or _excludes(other, one)
    if reason:
        raise ContradictionError(
            f"{one.instance.name}: {reason}; one of them is wrong, please report this as a bug"
        )


def _excludes(one: Result, other: Result) -> str:
    """Return how a proof of the first contradicts a schedule of the second; empty if not."""
    if other.makespan is None or other.traffic is None:
        return ""
    found = f"{other.method} has a schedule of makespan {other.makespan}, traffic {other.traffic}"
    if one.status is Status.INFEASIBLE:
        return f"{one.method} says INFEASIBLE, {found}"
    excluded = exceeded(one.objective, one.bounds, other.values)
    if excluded is None:
        return ""
    if excluded == "bottleneck":
        found = f"{other.method} has a schedule of bottleneck {other.bottleneck}"
    return f"{one.method} has {bound_of(excluded)} {one.bounds[excluded]}, {found}"

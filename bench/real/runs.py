"""Solves, as rows that are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from bench.real.instances import Case, articulations
from bench.store import Values
from optpart.base.errors import ContradictionError, OptpartError, UnsupportedError
from optpart.interop.formats.result import to_dict
from optpart.methods import registry
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Status, conclude

#: What is minimised, and whether no path may leave a device and come back to it.
CONTIGUOUS = "contiguous "
GOALS = {
    "makespan": Goal(),
    f"{CONTIGUOUS}makespan": Goal(contiguous=True),
    "bottleneck": Goal("bottleneck"),
    f"{CONTIGUOUS}bottleneck": Goal("bottleneck", contiguous=True),
}
#: A contiguous split by a dynamic programme, with which the others are compared.
SPLIT = "contiguous-split+pct"
#: In the order in which they run: the first proof may spare the others.
METHODS = (SPLIT, "auto", "series", "cpsat", "milp", "search")


@dataclass(frozen=True)
class Run:
    """One solve; exact numbers as text.

    Attributes
    ----------
    sha256 : str
        Of the instance.
    seconds : float
        The limit.
    value, bound : str or None
        Of what the goal minimises, in nanoseconds.
    took : float
        Seconds.
    value_by, bound_by : str
        The members of a portfolio that gave them; empty for other methods.
    """

    group: str
    instance: str
    sha256: str
    vertices: int
    articulations: int
    devices: int
    goal: str
    method: str
    seconds: float
    workers: int
    status: str
    value: str | None
    bound: str | None
    took: float
    reason: str
    value_by: str
    bound_by: str

    @property
    def proven(self) -> bool:
        """Whether nothing is left to find."""
        return Status(self.status).proven

    @property
    def gap(self) -> float | None:
        """Relative, to its own bound."""
        if self.value is None or self.bound is None:
            return None
        return float(1 - Fraction(self.bound) / Fraction(self.value))


def parameters(case: Case, instance: Instance, goal: str, method: str) -> Values:
    """Return the parameters of a run but for its budget."""
    return {
        "group": case.group,
        "instance": case.name,
        "sha256": instance.sha256,
        "vertices": instance.vertices,
        "articulations": articulations(case.group, case.base),
        "devices": instance.devices,
        "goal": goal,
        "method": method,
    }


def unsupported(method: str, instance: Instance, goal: str) -> str:
    """Return why a method cannot run; of a pair of strategies, the placement is judged after."""
    pair = registry.split(method) is not None
    return registry.supports(method, instance, None if pair else GOALS[goal])


def outcome(instance: Instance, run: Values) -> Values:
    """Solve, and return the result of a run.

    Raises
    ------
    UnsupportedError
        If the method does not support the instance or the goal.
    """
    try:
        result = solved(instance, run["method"], GOALS[run["goal"]], run["seconds"], run["workers"])
    except (ContradictionError, UnsupportedError):
        raise
    except OptpartError as error:
        result = Result(instance, run["method"], Status.UNKNOWN, reason=str(error), refused=True)
    document = to_dict(result)
    bottleneck = result.objective == "bottleneck"
    names = ("bottleneck", "bottleneck_bound") if bottleneck else ("makespan", "lower_bound")
    return {
        "status": document["status"],
        "value": document[names[0]],
        "bound": document[names[1]],
        "took": round(result.seconds, 3),
        "reason": result.reason,
        "value_by": document.get("schedule_by", ""),
        "bound_by": document.get("bound_by", ""),
    }


def solved(instance: Instance, method: str, goal: Goal, seconds: float, workers: int) -> Result:
    """Solve for a goal; of a pair of strategies, which knows none, judge the schedule by it."""
    run: Callable[..., Result] = registry.get(method)
    budget = Budget(seconds, workers)
    if registry.takes_goal(method):
        return run(instance, budget=budget, goal=goal)
    made = run(instance, budget=budget)
    if goal == Goal():
        return made
    return conclude(
        instance, method, made.schedule, reason=made.reason, seconds=made.seconds, goal=goal
    )


def contradiction(results: Iterable[Values]) -> str:
    """Return the contradiction between results of the same instance and goal; empty if none."""
    rows = list(results)
    values = [Fraction(row["value"]) for row in rows if row["value"] is not None]
    bounds = [Fraction(row["bound"]) for row in rows if row["bound"] is not None]
    if values and any(row["status"] == Status.INFEASIBLE for row in rows):
        return f"infeasible, and a value of {min(values)}"
    if values and bounds and max(bounds) > min(values):
        return f"a bound of {max(bounds)}, and a value of {min(values)}"
    return ""

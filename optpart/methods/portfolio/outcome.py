"""The end of a member's work, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module

from optpart.base.errors import ContradictionError, MemoryLimitError, UnsupportedError
from optpart.solution.audit import described
from optpart.solution.goal import Measure
from optpart.solution.job import Job
from optpart.solution.result import Result, Status, Watch
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination


@dataclass(frozen=True)
class Outcome:
    """The end of a member's work: what other members can use of its result.

    Attributes
    ----------
    infeasible : str
        Why there is no schedule, if that is proven.
    contradiction : str
        How the member contradicts itself, which must stop the program; empty if it does not.
    """

    termination: Termination | None
    reason: str
    schedule: Schedule | None = None
    bounds: Mapping[Measure, Fraction] = field(default_factory=dict)
    infeasible: str = ""
    contradiction: str = ""


def run_member(path: str, job: Job, watch: Watch, late: float = 0.0, **options: object) -> Outcome:
    """Run a member; what goes wrong in it becomes its outcome.

    Parameters
    ----------
    path : str
        The location of its function, ``module:name``.
    late : float
        Seconds of the budget that are spent already.
    **options
        Further arguments of the member.

    Raises
    ------
    AssertionError, ContradictionError
        If the member contradicts itself.
    """
    module, _, name = path.partition(":")
    solve: Callable[..., Result] = getattr(import_module(module), name)
    budget = replace(job.budget, seconds=max(0.0, job.budget.seconds - late))
    try:
        result = solve(replace(job, budget=budget), watch, **options)
    except MemoryLimitError as error:
        return Outcome(Termination.MEMORY_LIMIT, error.problem)
    except UnsupportedError as error:
        return Outcome(Termination.UNSUPPORTED, error.problem)
    except (AssertionError, ContradictionError):
        raise
    except Exception as error:
        return Outcome(Termination.FAILED, described(error))
    infeasible = result.reason if result.status is Status.INFEASIBLE else ""
    return Outcome(result.termination, result.reason, result.schedule, result.bounds, infeasible)

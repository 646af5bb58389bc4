"""Messages between the process of a member and ``auto``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module

from optpart.errors import ContradictionError, MemoryLimitError, UnsupportedError
from optpart.exact.pruning import Pruning
from optpart.problem.instance import Instance
from optpart.solution.audit import described
from optpart.solution.goal import Goal
from optpart.solution.result import Budget, Result, Status, Watch
from optpart.solution.schedule import Schedule
from optpart.solution.termination import Termination


@dataclass(frozen=True)
class Job:
    """The task of a member.

    Attributes
    ----------
    path : str
        The location of its function.
    """

    path: str
    instance: Instance
    budget: Budget
    seed: int
    start: Schedule | None
    goal: Goal
    without: frozenset[Pruning]

    def run(self, watch: Watch, late: float = 0.0, **options: object) -> Outcome:
        """Run the member; what goes wrong in it becomes its outcome.

        Parameters
        ----------
        late : float
            Seconds of the budget that are spent already.
        options : object
            Further arguments of the member.

        Raises
        ------
        AssertionError, ContradictionError
            If the member contradicts itself.
        """
        module, _, name = self.path.partition(":")
        method: Callable[..., Result] = getattr(import_module(module), name)
        if self.without:
            options["without"] = self.without
        if self.goal != Goal():
            options["goal"] = self.goal
        left = max(0.0, self.budget.seconds - late)
        try:
            result = method(
                self.instance,
                budget=replace(self.budget, seconds=left),
                seed=self.seed,
                start=self.start,
                watch=watch,
                **options,
            )
        except MemoryLimitError as error:
            return Outcome(Termination.MEMORY_LIMIT, error.problem)
        except UnsupportedError as error:
            return Outcome(Termination.UNSUPPORTED, error.problem)
        except (AssertionError, ContradictionError):
            raise
        except Exception as error:
            return Outcome(Termination.FAILED, described(error))
        return outcome_of(result)


@dataclass(frozen=True)
class Step:
    """A better schedule, a better bound of the objective, or both."""

    schedule: Schedule | None
    bound: Fraction | None
    remark: str = ""


@dataclass(frozen=True)
class Outcome:
    """The end of a member's work.

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
    bound: Fraction | None = None
    traffic_bound: Fraction | None = None
    bottleneck_bound: Fraction | None = None
    infeasible: str = ""
    contradiction: str = ""


def outcome_of(result: Result) -> Outcome:
    """Return what other members can use of a result."""
    infeasible = result.status is Status.INFEASIBLE
    return Outcome(
        result.termination,
        result.reason,
        result.schedule,
        result.lower_bound,
        result.traffic_bound,
        result.bottleneck_bound,
        result.reason if infeasible else "",
    )

"""What is found about plans for run times that vary."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from optpart.solution.result import Result, Status
from optpart.study.robust.variation import Variation

GoalName = Literal["worst", "mean"]


@dataclass(frozen=True)
class Outcome:
    """What becomes of a plan.

    Attributes
    ----------
    nominal : Fraction
        Makespan at the instance's own times.
    makespans : tuple of Fraction
        In its order: in every sample or, for intervals, in the worst case alone.
    dispatched : tuple of Fraction
        With the same placement in every sample, where a device that falls idle starts what comes
        first in the order among what is ready; empty for intervals.
    overfull : int
        Samples in which that exceeds a limit of memory.
    least : Fraction, optional
        Makespan at the lower ends of intervals.
    """

    nominal: Fraction
    makespans: tuple[Fraction, ...]
    dispatched: tuple[Fraction, ...] = ()
    overfull: int = 0
    least: Fraction | None = None

    @property
    def worst(self) -> Fraction:
        """The longest makespan."""
        return max(self.makespans)

    @property
    def mean(self) -> Fraction:
        """The mean makespan."""
        return sum(self.makespans, Fraction(0)) / len(self.makespans)


@dataclass(frozen=True)
class Point:
    """A point of the price of robustness.

    Attributes
    ----------
    parameter : Fraction
        Vertices that deviate at most or, for samples, the weight of the goal beside the nominal
        makespan.
    nominal, value : Fraction
        Nominal makespan, and worst or mean makespan, of the plan that is best for the parameter.
    proven : bool
        Whether it is proven to be the best.
    """

    parameter: Fraction
    nominal: Fraction
    value: Fraction
    proven: bool


@dataclass(frozen=True, eq=False)
class Robust:
    """The best plan that was found, and what is proven about it.

    Attributes
    ----------
    variation : Variation
    goal : {"worst", "mean"}
    deviations : int, optional
    result : Result
        The plan at the instance's own times.
    status : Status
        ``OPTIMAL`` if no plan has a better worst or mean makespan.
    value, bound : Fraction, optional
        That makespan, and its proven lower bound.
    shortest : bool
        Whether also no plan of this value has a smaller nominal makespan.
    outcome, usual : Outcome, optional
        Of the plan, and of the one with the least nominal makespan of all that were found and are
        valid at all times.
    curve : tuple of Point
    cases : int
        Times for which the model was solved.
    reason : str
    """

    variation: Variation
    goal: GoalName
    deviations: int | None
    result: Result
    status: Status
    value: Fraction | None = None
    bound: Fraction | None = None
    shortest: bool = False
    outcome: Outcome | None = None
    usual: Outcome | None = None
    curve: tuple[Point, ...] = ()
    cases: int = 0
    reason: str = ""

    def to_dict(self) -> dict[str, object]:
        """Return the figures for a JSON document; exact numbers are texts."""

        def shown(outcome: Outcome | None) -> object:
            return None if outcome is None else {
                "nominal": str(outcome.nominal),
                "makespans": [str(time) for time in outcome.makespans],
                "dispatched": [str(time) for time in outcome.dispatched],
                "overfull": outcome.overfull,
                "least": None if outcome.least is None else str(outcome.least),
            }  # fmt: skip

        return {
            "varies": self.variation.words,
            "goal": self.goal,
            "deviations": self.deviations,
            "status": str(self.status),
            "value": None if self.value is None else str(self.value),
            "bound": None if self.bound is None else str(self.bound),
            "shortest": self.shortest,
            "plan": shown(self.outcome),
            "nominal_plan": shown(self.usual),
            "curve": [
                {"parameter": str(p.parameter), "nominal": str(p.nominal), "value": str(p.value),
                 "proven": p.proven} for p in self.curve
            ],
            "reason": self.reason,
        }  # fmt: skip

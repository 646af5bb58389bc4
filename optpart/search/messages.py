"""What a searcher in a process of its own and its caller tell each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from optpart.problem.instance import Instance
from optpart.search.evaluator import Value
from optpart.search.plan import Layout
from optpart.search.searcher import Manner
from optpart.solution.goal import Objective


@dataclass(frozen=True)
class Job:
    """What to search, and for how long.

    Attributes
    ----------
    bound_seconds : float
        What to spend on a bound first; 0 for none.
    makespan : Fraction, optional
        Of a schedule that is known.
    """

    manner: Manner
    instance: Instance
    start: Layout
    objective: Objective
    seed: tuple[int, ...]
    seconds: float
    bound_seconds: float
    makespan: Fraction | None


@dataclass(frozen=True)
class Found:
    """A layout that is better than any that its finder knew."""

    layout: Layout
    value: Value


@dataclass(frozen=True)
class Bounded:
    """A proven bound; ``None`` says that no schedule exists."""

    value: Fraction | None


@dataclass(frozen=True)
class Moves:
    """How many moves a searcher has made, and how often each operator has paid."""

    count: int
    paid: Counter[str]

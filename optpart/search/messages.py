"""Messages between a searcher's worker process and its caller."""

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
class SearcherTask:
    """A search task and its limits.

    Attributes
    ----------
    bound_seconds : float
        Time limit of the initial bound; 0 to skip it.
    makespan : Fraction, optional
        Makespan of the best known schedule.
    memory : int, optional
        Bytes that the searcher and its solver may hold together.
    """

    manner: Manner
    instance: Instance
    start: Layout
    objective: Objective
    seed: tuple[int, ...]
    seconds: float
    bound_seconds: float
    makespan: Fraction | None
    memory: int | None


@dataclass(frozen=True)
class Improvement:
    """A layout better than any known to its searcher."""

    layout: Layout
    value: Value


@dataclass(frozen=True)
class Bounded:
    """A proven bound; ``None`` means that no schedule exists."""

    value: Fraction | None


@dataclass(frozen=True)
class Moves:
    """The number of moves of a searcher, the number of new bests per operator, what it lacks."""

    count: int
    improvements: Counter[str]
    missing: tuple[str, ...] = ()

"""The job of a method, and the form that all methods have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, Protocol

from optpart.base.limits import check_seed
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.pruning import NONE, Pruning
from optpart.solution.result import Budget, Result, Watch
from optpart.solution.schedule import Schedule


@dataclass(frozen=True, eq=False)
class Job:
    """What a method is asked, and what it may use.

    Attributes
    ----------
    goal : Goal
        The question; by default, the least makespan.
    start : Schedule or None
        A schedule to start from, beside what the method finds itself.
    without : frozenset of Pruning
        Pruning rules to leave out. This is slower; the answer is the same if every rule is sound.

    Raises
    ------
    InputError
        If the goal names something that the instance does not have, or the seed is out of range.
    """

    instance: Instance
    goal: Goal = Goal()  # noqa: RUF009, which is immutable
    budget: Budget = Budget()  # noqa: RUF009
    seed: int = 0
    start: Schedule | None = None
    without: frozenset[Pruning] = NONE

    def __post_init__(self) -> None:
        check_seed(self.seed)
        self.goal.check(self.instance)

    def require_kept_start(self) -> Schedule | None:
        """Return the start; raise :class:`InputError` if it contradicts what the goal gives."""
        if self.start is not None:
            self.goal.require_kept(self.instance, self.start)
        return self.start


class Method(Protocol):
    """A method as users call it (design §4)."""

    def __call__(
        self, instance: Instance, /, *, watch: Watch | None = None, **asked: Any
    ) -> Result:
        """Solve an instance; ``asked`` are the other fields of a :class:`Job`."""
        ...


_ASKED = frozenset(field.name for field in fields(Job)) - {"instance"}


def method(solve: Callable[..., Result]) -> Callable[..., Result]:
    """Let a function of a :class:`Job` also be called with an instance and fields by keyword.

    A field that is ``None`` has its default. Further keywords are the method's own.
    """

    @wraps(solve)
    def call(subject: Job | Instance, watch: Watch | None = None, **options: Any) -> Result:
        if isinstance(subject, Job):
            return solve(subject, watch, **options)
        asked = {name: options.pop(name) for name in _ASKED & options.keys()}
        job = Job(subject, **{name: value for name, value in asked.items() if value is not None})
        return solve(job, watch, **options)

    return call

"""The strategies that a bound covers: the actions that each group may choose among."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optpart.applications.training.compiled import STANDARD, Options
from optpart.applications.training.problem import StrategyProblem
from optpart.applications.training.strategy import Decision, Strategy
from optpart.base.errors import InputError


@dataclass(frozen=True, eq=False)
class Choices:
    """The strategies of a problem that choose one of the listed actions for every group.

    Attributes
    ----------
    actions : sequence of sequence of Decision
        The distinct actions of each group.

    Raises
    ------
    InputError
        If any strategy of these actions would not fit the graph and the cluster, or options are
        not those that the bounds hold for.
    """

    problem: StrategyProblem
    actions: Sequence[Sequence[Decision]]

    def __post_init__(self) -> None:
        check_options(self.problem.options)
        groups = len(self.problem.groups)
        if len(self.actions) != groups:
            raise InputError(
                "actions", f"{len(self.actions)} lists", f"give {groups}, one per group"
            )
        for g, actions in enumerate(self.actions):
            if not actions or len(set(actions)) < len(actions):
                raise InputError(f"actions[{g}]", "none or repeated", "give distinct actions")
        for i in range(max(map(len, self.actions))):
            chosen = [min(i, len(actions) - 1) for actions in self.actions]
            self.strategy(chosen).check(self.problem.graph, self.problem.cluster)

    def strategy(self, chosen: Sequence[int]) -> Strategy:
        """Return the strategy of one action, by number, per group."""
        return self.problem.strategy([self.actions[g][a] for g, a in enumerate(chosen)])


def check_options(options: Options, names: Iterable[str] = tuple(STANDARD)) -> None:
    """Check that strategies are compiled in the way that a bound describes."""
    for name in names:
        if getattr(options, name) != STANDARD[name]:
            raise InputError(
                name,
                f"{getattr(options, name)}, for which this bound does not hold",
                f"choose {STANDARD[name]}",
            )

"""The problem that strategy makers solve, and the strategies that a lower bound covers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from optpart.applications.training.cluster import TrainingCluster
from optpart.applications.training.compiled import STANDARD, Options
from optpart.applications.training.graph import TrainingGraph
from optpart.applications.training.strategy import Decision, Strategy, check_groups
from optpart.base.errors import InputError


@dataclass(frozen=True, eq=False)
class StrategyProblem:
    """Find a decision for every group such that an iteration ends as early as possible.

    Attributes
    ----------
    batch : int
        Samples of one iteration.
    groups : tuple of tuple of int
        Operations that get the same decision; by default the least that a strategy allows, the
        operations that share parameters
        (:attr:`~optpart.applications.training.graph.TrainingGraph.tied`).
    options : Options
        How strategies are compiled.

    Raises
    ------
    InputError
        If groups do not partition the operations, the batch is empty, or the graph has no times
        for the kind of a device.
    """

    graph: TrainingGraph
    cluster: TrainingCluster
    batch: int
    groups: tuple[tuple[int, ...], ...] = ()
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        if not self.groups:
            object.__setattr__(self, "groups", self.graph.tied)
        check_groups(self.graph, self.groups)
        if self.batch < 1:
            raise InputError("batch", f"{self.batch} samples", "give at least one")
        self.kind  # noqa: B018 (refuses unknown kinds)

    @cached_property
    def kind(self) -> tuple[int, ...]:
        """Place of each device's kind among the kinds of the graph."""
        return self.cluster.kind_indices(self.graph.kinds)

    @cached_property
    def group_of(self) -> tuple[int, ...]:
        """Group of each operation."""
        home = {o: g for g, group in enumerate(self.groups) for o in group}
        return tuple(home[o] for o in range(len(self.graph)))

    def strategy(self, decisions: Sequence[Decision]) -> Strategy:
        """Return the strategy of one decision per group."""
        return Strategy(self.batch, self.groups, tuple(decisions))


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

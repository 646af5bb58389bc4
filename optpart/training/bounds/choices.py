"""The strategies that a bound covers: the actions that each group may choose among."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from optpart.errors import InputError
from optpart.training.cluster import TrainingCluster
from optpart.training.compiler import Options
from optpart.training.graph import TrainingGraph
from optpart.training.problem import StrategyProblem
from optpart.training.strategy import Decision, Strategy


@dataclass(frozen=True, eq=False)
class Choices:
    """The strategies that choose one of the listed actions for every group.

    Attributes
    ----------
    graph : TrainingGraph
    cluster : TrainingCluster
    batch : int
    groups : tuple of tuple of int
        Every operation is in exactly one group; a gradient and the applies that read it share one.
    actions : tuple of tuple of Decision
        The distinct actions of each group.
    options : Options
        How strategies are compiled.

    Raises
    ------
    InputError
        If any strategy of these actions would not fit the graph and the cluster, or options are
        not those that the bounds hold for.
    """

    graph: TrainingGraph
    cluster: TrainingCluster
    batch: int
    groups: tuple[tuple[int, ...], ...]
    actions: tuple[tuple[Decision, ...], ...]
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        check_options(self.options)
        if len(self.actions) != len(self.groups):
            raise InputError(
                "actions", f"{len(self.actions)} lists", f"give {len(self.groups)}, one per group"
            )
        for g, actions in enumerate(self.actions):
            if not actions or len(set(actions)) < len(actions):
                raise InputError(f"actions[{g}]", "none or repeated", "give distinct actions")
        for i in range(max(map(len, self.actions))):
            chosen = tuple(actions[min(i, len(actions) - 1)] for actions in self.actions)
            Strategy(self.batch, self.groups, chosen).check(self.graph, self.cluster)

    @classmethod
    def of(cls, problem: StrategyProblem, actions: Sequence[Sequence[Decision]]) -> Self:
        """Return the strategies of a problem that choose among actions per group."""
        return cls(
            problem.graph,
            problem.cluster,
            problem.batch,
            problem.groups,
            tuple(tuple(row) for row in actions),
            problem.options,
        )

    @cached_property
    def group_of(self) -> tuple[int, ...]:
        """Group of each operation."""
        home = {o: g for g, group in enumerate(self.groups) for o in group}
        return tuple(home[o] for o in range(len(self.graph)))

    def strategy(self, chosen: Sequence[int]) -> Strategy:
        """Return the strategy of one action, by number, per group."""
        decisions = tuple(self.actions[g][a] for g, a in enumerate(chosen))
        return Strategy(self.batch, self.groups, decisions)


#: The values of options that the bounds describe.
_DESCRIBED = {
    "replicas": "fused",
    "resharding": "overlap",
    "collectives": "queue",
    "topology": "pairs",
    "microbatches": 1,
}


def check_options(options: Options, names: Iterable[str] = tuple(_DESCRIBED)) -> None:
    """Check that strategies are compiled in the way that a bound describes.

    Raises
    ------
    InputError
        Naming the option and the value that it must have.
    """
    for name in names:
        if getattr(options, name) != _DESCRIBED[name]:
            raise InputError(
                name,
                f"{getattr(options, name)}, for which this bound does not hold",
                f"choose {_DESCRIBED[name]}",
            )

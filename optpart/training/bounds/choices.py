"""What strategies a bound ranges over: the actions that each group may choose among."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from optpart.errors import InputError
from optpart.training.cluster import TrainingCluster
from optpart.training.graph import CONTROL, Layout, TrainingGraph
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
    tick : Fraction or None
        Durations and transfers are rounded up to multiples of this many nanoseconds.
    auxiliary : {"memory", "free"}
        Whether Split, Concat and AddN take the time to copy their bytes.
    slots : int
        Tensors of the optimiser per parameter.

    Raises
    ------
    InputError
        If any strategy of these actions would not fit the graph and the cluster.
    """

    graph: TrainingGraph
    cluster: TrainingCluster
    batch: int
    groups: tuple[tuple[int, ...], ...]
    actions: tuple[tuple[Decision, ...], ...]
    tick: Fraction | None = Fraction(1)
    auxiliary: Literal["memory", "free"] = "memory"
    slots: int = 2

    def __post_init__(self) -> None:
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
        for e, edge in enumerate(self.graph.edges):
            if edge.output == CONTROL:
                continue
            output = self.graph.operations[edge.producer].outputs[edge.output]
            if (
                output.layout is Layout.SUMMED
                and self.group_of[edge.producer] != self.group_of[edge.consumer]
            ):
                raise InputError(
                    f"edges[{e}]",
                    "a gradient and the apply that reads it are in two groups",
                    "put them into one",
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

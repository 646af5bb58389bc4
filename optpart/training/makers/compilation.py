"""Compiling the loops of makers before any clock runs.

Loops are compiled at their first call and kept on disk. Without this, the first run on a machine
would spend its time limit on that, and find less than all later ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache

from optpart.problem.cluster import Cluster, Device
from optpart.training.cluster import TrainingCluster
from optpart.training.graph import (
    Edge,
    Layout,
    Line,
    Operation,
    Output,
    Parameter,
    Role,
    TrainingGraph,
)
from optpart.training.makers import MAKERS
from optpart.training.makers.base import Budget
from optpart.training.problem import StrategyProblem

#: Enough for every loop of every maker to run, which takes milliseconds once they are compiled.
_MOVES = Budget(moves=1000)


def compile_loops(names: Iterable[str]) -> None:
    """Run makers once on a tiny problem, so that all of their loops are compiled."""
    for name in names:
        _run(name)


@cache
def _run(name: str) -> None:
    MAKERS[name](_tiny(), budget=_MOVES, seed=0)


def _tiny() -> StrategyProblem:
    """Return three layers on two devices."""
    layers = range(3)
    time = (Line(Fraction(0), Fraction(1)),)
    sample = Output(Layout.BATCHED, Line(Fraction(0), Fraction(1)))
    gradient = Output(Layout.SUMMED, Line(Fraction(1)))
    operations = (
        *(Operation(f"forward {i}", Role.FORWARD, time, (sample,)) for i in layers),
        *(Operation(f"backward {i}", Role.BACKWARD, time, (gradient, sample)) for i in layers),
        *(Operation(f"apply {i}", Role.APPLY, (Line(),)) for i in layers),
    )
    edges = (
        *(Edge(i, 0, i + 1) for i in (0, 1)),
        Edge(2, 0, 5),  # the loss
        *(Edge(i + 1, 1, i) for i in (3, 4)),
        *(Edge(i + 3, 0, i + 6) for i in layers),
    )
    parameters = tuple(Parameter(f"weights {i}", Fraction(1), (i, i + 3, i + 6)) for i in layers)
    graph = TrainingGraph("tiny", ("device",), operations, edges, parameters)
    cluster = TrainingCluster(
        Cluster.of([Device(f"device {d}") for d in range(2)], latency=1),
        ("device",) * 2,
        (0, 0),
        (None, None),
    )
    return StrategyProblem(graph, cluster, 4)

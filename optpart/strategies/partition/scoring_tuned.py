"""Scoring with the weights that suit an instance best ([B] §5.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np

from optpart.base.clock import is_time_up
from optpart.kernels.tasks import tasks
from optpart.problem.instance import Instance
from optpart.strategies.base import NoPlacementError, Partition
from optpart.strategies.partition.scoring import FRINGE, scored
from optpart.strategies.partition.unit_graph import unit_graph
from optpart.strategies.scheduling.pct import pct
from optpart.strategies.simulator import execute

#: Weights of load, that of communication being 1: first the order of magnitude (figure 5.7a), ...
_MAGNITUDES = (1.0, 1e-1, 1e1, 1e-2, 1e2, 1e-3, 1e3)
#: ... then factors of the best (figure 5.7b: 0.1 to 7.5 around 1), ...
_FACTORS = (0.1, 0.25, 0.5, 0.75, 1.5, 2.5, 5.0, 7.5)
#: ... then the best so far and tenths of the magnitude (figure 5.7c: 0.7 to 1.5 around 1).
_TENTHS = (-3, -2, -1, 1, 2, 3, 4, 5)


class _Trial(NamedTuple):
    """The result for a ratio of the weights; no partition if none was found."""

    makespan: float
    ratio: float
    partition: Partition | None


def scoring_tuned(instance: Instance, rng: np.random.Generator) -> Partition:
    """Place by ``scoring`` with the best ratio of its weights.

    [B] §5.4: the weight of communication is 1, and that of load is searched for: first its order of
    magnitude, then more finely around the best, then to 0.1 of the magnitude; 23 ratios in all. [B]
    measures step times; here the makespan of an execution under path computation time decides. Ties
    go to the ratio nearest 1. When a time limit is over, the best ratio so far is the choice.

    Notes
    -----
    Makespans are those of :func:`~optpart.strategies.simulator.execute`, in doubles; under
    ``port``, transfers queue for ports only in the schedule made from the result.
    """
    graph = unit_graph(instance)
    tried = 0

    def attempt(ratio: float) -> _Trial:
        nonlocal tried
        if tried and is_time_up():
            return _Trial(math.inf, ratio, None)
        tried += 1
        try:
            partition = scored(instance, graph, ratio, 1.0, FRINGE)
        except NoPlacementError:
            return _Trial(math.inf, ratio, None)
        return _Trial(_makespan(instance, partition, rng), ratio, partition)

    def best_of(*trials: Iterable[_Trial]) -> _Trial:
        return min(chain(*trials), key=lambda trial: (trial.makespan, abs(math.log(trial.ratio))))

    best = best_of(map(attempt, _MAGNITUDES))
    magnitude = best.ratio
    best = best_of([best], (attempt(magnitude * factor) for factor in _FACTORS))
    ratios = [best.ratio + magnitude * tenths / 10 for tenths in _TENTHS]
    best = best_of([best], (attempt(ratio) for ratio in ratios if ratio > 0))
    # Without a placement, running it again raises the error that names the unit.
    return best.partition or scored(instance, graph, 1.0, 1.0, FRINGE)


def _makespan(instance: Instance, partition: Partition, rng: np.random.Generator) -> float:
    work = tasks(instance, partition.placement)
    start = execute(work, pct(work, partition, rng)).start
    return float((start + work.duration).max(initial=0.0))

"""The state of large-neighbourhood search: a layout, its times, and its freed units."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from optpart.search.evaluator import Evaluator, Value
from optpart.search.plan import Floats, Ints, Layout, by_start


@dataclass(frozen=True, eq=False)
class State:
    """A layout with its times, sorted by start, or nearly so if transfers queue.

    Attributes
    ----------
    at : Evaluator
    layout : Layout
    value : tuple of float
    cost : float
        The value as one number.
    weights : tuple of float
        Weights of makespan, traffic and excess memory in the cost; equal for all states compared.
    size : int
        Approximate number of vertices that an operator frees.
    start, end, tail : ndarray of float64, length n
    delay : ndarray of float64, one per in-edge
    freed : ndarray of int32
        Units to be placed again.
    """

    at: Evaluator
    layout: Layout
    value: Value
    cost: float
    weights: tuple[float, float, float]
    size: int
    start: Floats
    end: Floats
    tail: Floats
    delay: Floats
    freed: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    def objective(self) -> float:
        """Return the cost that ALNS compares."""
        return self.cost

    def freeing(self, vertices: NDArray[np.integer]) -> State:
        """Return the same state with the units of these vertices freed."""
        units = np.unique(self.at.arrays.unit[vertices])
        return replace(self, freed=units.astype(np.int32))


def valued(at: Evaluator, weights: tuple[float, float, float], size: int) -> State:
    """Return the state of the evaluator's plan, whose times need not be up to date."""
    p = at.plan
    at.refresh()
    value = at.value()
    if at.rules.whole:
        _executed(at)
        # If transfers queue, another order of the vertices means another order of the queues.
        p.order[:] = by_start(p)
        at.refresh()
        value = at.value()
        _executed(at)
        order = p.order.copy()
    else:
        order = by_start(p)
    layout = Layout(p.device.copy(), order, p.eager.copy())
    times = (p.start.copy(), p.end.copy(), p.tail.copy(), p.delay.copy())
    return State(at, layout, value, at.cost(value, weights), weights, size, *times)


def _executed(at: Evaluator) -> None:
    at.plan.start[:], at.plan.end[:] = at.execution.start, at.execution.end

"""A search that begins on few devices and admits more of them step by step.

On a cluster of many devices, most draws of a device are of one that no good schedule uses, and good
schedules for the fastest few are found sooner. They remain schedules of the whole cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from optpart.kernels.compiled import arrays
from optpart.problem.instance import Instance
from optpart.search.evaluator import Evaluator, Value
from optpart.search.layout import repaired
from optpart.search.plan import Layout
from optpart.search.searching import Searcher
from optpart.strategies.base import NoPlacementError
from optpart.strategies.partition.heft import heft

#: The number of devices in each stage but the last, and the share of the budget at its end.
STAGES = ((8, 0.2), (16, 0.4))


def fastest(instance: Instance, count: int) -> Instance | None:
    """Return the instance with only the fastest of the devices that each unit may use.

    Returns
    -------
    Instance or None
        ``None`` if no unit has more devices to choose from than ``count``.
    """
    if int(instance.allowed.sum(axis=1).max(initial=0)) <= count:
        return None
    a = arrays(instance)
    work = 1.0 / a.speed
    if len(a.durations):
        possible = instance.vertex_allowed
        work = (a.durations * possible).sum(axis=0) / np.maximum(1, possible.sum(axis=0))
    names = instance.cluster.names
    rows, row_of = np.unique(instance.allowed, axis=0, return_inverse=True)
    kept = []
    for row in rows:
        devices = np.flatnonzero(row)
        first = devices[np.argsort(work[devices], kind="stable")[:count]]
        kept.append(tuple(names[d] for d in sorted(first.tolist())))
    chosen = row_of.ravel()[instance.unit_of].tolist()
    allowed = {v: kept[row] for v, row in enumerate(chosen)}
    return replace(instance, graph=replace(instance.graph, allowed_devices=allowed))


def start_on(instance: Instance, rng: np.random.Generator) -> Layout | None:
    """Return a first layout: that of HEFT, or any feasible one; ``None`` if none is found."""
    try:
        partition = heft(instance, rng)
    except NoPlacementError:
        return repaired(instance, None, rng)
    assert partition.order is not None
    return Layout(
        partition.placement.astype(np.int32),
        np.array(partition.order, dtype=np.int32),
        np.ones(instance.graph.tensors, dtype=np.bool_),
    )


#: Creates a searcher for an instance, from a layout, with a share of the budget.
Make = Callable[[Instance, Layout, float], Searcher]


class Widening:
    """A searcher in stages: on the fastest devices, on more of them, and on all.

    Attributes
    ----------
    best : Layout
    value : tuple of float
        On the whole cluster, as are those of the searchers of all stages but for their unit.
    """

    def __init__(
        self, instance: Instance, evaluator: Evaluator, start: Layout, rng: np.random.Generator,
        make: Make,
    ) -> None:  # fmt: skip
        self.evaluator = evaluator
        self._instance = instance
        self._rng = rng
        self._make = make
        self._moves = self._effort = 0
        self._paid: Counter[str] = Counter()
        evaluator.enter(start)
        self.best, self.value = start, evaluator.value()
        self._left = list(STAGES)
        self._begin = self._end = 0.0
        self._now: Searcher | None = None

    @property
    def moves(self) -> int:
        """Return the number of changes tried."""
        return self._moves + (self._now.moves if self._now is not None else 0)

    @property
    def effort(self) -> int:
        """Return the effort so far, in equivalent annealing moves."""
        return self._effort + (self._now.effort if self._now is not None else 0)

    @property
    def paid(self) -> Counter[str]:
        """Return how often each operator led to a new best of its stage."""
        return self._paid + (self._now.paid if self._now is not None else Counter())

    def offer(self, layout: Layout, value: Value) -> None:
        """Take another searcher's best into account; it may use any device."""
        if value < self.value:
            self.best, self.value = layout, value
            if self._now is not None and not self._left and self._end == 1.0:
                self._now.offer(layout, value)

    def step(self, share: float) -> bool:
        """Search briefly; return whether the best layout improved.

        Parameters
        ----------
        share : float
            Share of the budget spent so far.
        """
        if self._now is None or share >= self._end:
            self._widen(share)
        assert self._now is not None
        length = max(self._end - self._begin, 1e-9)
        return self._now.step((share - self._begin) / length) and self._improved(self._now)

    def _improved(self, now: Searcher) -> bool:
        self.evaluator.enter(now.best)
        value = self.evaluator.value()
        if not value < self.value:
            return False
        self.best, self.value = now.best, value
        return True

    def _widen(self, share: float) -> None:
        """Begin the next stage that has not ended yet and has a placement."""
        last = self._now
        if last is not None:
            self._moves, self._effort = self.moves, self.effort
            self._paid = self.paid
        while self._left:
            count, end = self._left.pop(0)
            if share < end and (few := fastest(self._instance, count)) is not None:
                start = last.best if last is not None else start_on(few, self._rng)
                if start is not None:
                    self._begin, self._end = share, end
                    self._now = self._make(few, start, end - share)
                    return
        self._begin, self._end = share, 1.0
        self._now = self._make(self._instance, self.best, 1.0 - share)

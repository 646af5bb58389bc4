"""Initial placements in contiguous blocks: a topological order, cut into one part per device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base.errors import InputError
from optpart.exact.retiming import prompt
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal
from optpart.solution.schedule import Schedule

#: Most places where the order may be cut, and most orders of devices that are tried.
_CUTS, _ORDERS = 400, 24


class _Parts(NamedTuple):
    """The cost of a part from one place to another, per device; infinite if it does not fit."""

    cuts: NDArray[np.int64]
    cost: list[NDArray[np.float64]]


def block_placements(instance: Instance, goal: Goal) -> Iterator[NDArray[np.int32]]:
    """Yield placements along an order of devices, at most one of least load and one of least time.

    Parts of a topological order are contiguous blocks along the order of their devices. Costs are
    sums of run times in floating point; separation and transfers do not count, so that a placement
    need not be valid.
    """
    if not instance.vertices:
        return
    order = instance.graph.topological_order
    parts = _parts(instance, order)
    devices = range(instance.devices)
    orders = [goal.device_order] if goal.device_order else islice(permutations(devices), _ORDERS)
    tried = list(orders)
    for join in (np.maximum, np.add):
        value, where, ends = min(
            (_cut(parts, along, join) for along in tried), key=lambda found: found[0]
        )
        if np.isfinite(value):
            placement = np.empty(instance.vertices, dtype=np.int32)
            since = 0
            for d, end in zip(where, ends, strict=True):
                placement[order[since:end]] = d
                since = end
            yield placement


def block_schedules(instance: Instance, goal: Goal) -> Iterator[Schedule]:
    """Yield schedules of the placements of :func:`block_placements` for which links exist."""
    for placement in block_placements(instance, goal):
        with suppress(InputError):
            yield prompt(instance, placement)


def _parts(instance: Instance, order: NDArray[Any]) -> _Parts:
    """Return the places where the order may be cut, outside all units, and the costs of parts."""
    n, unit = instance.vertices, instance.unit_of[order]
    first, last = np.full(len(instance.units), n), np.zeros(len(instance.units), dtype=np.int64)
    np.minimum.at(first, unit, np.arange(n))
    np.maximum.at(last, unit, np.arange(n))
    spans = np.zeros(n + 1, dtype=np.int64)
    np.add.at(spans, first + 1, 1)
    np.add.at(spans, last + 1, -1)
    cuts = np.flatnonzero(np.cumsum(spans) == 0)
    if len(cuts) > _CUTS:
        cuts = cuts[np.linspace(0, len(cuts) - 1, _CUTS).round().astype(np.int64)]
    need = np.zeros(n)
    need[first] = instance.static_memory.floats
    cost = []
    for d in range(instance.devices):
        run = np.array([float(instance.duration(v, d)) for v in order.tolist()])
        capacity = instance.cluster.memory[d]
        time, barred = _between(run, cuts), _between(~instance.allowed[unit, d], cuts)
        fits = (time >= 0) & (barred == 0)
        if capacity is not None:
            fits &= _between(need, cuts) <= float(capacity)
        cost.append(np.where(fits, time, np.inf))
    return _Parts(cuts, cost)


def _between(values: NDArray[Any], cuts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of values from each cut (row) to each other (column)."""
    total = np.concatenate(([0.0], np.cumsum(values)))[cuts]
    # Sums of floating-point numbers may differ in their last digits.
    between: NDArray[np.float64] = total[None, :] - total[:, None]
    behind = np.arange(len(cuts))
    between[behind[:, None] == behind[None, :]] = 0.0
    between[behind[:, None] > behind[None, :]] = -1.0
    return between


def _cut(
    parts: _Parts, along: Sequence[int], join: Callable[..., Any]
) -> tuple[float, Sequence[int], list[int]]:
    """Return the least joint cost of parts along an order of devices, and where they end."""
    best = np.full(len(parts.cuts), np.inf)
    best[0] = 0.0
    chosen = []
    for d in along:
        joined = join(best[:, None], parts.cost[d])
        chosen.append(joined.argmin(axis=0))
        best = joined.min(axis=0)
    at = len(parts.cuts) - 1
    ends = []
    for since in reversed(chosen):
        ends.append(int(parts.cuts[at]))
        at = int(since[at])
    return float(best[-1]), along, ends[::-1]

"""Incremental traffic: recount only the tensors that moved vertices produce or consume."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optpart.kernels.compiled import Arrays, inner
from optpart.kernels.struct import Struct
from optpart.search.incremental import MOVED, Notes
from optpart.search.plan import Links, Plan
from optpart.solution.goal import Objective


class Crossed(Struct):
    """The number of crossings of each tensor.

    Attributes
    ----------
    counts : bool
        Whether traffic matters; otherwise nothing here is kept up to date.
    first : bool
        Whether traffic is the primary objective.
    size : ndarray of float64, length t
    times : ndarray of int32, length t
        Number of foreign devices that consume the tensor.
    total : ndarray of float64
        The traffic.
    seen : ndarray of int64, length k
        Devices met while counting one tensor, marked with the number of the count (the last entry).
    noted : ndarray of int64
        Length of the undo log.
    tensor, before : ndarray
        The undo log: previous counts of tensors.
    """

    counts: bool
    first: bool
    size: NDArray[np.float64]
    times: NDArray[np.int32]
    total: NDArray[np.float64]
    seen: NDArray[np.int64]
    noted: NDArray[np.int64]
    tensor: NDArray[np.int32]
    before: NDArray[np.int32]


def crossed(sizes: NDArray[np.float64], devices: int, edges: int, objective: Objective) -> Crossed:
    """Return an empty count."""
    t = len(sizes)
    counts = objective != "makespan"
    room = 2 * (t + edges) + 2 if counts else 0
    return Crossed(
        counts,
        objective == "traffic",
        sizes.copy(),
        np.zeros(t, dtype=np.int32),
        np.zeros(1),
        np.zeros(devices + 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(room, dtype=np.int32),
        np.zeros(room, dtype=np.int32),
    )


@inner
def _crossings(a: Arrays, g: Links, p: Plan, c: Crossed, tensor: Any) -> Any:
    k = p.last.shape[0]
    c.seen[k] += 1
    c.seen[p.device[a.tensor_vertex[tensor]]] = c.seen[k]
    found = 0
    for j in range(g.used_start[tensor], g.used_start[tensor + 1]):
        d = p.device[g.used_by[j]]
        if c.seen[d] != c.seen[k]:
            c.seen[d] = c.seen[k]
            found += 1
    return found


@inner
def count_all(a: Arrays, g: Links, p: Plan, c: Crossed) -> None:
    """Count every tensor."""
    c.total[0] = 0.0
    for tensor in range(c.times.shape[0]):
        c.times[tensor] = _crossings(a, g, p, c, tensor)
        c.total[0] += c.size[tensor] * c.times[tensor]


@inner
def count_moved(a: Arrays, g: Links, p: Plan, s: Notes, c: Crossed) -> None:
    """Count the tensors that a change may have touched."""
    c.noted[0] = 0
    for m in range(s.counts[MOVED]):
        v = s.moved[m]
        for j in range(g.made_start[v], g.made_start[v + 1]):
            _recount(a, g, p, c, g.made[j])
        for e in range(a.in_start[v], a.in_start[v + 1]):
            _recount(a, g, p, c, a.in_tensor[e])


@inner
def _recount(a: Arrays, g: Links, p: Plan, c: Crossed, tensor: Any) -> None:
    now = _crossings(a, g, p, c, tensor)
    if now != c.times[tensor]:
        j = c.noted[0]
        c.tensor[j], c.before[j] = tensor, c.times[tensor]
        c.noted[0] = j + 1
        c.total[0] += c.size[tensor] * (now - c.times[tensor])
        c.times[tensor] = now


@inner
def uncount(c: Crossed) -> None:
    """Roll the last count back."""
    for j in range(c.noted[0] - 1, -1, -1):
        tensor = c.tensor[j]
        c.total[0] += c.size[tensor] * (c.before[j] - c.times[tensor])
        c.times[tensor] = c.before[j]
    c.noted[0] = 0

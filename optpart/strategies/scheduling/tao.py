"""TAO, timing-aware ordering of transfers ([H] §4.2, algorithms 1 and 2)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.kernels.compiled import inner, kernel
from optpart.kernels.struct import Floats, Ints, Struct, WordMatrix
from optpart.kernels.tasks import Tasks
from optpart.strategies.base import Partition
from optpart.strategies.scheduling.transfers import (
    Outstanding,
    dependencies,
    has,
    impending,
    longest,
    outstanding,
    partitions,
    set_of,
    transfers,
)
from optpart.strategies.simulator import Priority

#: Steps times what each of them goes through, between two looks at the clock: about a tenth of a
#: second.
_WORK = 10**8


def tao(
    work: Tasks,
    partition: Partition,
    rng: np.random.Generator,
    *,
    variant: Literal["derived", "printed"] = "derived",
) -> Priority:
    """Prefer transfers by :func:`tao_order`; other tasks run in any order.

    [H] §3: a resource chooses at random among the executable ops of lowest number and those
    without a number. Here transfers have channels of their own, so that every resource has either
    ops with numbers or ops without; if they share one nevertheless, those without go first.
    """
    total = len(work.duration)
    value = np.zeros(total)
    task, rank = tao_rank(work, len(partition.placement), variant=variant)
    value[task] = -1.0 - rank
    return Priority(value, rng.permutation(total))


def tao_rank(
    work: Tasks, vertices: int, *, variant: Literal["derived", "printed"] = "derived"
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the transfers (see ``is_transfer``) and their priority.

    Parameters
    ----------
    vertices : int
        Number n of vertices; tasks from n on are transfers that queue.
    variant : {"derived", "printed"}
        ``derived``: ``A`` precedes ``B`` if ``min(P_B, M_A) < min(P_A, M_B)``, as in [H] eq. 5 and
        as follows from the makespans of two transfers. ``printed``: the comparator of algorithm 2
        as printed, which tests the opposite and chooses the worse order of [H] figure 2.

    Returns
    -------
    task, rank : ndarray of int64, one per transfer
        Ranks count from 0 in every partition, that is, for each worker separately ([H] §5).

    Notes
    -----
    Choices that the text leaves open:

    - With several channels, ``op.M`` takes the one with most outstanding time ([H] §4.1).
    - The comparator is not transitive ([H] says that it is), because ties of ``min(P, M)`` are
      not. So the minimum depends on how it is searched for: here in one pass by number, comparing
      each candidate with the best so far.

    Only sets that contain the chosen transfer are updated. Ops of equal dependencies count as one,
    and the sets stay sorted by ``op.M``, so that ``M⁺`` is found without examining most of them.
    """
    found = transfers(work, vertices)
    rank = np.zeros(len(found.task), dtype=np.int64)
    sets, load = dependencies(work, found)
    partition = partitions(found, sets)
    for part in np.unique(partition):
        mine = np.flatnonzero(partition == part).astype(np.int32)
        every = set_of(mine, sets.shape[1])
        rows = np.flatnonzero((sets & every).any(axis=1))
        selection = _Selection(
            state=outstanding(sets[rows], found, found.time),
            load=load[rows],
            mine=mine,
            channel=found.channel,
            time=found.time,
            every=every,
            directly=np.zeros(len(found.time)),
            order=np.empty(len(mine), dtype=np.int32),
        )
        _find_loads(selection)
        size = len(rows)
        steps = max(1, _WORK // (len(rows) * sets.shape[1] + len(mine)))
        for first in range(0, len(mine), steps):
            clock.check_time()
            last = min(first + steps, len(mine))
            size = _select(selection, variant == "printed", size, first, last)
        rank[selection.order] = np.arange(len(mine))
    return found.task, rank


class _Selection(Struct):
    """Algorithm 2 for some transfers, and the sets that contain any of them.

    Attributes
    ----------
    state : Outstanding
        Of these sets.
    load : ndarray of float64, one per set
    mine : ndarray of int32
        The transfers to choose from.
    channel : ndarray of int32, one per transfer
    time : ndarray of float64, one per transfer
    every : ndarray of uint64, 1 × words
        The set of the transfers that are outstanding.
    directly : ndarray of float64, one per transfer
        ``op.P``.
    order : ndarray of int32, as long as ``mine``
        The transfers that have been chosen, in their order.
    """

    state: Outstanding
    load: Floats
    mine: Ints
    channel: Ints
    time: Floats
    every: WordMatrix
    directly: Floats
    order: Ints


@kernel
def _find_loads(s: _Selection) -> None:
    """Compute ``op.P`` of each transfer while all are outstanding."""
    for g in range(s.load.shape[0]):
        if s.state.left[g] == 1:
            s.directly[_only(s.state.sets, g, s.every)] += s.load[g]


@kernel
def _select(s: _Selection, printed: bool, size: int, first: int, last: int) -> int:
    """Run the steps from ``first`` to ``last``; return the number of sets that are left.

    Before each step, the first ``size`` sets of ``state.order`` come by rising ``op.M``; those that
    a choice has left with fewer than two outstanding transfers are no longer among them.
    """
    state, time, every, directly = s.state, s.time, s.every, s.directly
    sets, part, total, left, order = state.sets, state.part, state.total, state.left, state.order
    rows, words = sets.shape
    missing = np.empty((1, words), np.uint64)
    changed, kept = np.empty(rows, np.int32), np.empty(rows, np.int32)
    later = np.empty(time.shape[0])  # M⁺
    for step in range(first, last):
        for w in range(words):
            missing[0, w] = every[0, w]
        impending(state, size, missing, later)
        best = -1
        for r in s.mine:
            if has(every, 0, r) and (
                best < 0 or _precedes(r, best, directly, time, later, printed)
            ):
                best = r
        s.order[step] = best
        every[0, best >> 6] ^= np.uint64(1) << np.uint64(best & 63)
        # Sets that contain it are re-sorted and merged with the others.
        some, others = 0, 0
        for i in range(size):
            g = order[i]
            if not has(sets, g, best):
                kept[others] = g
                others += 1
                continue
            left[g] -= 1
            part[g, s.channel[best]] -= time[best]
            total[g] = longest(part, g)
            if left[g] == 1:
                directly[_only(sets, g, every)] += s.load[g]
            if left[g] > 1:
                _insert(changed, some, g, total)
                some += 1
        size = _merge(changed, some, kept, others, total, order)
    return size


@inner
def _precedes(a: int, b: int, directly: Any, time: Any, later: Any, printed: bool) -> Any:
    """Return the ``Comparator`` of algorithm 2."""
    gain_a, gain_b = min(directly[a], time[b]), min(directly[b], time[a])
    if gain_a != gain_b:
        return gain_a < gain_b if printed else gain_b < gain_a
    return later[a] < later[b]


@inner
def _only(sets: Any, g: int, every: Any) -> Any:
    """Return the only outstanding transfer of a set."""
    for w in range(sets.shape[1]):
        both = sets[g, w] & every[0, w]
        if both != np.uint64(0):
            r = 64 * w
            while both & np.uint64(1) == np.uint64(0):
                both >>= np.uint64(1)
                r += 1
            return r
    return -1


@inner
def _insert(rows: Any, size: int, g: int, total: Any) -> None:
    """Insert into a sorted list, from its end; with one channel the place is always the end."""
    i = size
    while i > 0 and total[rows[i - 1]] > total[g]:
        rows[i] = rows[i - 1]
        i -= 1
    rows[i] = g


@inner
def _merge(first: Any, m: int, second: Any, n: int, total: Any, into: Any) -> Any:
    i = j = 0
    while i < m or j < n:
        if j == n or (i < m and total[first[i]] <= total[second[j]]):
            into[i + j] = first[i]
            i += 1
        else:
            into[i + j] = second[j]
            j += 1
    return m + n

"""Runs: connected units that cannot all be on one device, so that a crossing leaves the device."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Least violation of a cut that is worth a row.
_VIOLATED = 1e-3

#: Units with a smaller share of a device are not worth a search.
_SHARE = 0.02

#: A cut without effect is dropped after this many programs.
_IDLE = 2


@dataclass(eq=False)
class Run:
    """A tree of units, joined by pairs between which tensors pass, too large for a device.

    If its root is on the device, one of its pairs has the nearer unit on the device and the farther
    one elsewhere: ``x[root,d] ≤ Σ`` of the crossings that leave ``d`` along the tree.

    Attributes
    ----------
    steps : ndarray of int64, m × 2
        The pairs, and 1 where the tree reaches the pair's source from its target.
    limit : int or None
        The claim is proven for schedules of at most this many ticks; ``None`` for all.
    """

    root: int
    device: int
    steps: NDArray[np.int64]
    limit: int | None
    idle: int = 0

    def holds(self, limit: int | None) -> bool:
        """Return whether the claim holds for all schedules within a limit."""
        return self.limit is None or (limit is not None and limit <= self.limit)


class Runs:
    """A pool of runs that proofs used lately.

    Parameters
    ----------
    pairs : ndarray of int64, pairs × 2
        Source and target units.
    need : ndarray of int64, length units
        Static memory.
    capacity : ndarray of int64, length k
        −1 where memory is not limited.
    work : ndarray of int64, units × k
        Run times.
    """

    def __init__(
        self,
        pairs: NDArray[np.int64],
        need: NDArray[np.int64],
        capacity: NDArray[np.int64],
        work: NDArray[np.int64],
    ) -> None:
        self._pairs = pairs
        self._need: list[int] = need.tolist()
        self._capacity: list[int] = capacity.tolist()
        self._work: list[list[int]] = work.T.tolist()
        self._neighbours: list[list[tuple[int, int, int]]] = [[] for _ in self._need]
        for pair, (source, target) in enumerate(pairs.tolist()):
            self._neighbours[source].append((target, pair, 0))
            self._neighbours[target].append((source, pair, 1))
        self._pool: list[Run] = []

    def holding(self, limit: int | None) -> list[Run]:
        """Return the runs whose claims hold within a limit."""
        return [run for run in self._pool if run.holds(limit)]

    def keep(self, used: list[Run], binding: NDArray[np.bool_]) -> None:
        """Drop runs that have not been binding for some time."""
        for run, on in zip(used, binding.tolist(), strict=True):
            run.idle = 0 if on else run.idle + 1
        self._pool = [run for run in self._pool if run.idle < _IDLE]

    def separate(
        self,
        share: NDArray[np.float64],
        leaving: NDArray[np.float64],
        entering: NDArray[np.float64],
        limit: int | None,
    ) -> int:
        """Add runs that a fractional solution violates; return their number.

        On each device, those with the largest violation come first, and no further one begins in
        them: of runs that overlap, few are binding at the same time.

        Parameters
        ----------
        share : ndarray of float, units × k
            How much of a unit is on a device.
        leaving, entering : ndarray of float, pairs × k
            How much of a pair crosses from the device, or to it.
        """
        found = sorted(
            self._violated(share, leaving, entering, limit), key=lambda cut: (cut[0], cut[1].root)
        )
        covered: set[tuple[int, int]] = set()
        added = 0
        for _, run in found:
            if (run.device, run.root) not in covered:
                inside = self._pairs[run.steps[:, 0]].flatten().tolist()
                covered.update((run.device, unit) for unit in inside)
                self._pool.append(run)
                added += 1
        return added

    def _violated(
        self,
        share: NDArray[np.float64],
        leaving: NDArray[np.float64],
        entering: NDArray[np.float64],
        limit: int | None,
    ) -> Iterator[tuple[float, Run]]:
        total = sum(self._need)
        for d, capacity in enumerate(self._capacity):
            room = capacity if 0 <= capacity < total else None
            longest = limit if limit is not None and sum(self._work[d]) > limit else None
            if room is None and longest is None:
                continue
            crossing = (leaving[:, d].tolist(), entering[:, d].tolist())
            for root in np.flatnonzero(share[:, d] > _SHARE).tolist():
                reach = float(share[root, d]) - _VIOLATED
                cut = self._grown(root, d, crossing, reach, room, longest)
                if cut is not None:
                    yield cut

    def _grown(
        self,
        root: int,
        d: int,
        crossing: tuple[list[float], list[float]],
        reach: float,
        room: int | None,
        longest: int | None,
    ) -> tuple[float, Run] | None:
        """Grow a tree along the pairs that cross least, until it is too large for the device."""
        need, work = self._need, self._work[d]
        held, busy, spent = need[root], work[root], 0.0
        inside = {root}
        steps: list[tuple[int, int]] = []
        size = work if room is None else need
        # Of pairs that cross equally, the larger unit comes first: a short run makes a sparse row.
        reached: list[tuple[float, int, int, int, int]] = []
        latest = root
        while True:
            for unit, pair, back in self._neighbours[latest]:
                if unit not in inside:
                    heapq.heappush(reached, (crossing[back][pair], -size[unit], unit, pair, back))
            if room is not None and held > room:
                return spent - reach, _run(root, d, steps, None)
            if longest is not None and busy > longest:
                return spent - reach, _run(root, d, steps, longest)
            while reached and reached[0][2] in inside:
                heapq.heappop(reached)
            if not reached:
                return None
            cost, _, unit, pair, back = heapq.heappop(reached)
            spent += cost
            if spent >= reach:
                return None
            inside.add(unit)
            steps.append((pair, back))
            held += need[unit]
            busy += work[unit]
            latest = unit


def _run(root: int, d: int, steps: list[tuple[int, int]], limit: int | None) -> Run:
    return Run(root, d, np.array(steps, dtype=np.int64).reshape(-1, 2), limit)

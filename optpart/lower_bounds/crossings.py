"""Crossings: a linear program in which it costs time to leave a device.

Heads and tails let every path cross where it likes, and load and energy place units as if nothing
passed between them. Here one (fractional) placement serves the paths, the devices and their memory,
and a pair of units between which tensors pass crosses as far as its ends are on unlike devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.kernels.compiled import whole_memory
from optpart.kernels.horizon import horizon
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.bisection import least_reached
from optpart.lower_bounds.energy import Intervals, intervals
from optpart.lower_bounds.load import load_ticks, unit_durations
from optpart.lower_bounds.one_machine import sharpened
from optpart.lower_bounds.proof import Proof, Rows, minimise
from optpart.lower_bounds.runs import Run, Runs
from optpart.lower_bounds.windows import NEVER, Windows, windows
from optpart.problem.instance import Instance

#: Maximal crossings in a program; beyond, solving takes too long and nothing is proven.
_MAX_CROSSINGS = 30_000

#: The same without a time limit, where all programs end within a minute or so.
_MAX_UNTIMED = 3_000

#: Programs for one length at most, and rows of intervals added to each of them.
_PROGRAMS = 12
_INTERVALS = 8

#: Least share of the length by which an interval is overfull that is worth a row.
_VIOLATED = 1e-3

#: Least gain of a program without a limit, as a share of the bound, after which there is another.
_GAIN = 1e-3

#: A unit with at least this less than one on a device is not in doubt.
_WHOLE = 1e-4

#: Least share of the columns whose exclusion is worth another program.
_STRUCK = 0.01

#: The search for a length ends at this precision.
_PART = 2**9


def crossings_bound(
    instance: Instance, seconds: float = np.inf, makespan: Fraction | None = None
) -> Fraction | None:
    """Bound the makespan by the least length that the linear program of crossings admits.

    With ``x[u,d]`` the share of unit ``u`` on ``d``, ``y[q,d,e]`` for ``d ≠ e`` how much of a pair
    ``q = (u,w)`` of adjacent units crosses from ``d`` to ``e``, ``s_v`` the start of a vertex and
    ``C`` the makespan, every schedule of at most ``T`` ticks satisfies

    - ``Σ_d x[u,d] = 1``;
    - ``x[u,d] − Σ_e y[q,d,e] = x[w,d] − Σ_e y[q,e,d] ≥ 0``, how much of ``q`` is on ``d`` entirely;
    - ``s_v ≥ s_u + Σ_d p[u,d]·x[u,d] + Σ δ(τ,d,e)·y[q,d,e]`` per edge;
    - ``s_v ≥ Σ_d head[v,d]·x[v,d]`` and ``C ≥ s_v + Σ_d (p + tail)[v,d]·x[v,d]``;
    - the load of a device, between its least head and least tail, is at most ``C``; the least work
      in an interval is at most its length (see :mod:`~optpart.lower_bounds.energy`);
    - ``Σ_u need_u·x[u,d] ≤ M_d``;
    - where connected units need more memory, or take longer, than a device allows, some pair of a
      tree that joins them leaves it if the tree's root is there (see
      :mod:`~optpart.lower_bounds.runs`); such rows are added where a solution violates them.

    For a given ``T``, devices and crossings with ``head + p + δ + p + tail > T`` are left out, and
    so are those whose reduced cost proves that ``C > T``, which makes heads and tails larger.
    This holds in all communication models: each satisfies ``s_v ≥ end_u + send + δ``, and runs
    vertices one at a time.

    Parameters
    ----------
    makespan : Fraction, optional
        Makespan of a schedule; the search goes no higher.

    Returns
    -------
    Fraction or None
        ``None`` if there is no schedule of any length.
    """
    return least_admitted(instance, seconds, makespan, depths=(0,))


def least_admitted(
    instance: Instance, seconds: float, makespan: Fraction | None, depths: Sequence[int]
) -> Fraction | None:
    """Return the least length that is not refuted, with branching to each depth in turn."""
    deadline = clock.now() + seconds
    grid = Grid.of(instance)
    window = windows(instance, grid, seconds=seconds)
    if window.bound is None:
        return None
    relaxation = Relaxation(instance, grid, deadline)
    ends = np.isfinite(seconds) or relaxation.crossings <= _MAX_UNTIMED
    if relaxation.crossings > _MAX_CROSSINGS or not ends or not instance.vertices:
        left = deadline - clock.now()
        return grid.time(load_ticks(instance, grid, window, seconds=left))
    window = sharpened(instance, grid, window, seconds=deadline - clock.now())
    if window.bound is None:
        return None
    least = load_ticks(instance, grid, window, seconds=deadline - clock.now())
    found = relaxation.unlimited(window, least)
    if found is None:
        return None
    least = max(least, found)
    for depth in depths:
        relaxation.open = False
        reached = least_reached(
            partial(relaxation.limited, depth=depth),
            grid,
            least,
            deadline=deadline,
            makespan=makespan,
            part=_PART,
        )
        if reached is None:
            return None
        least = reached
        if not relaxation.open:
            break
    return grid.time(least)


class _State(NamedTuple):
    """The choices that are left within a limit.

    Attributes
    ----------
    window : Windows
    crossing : ndarray of bool, pairs × k × k
        Where the units of a pair can be at the same time.
    """

    window: Windows
    crossing: NDArray[np.bool_]


class _Reached(NamedTuple):
    """A bound of the schedules that a state admits; ``None`` if there is none.

    Attributes
    ----------
    share : ndarray of float, units × k, or None
        The last fractional placement, if there is one.
    """

    value: int | None
    state: _State
    share: NDArray[np.float64] | None


class _Columns(NamedTuple):
    """The columns of a program, −1 where a device or a crossing is not possible."""

    x: NDArray[np.int64]  # units × k
    y: NDArray[np.int64]  # pairs × k × k
    start: NDArray[np.int64]  # n
    makespan: int


class Relaxation:
    """The linear programs of one instance, until a deadline.

    Attributes
    ----------
    crossings : int
        The most crossings that they may have; there must be at most ``_MAX_CROSSINGS``.
    open : bool
        Whether some length was not refuted for want of depth.
    """

    def __init__(self, instance: Instance, grid: Grid, deadline: float) -> None:
        self.instance = instance
        self.grid = grid
        self.deadline = deadline
        self.open = False
        graph, k, units = instance.graph, instance.devices, len(instance.units)
        source, target = instance.unit_of[graph.edge_source], instance.unit_of[graph.edge_target]
        key = np.where(source == target, -1, source.astype(np.int64) * units + target)
        keys, pair = np.unique(key, return_inverse=True)
        inside = int(len(keys) > 0 and keys[0] < 0)
        self._pair = pair.reshape(-1) - inside  # of each edge; −1 within a unit
        self._pairs = np.stack(np.divmod(keys[inside:], max(1, units)), axis=1)
        self.crossings = len(key) * k * k
        if self.crossings > _MAX_CROSSINGS:
            return
        self._delay = self._delays()
        self._linked = np.ones((len(self._pairs), k, k), dtype=np.bool_)
        between = self._pair >= 0
        np.logical_and.at(self._linked, self._pair[between], self._delay[between] >= 0)
        apart = set(instance.separated_units)
        for q, (u, w) in enumerate(self._pairs.tolist()):
            if (min(u, w), max(u, w)) in apart:
                np.fill_diagonal(self._linked[q], val=False)
        self._work = unit_durations(instance, grid)
        self._need, capacity = whole_memory(instance, relax=True)
        self._capacity = np.where(capacity < self._need.sum(), capacity, -1)
        self._runs = Runs(self._pairs, self._need, self._capacity, self._work)
        self._known: tuple[int, _State] | None = None

    def unlimited(self, window: Windows, least: int) -> int | None:
        """Bound the makespan of every schedule, from heads and tails of every schedule."""
        return self._reached(_State(window, self._linked), None, least).value

    def limited(self, limit: int, depth: int = 0) -> int | None:
        """Bound the makespan of the schedules within a limit; ``None`` if there is none.

        Parameters
        ----------
        depth : int
            How many units are put on each of their devices in turn to refute the limit.
        """
        state = _State(windows(self.instance, self.grid, limit), self._linked)
        if self._known is not None and limit <= self._known[0]:
            state = self._known[1]  # what is excluded within a limit remains so within a lower one
        narrowed = self._narrowed(state, limit, state.window.possible)
        if narrowed is None:
            return None
        reached = self._reached(narrowed, limit, 0)
        if reached.value is None or reached.value > limit:
            return reached.value
        if self._known is None or limit <= self._known[0]:
            self._known = limit, reached.state
        return None if self._refuted(reached, limit, depth) else reached.value

    def _refuted(self, reached: _Reached, limit: int, depth: int) -> bool:
        """Return whether a unit on each of its devices in turn refutes a limit."""
        if reached.share is None:
            return False
        doubt = np.where(reached.share.max(axis=1) < 1 - _WHOLE, self._size(), 0.0)
        doubt *= 1 - reached.share.max(axis=1)
        if depth == 0 or not doubt.any():
            self.open |= bool(doubt.any())
            return False
        unit = int(doubt.argmax())
        possible = reached.state.window.possible
        # The most promising device first: one that is not refuted ends the loop.
        for d in (-reached.share[unit]).argsort(kind="stable").tolist():
            if not possible[unit, d]:
                continue
            if clock.now() > self.deadline:
                return False
            there = possible.copy()
            there[unit] = np.arange(possible.shape[1]) == d
            state = self._narrowed(reached.state, limit, there)
            if state is None:
                continue
            below = self._reached(state, limit, 0)
            if below.value is None or below.value > limit:
                continue
            if not self._refuted(below, limit, depth - 1):
                return False
        return True

    def _size(self) -> NDArray[np.float64]:
        """Return how much the place of a unit matters: its work, and its memory if that counts."""
        size = self._work.max(axis=1) / max(1, self._work.max())
        if (self._capacity >= 0).any():
            size = size + self._need / max(1, self._need.max())
        return np.asarray(size)

    def _reached(self, state: _State, limit: int | None, least: int) -> _Reached:
        best, share = 0, None
        busiest: list[tuple[NDArray[np.int64], int, int]] = []
        crowded = self._intervals(state, limit)
        for _ in range(_PROGRAMS):
            left = self.deadline - clock.now()
            if left <= 0:
                break
            used = self._runs.holding(limit)
            columns, proof = self._solve(state, limit, least, used, busiest, left)
            if proof is None:
                break
            length = proof.whole  # schedules on the grid have whole lengths
            if length is None:
                return _Reached(None, state, None)
            self._runs.keep(used, proof.multiplier[len(proof.multiplier) - len(used) :] != 0)
            gain, best = length - best, max(best, length)
            if limit is None:
                if gain <= _GAIN * best:
                    break
            elif best > limit:
                break
            point = np.append(proof.point, 0.0)  # columns of −1 are zero
            share, crossing = point[columns.x], point[columns.y]
            added = self._runs.separate(share, crossing.sum(axis=2), crossing.sum(axis=1), limit)
            if limit is not None:
                gone = np.append(proof.excluded(limit), False)
                excluded = gone[columns.y]
                struck = int(excluded.sum()) + int(gone[columns.x].sum())
                added += struck if struck > _STRUCK * len(gone) else 0
                state = _State(state.window, state.crossing & ~excluded)
                if gone[columns.x].any():
                    possible = state.window.possible & ~gone[columns.x]
                    narrowed = self._narrowed(state, limit, possible)
                    if narrowed is None:
                        return _Reached(None, state, None)
                    state, crowded = narrowed, self._intervals(narrowed, limit)
                overfull = (crowded.work * share[:, crowded.device].T).sum(axis=1) - crowded.room
                for r in overfull.argsort(kind="stable")[: -_INTERVALS - 1 : -1].tolist():
                    if overfull[r] > _VIOLATED * limit:
                        busiest.append(
                            (crowded.work[r], int(crowded.device[r]), int(crowded.room[r]))
                        )
                        added += 1
            if not added:
                break
        return _Reached(best, state, share)

    def _delays(self) -> NDArray[np.int64]:
        """Return the crossing time of each edge in ticks, edges × k × k; −1 without a link."""
        grid, k = self.grid, self.instance.devices
        table = np.concatenate((grid.delays[:, grid.link_class], grid.measured))
        delay = table[grid.size_class[self.instance.graph.edge_tensor]].astype(np.int64)
        delay[:, np.arange(k), np.arange(k)] = 0
        if self.instance.model.sends:
            crosses = (delay >= 0) & ~np.eye(k, dtype=np.bool_)
            delay += np.where(crosses, grid.send[:, None], 0)
        return delay

    def _narrowed(self, state: _State, limit: int, possible: NDArray[np.bool_]) -> _State | None:
        """Propagate what is possible within a limit; ``None`` if nothing is."""
        instance, grid = self.instance, self.grid
        window = windows(instance, grid, limit, possible)
        if window.bound is None:
            return None
        left = self.deadline - clock.now()
        window = sharpened(instance, grid, window, limit, seconds=left)
        if window.bound is None or window.bound > limit:
            return None
        run = grid.duration
        source, target = instance.graph.edge_source, instance.graph.edge_target
        begin = np.minimum(NEVER, window.head[source] + run[source])
        end = np.minimum(NEVER, run[target] + window.tail[target])
        fine = begin[:, :, None] + np.maximum(0, self._delay) + end[:, None, :] <= limit
        crossing = state.crossing.copy()
        between = self._pair >= 0
        np.logical_and.at(crossing, self._pair[between], fine[between])
        return _State(window, crossing)

    def _intervals(self, state: _State, limit: int | None) -> Intervals:
        if limit is None:
            nothing = np.zeros((0, len(self._work)), dtype=np.int64)
            return Intervals(nothing[:, 0], nothing, nothing[:, 0], nothing[:, 0])
        return intervals(self.instance, self.grid, state.window, limit)

    def _columns(self, state: _State) -> tuple[_Columns, NDArray[np.bool_]]:
        """Number the columns; also return which pairs can be on a device entirely, pairs × k."""
        possible = state.window.possible
        source, target = self._pairs.T
        crossing = state.crossing & possible[source][:, :, None] & possible[target][:, None, :]
        diagonal = np.arange(possible.shape[1])
        together = crossing[:, diagonal, diagonal].copy()
        crossing[:, diagonal, diagonal] = False
        count = 0
        numbered = []
        for used in (possible, crossing):
            column = np.full(used.shape, -1, dtype=np.int64)
            column[used] = count + np.arange(used.sum())
            numbered.append(column)
            count += int(used.sum())
        start = count + np.arange(self.instance.vertices)
        return _Columns(numbered[0], numbered[1], start, count + len(start)), together

    def _solve(
        self,
        state: _State,
        limit: int | None,
        least: int,
        used: list[Run],
        busiest: list[tuple[NDArray[np.int64], int, int]],
        seconds: float,
    ) -> tuple[_Columns, Proof | None]:
        columns, together = self._columns(state)
        low = max(least, state.window.bound or 0)
        unit = float(max(1, low if limit is None else limit))
        rows = Rows()
        self._place(rows, columns, together)
        self._follow(rows, columns, state.window, unit)
        self._load(rows, columns, state.window, low, unit)
        for work, device, room in busiest:
            rows.add(np.array([-room]), (0, columns.x[:, device], -work), scale=unit)
        self._leave(rows, columns, used)
        upper = np.ones(columns.makespan + 1, dtype=np.int64)
        upper[columns.start] = horizon(self.instance, self.grid) if limit is None else limit
        scale = np.ones(len(upper))
        scale[columns.start] = scale[columns.makespan] = unit
        return columns, minimise(rows, upper, scale, columns.makespan, seconds)

    def _place(self, rows: Rows, columns: _Columns, together: NDArray[np.bool_]) -> None:
        """Every unit is placed; what a pair has on a device, it keeps there or crosses from."""
        x, y = columns.x, columns.y
        units = np.arange(len(x))
        rows.add(np.ones(len(x)), (units[:, None], x, 1), equal=True)
        source, target = self._pairs.T
        row = np.arange(together.size).reshape(together.shape)
        rows.add(
            np.zeros(together.size),
            (row, x[source], 1),
            (row[:, :, None], y, -1),
            (row, x[target], -1),
            (row[:, :, None], y.transpose(0, 2, 1), 1),
            equal=True,
        )
        for possible in (True, False):
            q, d = np.nonzero(together == possible)
            number = np.arange(len(q))
            rows.add(
                np.zeros(len(q)),
                (number, x[source[q], d], 1),
                (number[:, None], y[q, d], -1),
                equal=not possible,
            )

    def _follow(self, rows: Rows, columns: _Columns, window: Windows, unit: float) -> None:
        """Vertices start after their inputs arrive, and between their heads and tails."""
        graph, of_unit = self.instance.graph, self.instance.unit_of
        x, start, run = columns.x[of_unit], columns.start, self.grid.duration
        source, target = graph.edge_source, graph.edge_target
        row = np.arange(len(source))
        crossing = np.full(self._delay.shape, -1, dtype=np.int64)
        crossing[self._pair >= 0] = columns.y[self._pair[self._pair >= 0]]
        rows.add(
            np.zeros(len(source)),
            (row, start[target], 1),
            (row, start[source], -1),
            (row[:, None], x[source], -run[source]),
            (row[:, None, None], crossing, -self._delay),
            scale=unit,
        )
        row, nothing = np.arange(len(x)), np.zeros(len(x))
        rows.add(nothing, (row, start, 1), (row[:, None], x, -window.head), scale=unit)
        rows.add(
            nothing,
            (row, columns.makespan, 1),
            (row, start, -1),
            (row[:, None], x, -run - window.tail),
            scale=unit,
        )

    def _load(self, rows: Rows, columns: _Columns, window: Windows, low: int, unit: float) -> None:
        """Devices run one vertex at a time, and hold what is there."""
        rims = window.head.min(axis=0) + window.tail.min(axis=0)
        for d, rim in enumerate(np.minimum(rims, low).tolist()):
            x = columns.x[:, d]
            rows.add(
                np.array([rim]),
                (0, columns.makespan, 1),
                (0, x, -self._work[:, d]),
                scale=unit,
            )
            capacity = int(self._capacity[d])
            if capacity >= 0:
                scale = float(max(1, capacity))
                rows.add(np.array([-capacity]), (0, x, -self._need), scale=scale)

    def _leave(self, rows: Rows, columns: _Columns, used: list[Run]) -> None:
        """Runs that are too large for a device leave it; these are the last rows."""
        if not used:
            return
        lengths = [len(run.steps) for run in used]
        row = np.repeat(np.arange(len(used)), lengths)
        device = np.repeat([run.device for run in used], lengths)
        pair, back = np.concatenate([run.steps for run in used]).T
        crossing = np.where(
            back[:, None] == 1, columns.y[pair, :, device], columns.y[pair, device, :]
        )
        root = columns.x[[run.root for run in used], [run.device for run in used]]
        rows.add(np.zeros(len(used)), (np.arange(len(used)), root, -1), (row[:, None], crossing, 1))


def program_size(instance: Instance) -> int:
    """Return the number of crossings of the programs; 0 if there are too many to solve any."""
    crossings = len(instance.graph.edge_source) * instance.devices**2
    return crossings if crossings <= _MAX_CROSSINGS else 0

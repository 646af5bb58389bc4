"""Assignment: energy with every unit on one device, instead of in shares on several.

Energy (:mod:`~optpart.lower_bounds.energy`) distributes units by a linear program, which may split
them. If every unit is whole, intervals and memory are knapsacks, and one or two per cent more
follow where the devices are few and the units large: on unlike machines, the integral assignment
(R || Cmax, within the heads and tails of the units) is often as long as the shortest flexible job
shop. A length is refuted by branch and bound. Every leaf is a weighted sum of rows, computed in
integers, so that the tree is a proof.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.kernels.compiled import whole_memory
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.energy import intervals
from optpart.lower_bounds.windows import Windows
from optpart.problem.instance import Instance

#: Most columns of the linear program; with more, too few cases are solved to prove anything.
_MAX_COLUMNS = 2_000

#: Most cases: a certificate has no room for more.
_MAX_CASES = 2**16

#: Most units that are put on a device at one time; the judge of certificates admits no more.
MAX_DEPTH = 64

#: Most heads and tails per device at which intervals begin and end; few of the rows are needed.
_THRESHOLDS = 40

#: Rows added to the linear program at a time.
_ADDED = 8

#: A row is violated, a share is fractional, or a program is infeasible, by more than this.
_TINY = 1e-6

#: Candidates of a branching that are tried if they have rarely been, and how often that is.
_TRIED, _RARELY = 8, 4

#: Denominators of multipliers, the first that proves something is taken: small numbers take less
#: space in a certificate.
_PARTS = (2**5, 2**8, 2**12, 2**20)


class Sum(NamedTuple):
    """Rows whose weighted sum no placement satisfies.

    Attributes
    ----------
    rows : list of (int, int, int, int)
        Intervals of devices: device, begin, end, multiplier.
    memory : dict
        Multipliers by device, per whole unit (:func:`optpart.kernels.compiled.whole_memory`).
    """

    rows: list[tuple[int, int, int, int]]
    memory: dict[int, int]


class Tree(NamedTuple):
    """A proof that nothing is possible.

    Attributes
    ----------
    excluded : list of (int, int, Tree)
        Units that are not on a device, one after another: a proof follows from their being there.
    end : Sum, optional
        What refutes the rest; ``None`` if a unit has no device left.
    """

    excluded: list[tuple[int, int, Tree]]
    end: Sum | None


def refutation(
    instance: Instance, grid: Grid, window: Windows, limit: int, deadline: float
) -> Tree | None:
    """Return a proof that no schedule takes at most ``limit`` ticks; ``None`` without one.

    Parameters
    ----------
    window : Windows
        Heads, tails and devices for that limit.
    deadline : float
        Without an answer by then, nothing is proven.

    Notes
    -----
    The rows are those of :func:`optpart.lower_bounds.energy.overload`.
    """
    if not window.possible.any(axis=1).all():
        return Tree([], None)
    if window.possible.sum() > _MAX_COLUMNS or clock.now() > deadline:
        return None
    search = _Search(instance, grid, window, limit, deadline)
    try:
        return search.refute(0)
    except _OpenError:
        return None


class _OpenError(Exception):
    """A placement satisfies every row, or the search ended before it had an answer."""


class _Search:
    """Branch and bound on the devices of units, by one linear program that goes on.

    It minimises the excess over the rows, each as a share of the length or of the memory.
    """

    def __init__(
        self, instance: Instance, grid: Grid, window: Windows, limit: int, deadline: float
    ) -> None:
        # Loaded here because it takes long, and not every run needs it.
        from ortools.linear_solver import pywraplp

        found = intervals(instance, grid, window, limit, _THRESHOLDS)
        need, capacity = whole_memory(instance, relax=True)
        limited = np.flatnonzero(capacity < need.sum())
        self.deadline = deadline
        self.cases = 0
        self.possible = window.possible.copy()
        self.interval = np.stack((found.device, found.begin, found.begin + found.room), axis=1)
        self.device = np.concatenate((found.device, limited))
        #: What every unit takes of a row, and how much there is, rows × units.
        self.weight = np.concatenate((found.work, np.tile(need, (len(limited), 1))))
        self.room = np.concatenate((found.room, capacity[limited]))
        #: What counts as a whole, by row: coefficients of about 1 suit the solver.
        self.scale = np.concatenate(
            (np.full(len(found.room), max(1, limit)), np.maximum(1, capacity[limited]))
        ).astype(np.float64)
        self.solver = solver = pywraplp.Solver.CreateSolver("GLOP")
        # Preprocessing begins anew each time, and gives up on some programs.
        solver.SetSolverSpecificParametersAsString(
            "use_dual_simplex: true use_preprocessing: false change_status_to_imprecise: false"
        )
        self.cells = np.argwhere(self.possible)
        self.columns: list[Any] = [solver.NumVar(0.0, 1.0, "") for _ in self.cells]
        self.excess = solver.NumVar(-1.0, solver.infinity(), "")
        solver.Minimize(self.excess)
        self.column = np.full(self.possible.shape, -1)
        self.column[self.possible] = np.arange(len(self.cells))
        for row in self.column:
            once = solver.Constraint(1.0, 1.0)
            for c in row[row >= 0].tolist():
                once.SetCoefficient(self.columns[c], 1.0)
        #: The rows of the program, by number, and those that it has.
        self.constraints: list[tuple[int, Any]] = []
        self.used = np.zeros(len(self.room), dtype=np.bool_)
        #: By column, down and up: how much a whole step has added to the excess, and how often.
        self.gain = np.zeros((len(self.cells), 2))
        self.tried = np.zeros((len(self.cells), 2), dtype=np.int64)

    def refute(self, depth: int) -> Tree:
        """Return a proof that no placement satisfies all rows.

        Raises
        ------
        _OpenError
            If one may.
        """
        before = self.possible.copy()
        excluded: list[tuple[int, int, Tree]] = []
        while True:
            self.cases += 1
            if self.cases > _MAX_CASES:
                raise _OpenError
            share = self._solve()
            value = self.excess.solution_value()
            if value > _TINY:
                end = self._sum()
                if end is not None:
                    break
            c = self._branch(share, value)
            if c is None or depth == MAX_DEPTH:
                raise _OpenError
            unit, d = self.cells[c].tolist()
            here = self.possible[unit].copy()
            self._allow(unit, np.arange(len(here)) == d)
            excluded.append((unit, d, self.refute(depth + 1)))
            here[d] = False
            self._allow(unit, here)
            if not here.any():
                end = None
                break
        for unit in {unit for unit, _, _ in excluded}:
            self._allow(unit, before[unit])
        return Tree(excluded, end)

    def _allow(self, unit: int, devices: NDArray[np.bool_]) -> None:
        """Leave a unit some devices."""
        for d in np.flatnonzero(self.possible[unit] != devices).tolist():
            self.columns[self.column[unit, d]].SetUb(float(devices[d]))
        self.possible[unit] = devices

    def _solve(self) -> NDArray[np.float64]:
        """Return the share of each column at the least excess over all rows."""
        place = np.zeros(self.possible.shape)
        while True:
            value = self._excess()
            share = np.array([column.solution_value() for column in self.columns])
            if value > _TINY:
                return share
            place[*self.cells.T] = share
            over = ((self.weight * place[:, self.device].T).sum(axis=1) - self.room) / self.scale
            over[self.used] = -np.inf
            worst = over.argsort(kind="stable")[: -_ADDED - 1 : -1]
            worst = worst[over[worst] > value + _TINY]
            if not len(worst):
                return share
            for r in worst.tolist():
                self._add(r)

    def _excess(self) -> float:
        """Solve the program; imprecise solutions do no harm, since sums are computed anew."""
        if clock.now() > self.deadline:
            raise _OpenError
        if self.solver.Solve() != self.solver.OPTIMAL:
            raise _OpenError
        return float(self.excess.solution_value())

    def _add(self, r: int) -> None:
        """Add a row to the program."""
        self.used[r] = True
        row = self.solver.Constraint(-self.solver.infinity(), float(self.room[r] / self.scale[r]))
        row.SetCoefficient(self.excess, -1.0)
        column = self.column[:, self.device[r]]
        for unit in np.flatnonzero((column >= 0) & (self.weight[r] > 0)).tolist():
            weight = float(self.weight[r, unit] / self.scale[r])
            row.SetCoefficient(self.columns[column[unit]], weight)
        self.constraints.append((r, row))

    def _sum(self) -> Sum | None:
        """Return a sum of rows that the last solution proposes, and that proves a contradiction."""
        proposed = [(r, -row.dual_value() / self.scale[r]) for r, row in self.constraints]
        proposed = [(r, y) for r, y in proposed if y > 0.0]
        most = max((y for _, y in proposed), default=1.0)
        for parts in _PARTS:
            rows = [(r, round(y / most * parts)) for r, y in proposed]
            rows = [(r, y) for r, y in rows if y]
            cost = np.zeros(self.possible.shape, dtype=object)
            room = 0
            for r, y in rows:
                cost[:, self.device[r]] += self.weight[r].astype(object) * y
                room += int(self.room[r]) * y
            if np.where(self.possible, cost, cost.max()).min(axis=1).sum() > room:
                times = [(r, y) for r, y in rows if r < len(self.interval)]
                memory = {int(self.device[r]): y for r, y in rows if r >= len(self.interval)}
                return Sum([(*self.interval[r].tolist(), y) for r, y in times], memory)
        return None

    def _branch(self, share: NDArray[np.float64], value: float) -> int | None:
        """Return the column of which both values add most to the excess; ``None`` if all are whole.

        Pseudo-costs, made reliable by trying both values (Achterberg, Koch & Martin 2005).
        """
        doubtful = np.flatnonzero((share > _TINY) & (share < 1 - _TINY))
        if not len(doubtful):
            return None
        distance = np.stack((share[doubtful], 1 - share[doubtful]), axis=1)
        known = self.tried[doubtful] > 0
        mean = self.gain.sum(axis=0) / np.maximum(1, self.tried.sum(axis=0))
        each = np.where(known, self.gain[doubtful] / np.maximum(1, self.tried[doubtful]), mean)
        score = np.maximum(each * distance, _TINY).prod(axis=1)
        order = score.argsort(kind="stable")[::-1]
        best, most = int(doubtful[order[0]]), -1.0
        for i in order[:_TRIED].tolist():
            c = int(doubtful[i])
            if self.tried[c].min() < _RARELY:
                gains = [self._try(c, up, value) for up in (False, True)]
                self.gain[c] += np.minimum(gains, 1.0) / distance[i]
                self.tried[c] += 1
                score[i] = np.maximum(gains, _TINY).prod()
            if score[i] > most:
                best, most = c, float(score[i])
        return best

    def _try(self, c: int, up: bool, value: float) -> float:
        """Return how much a column that is 1, or 0, adds to the excess; no more than refutes."""
        unit, d = self.cells[c].tolist()
        here = self.possible[unit].copy()
        devices = np.arange(len(here)) == d
        self._allow(unit, devices if up else here & ~devices)
        gain = self._excess() - value if self.possible[unit].any() else np.inf
        self._allow(unit, here)
        return float(min(gain, max(0.0, -value) + 10 * _TINY))

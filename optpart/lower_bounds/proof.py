"""Linear programs whose solutions are only proposals: what they prove is computed in integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Denominator to which multipliers are rounded; a proof is valid for any rounding.
_PARTS = 2**40

_OPTIMAL, _INFEASIBLE = 0, 2


@dataclass
class Rows:
    """Rows ``Σ a_j z_j ≥ b`` or ``= b`` with whole coefficients, gathered in blocks."""

    row: list[NDArray[np.int64]] = field(default_factory=list)
    column: list[NDArray[np.int64]] = field(default_factory=list)
    value: list[NDArray[np.int64]] = field(default_factory=list)
    right: list[NDArray[np.int64]] = field(default_factory=list)
    scale: list[NDArray[np.float64]] = field(default_factory=list)
    equal: list[NDArray[np.bool_]] = field(default_factory=list)
    count: int = 0

    def add(
        self,
        right: NDArray[Any],
        *terms: tuple[Any, Any, Any],
        scale: float = 1.0,
        equal: bool = False,
    ) -> None:
        """Add a block of ``len(right)`` rows.

        Parameters
        ----------
        terms : triples of row, column, coefficient
            Each an integer or an array; the three are broadcast. Rows count from the first of the
            block. A column of −1 leaves the term out.
        scale : float
            The magnitude of the coefficients; it affects the solver's accuracy only.
        """
        for row, column, value in terms:
            rows, columns, values = np.broadcast_arrays(row, column, value)
            used = (columns >= 0) & (values != 0)
            self.row.append(rows[used].astype(np.int64) + self.count)
            self.column.append(columns[used].astype(np.int64))
            self.value.append(values[used].astype(np.int64))
        self.right.append(np.asarray(right, dtype=np.int64))
        self.scale.append(np.full(len(right), scale))
        self.equal.append(np.full(len(right), equal))
        self.count += len(right)


@dataclass(frozen=True, eq=False)
class Proof:
    """Multipliers, and the bound of a program that they prove.

    Attributes
    ----------
    value : Fraction or None
        The objective is at least this; ``None`` if the program has no solution.
    point : ndarray of float
        The solver's solution, for choices.
    multiplier : ndarray of int
        Per row, a multiple of what the proof uses.
    """

    value: Fraction | None
    point: NDArray[np.float64]
    multiplier: NDArray[Any]
    _total: int
    _parts: int
    _reduced: NDArray[Any]

    @property
    def whole(self) -> int | None:
        """The least whole value of the objective, where the caller knows that it has no others."""
        return None if self.value is None else math.ceil(self.value)

    def excluded(self, limit: int) -> NDArray[np.bool_]:
        """Return the columns that are not one in any whole solution of at most a given value."""
        return np.asarray(self._total + self._reduced > limit * self._parts, dtype=np.bool_)


def minimise(
    rows: Rows, upper: NDArray[np.int64], unit: NDArray[np.float64], objective: int, seconds: float
) -> Proof | None:
    """Bound the least value of a column, subject to rows and ``0 ≤ z ≤ upper``.

    Parameters
    ----------
    upper : ndarray of int64
        That of the objective is ignored.
    unit : ndarray of float
        The magnitude of each column; it affects the solver's accuracy only.
    objective : int
        The column ``c``, with no negative coefficient in an inequality and none in an equation.

    Returns
    -------
    Proof or None
        ``None`` if the solver does not answer in time.

    Notes
    -----
    Let ``y`` be multipliers of the rows, not negative for inequalities. Every solution satisfies
    ``z_c ≥ z_c + y(b − Az) = yb + Σ_j r_j z_j ≥ yb + Σ_j min(0, r_j)·upper_j``, where
    ``r = e_c − yA``, so that ``r_j`` on top of this bounds solutions with ``z_j = 1``. The solver
    proposes ``y``, which is rounded to whole numbers and divided by ``(yA)_c``, so that
    ``r_c = 0``. If there is no solution, it minimises the largest violation of a row instead. The
    multipliers of that program, without the rows in which ``c`` occurs, prove
    ``0 ≥ yb − yAz ≥ yb + Σ_j min(0, −(yA)_j)·upper_j``, a contradiction if that is positive. All
    of this is computed in Python's integers.
    """
    # Loaded here because it takes long, and not every run needs it.
    from scipy.sparse import csr_array

    row, column = np.concatenate(rows.row), np.concatenate(rows.column)
    value, right = np.concatenate(rows.value), np.concatenate(rows.right)
    scale, equal = np.concatenate(rows.scale), np.concatenate(rows.equal)
    shape = (rows.count, len(upper))
    matrix: Any = csr_array((value * unit[column] / scale[row], (row, column)), shape=shape)
    most = upper / unit
    most[objective] = np.inf
    proposal = _propose(matrix, right / scale, equal, most, objective, seconds)
    if proposal is None:
        return None
    dual, point, feasible = proposal
    dual[~equal] = np.maximum(0.0, dual[~equal])
    dual *= unit[objective] * _PARTS / scale
    multiplier = np.array([round(y) for y in dual.tolist()], dtype=object)
    if not feasible:
        multiplier[row[column == objective]] = 0
    reduced = np.zeros(len(upper), dtype=object)
    np.subtract.at(reduced, column, multiplier[row] * value.astype(object))
    parts = -int(reduced[objective])
    reduced[objective] = 0
    total = int((multiplier * right.astype(object)).sum())
    total += int((np.minimum(reduced, 0) * upper.astype(object)).sum())
    reduced = np.maximum(reduced, 0)
    if not feasible:
        proven = None if total > 0 else Fraction(0)
        return Proof(proven, point * unit, multiplier, 0, 0, np.zeros_like(reduced))
    if parts <= 0:
        return None
    least = max(Fraction(0), Fraction(total, parts))
    return Proof(least, point * unit, multiplier, total, parts, reduced)


def _propose(
    matrix: Any,
    right: NDArray[np.float64],
    equal: NDArray[np.bool_],
    most: NDArray[np.float64],
    objective: int,
    seconds: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool] | None:
    """Return multipliers, the solution, and whether there is one that satisfies all rows."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack, vstack

    above: Any = -matrix[~equal]
    same: Any = matrix[equal]
    cost = np.zeros(len(most))
    cost[objective] = 1.0
    # Presolve takes longer than it saves. The type stubs of linprog lack sparse matrices.
    options: Any = {"time_limit": max(0.01, seconds), "presolve": False}
    bounds: Any = np.stack([np.zeros(len(most)), most], axis=1)
    dual = np.zeros(len(right))
    solved = linprog(
        cost, above, -right[~equal], same, right[equal], bounds, method="highs", options=options
    )
    if solved.status == _OPTIMAL:
        dual[~equal] = -np.asarray(solved.ineqlin.marginals)
        dual[equal] = np.asarray(solved.eqlin.marginals)
        return dual, np.asarray(solved.x), True
    if solved.status != _INFEASIBLE:
        return None
    violated: Any = vstack([above, same, -same])
    violated = hstack([violated, csr_array(-np.ones((violated.shape[0], 1)))]).tocsr()
    limits = np.concatenate((-right[~equal], right[equal], -right[equal]))
    bounds = np.concatenate((bounds, [[0.0, np.inf]]))
    cost = np.append(np.zeros(len(most)), 1.0)
    solved = linprog(cost, violated, limits, bounds=bounds, method="highs", options=options)
    if solved.status != _OPTIMAL:
        return None
    excess = -np.asarray(solved.ineqlin.marginals)
    inequalities, equations = int((~equal).sum()), int(equal.sum())
    dual[~equal] = excess[:inequalities]
    dual[equal] = excess[inequalities + equations :] - excess[inequalities:][:equations]
    return dual, np.asarray(solved.x)[:-1], False

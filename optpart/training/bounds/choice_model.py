"""The CP-SAT model of the actions of all groups, with rows but without an order of execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from optpart.training.bounds.rows import Row, Rows


class ChoiceModel:
    """Variables for actions and for pairs of layouts; every solution is a strategy.

    Attributes
    ----------
    y : list of list of literal
        Whether a group takes an action.
    w : list of dict
        By pair of adjacent groups and by their layouts, whether both have them.
    makespan : IntVar
        In ticks; it is minimised.
    """

    def __init__(self, rows: Rows, least: int, most: int, cuts: Iterable[Row] = ()) -> None:
        self.rows, self.costs, self.most = rows, rows.costs, most
        self.model = cp_model.CpModel()
        self.makespan = self.model.new_int_var(least, most, "C")
        self._choose()
        self._columns = self._listed()
        for d in range(self.costs.k):
            if rows.capacity(d) is not None:
                self.add(Row("memory", ("device", d, d)))
        for cut in cuts:
            self.add(cut)
        self.model.minimize(self.makespan)

    def forbid(self, chosen: Sequence[int]) -> None:
        """Exclude one strategy."""
        self.model.add_bool_or(~self.y[g][a] for g, a in enumerate(chosen))

    def _choose(self) -> None:
        model, rows, costs = self.model, self.rows, self.costs
        self.y = [
            [model.new_bool_var(f"y{g},{a}") for a in range(len(actions))]
            for g, actions in enumerate(costs.choices.actions)
        ]
        self.layout: list[dict[int, Any]] = []
        self.there: list[list[Any]] = []
        for g, literals in enumerate(self.y):
            model.add_exactly_one(literals)
            layouts: dict[int, Any] = {}
            for layout in rows.own[g].tolist():
                same = [literals[a] for a in np.flatnonzero(costs.layout_of[g] == layout)]
                layouts[layout] = self._any(same)
            self.layout.append(layouts)
            self.there.append(
                [
                    self._any([x for layout, x in layouts.items() if costs.present[layout, d]])
                    for d in range(costs.k)
                ]
            )
        self.w: list[dict[tuple[int, int], Any]] = []
        for p, (g, h) in enumerate(rows.pairs):
            pair = {}
            at = rows.w[p]
            for a in rows.own[g].tolist():
                for b in rows.own[h].tolist():
                    if rows.possible[at]:
                        pair[a, b] = model.new_bool_var(f"w{p},{a},{b}")
                    else:
                        model.add_bool_or(~self.layout[g][a], ~self.layout[h][b])
                    at += 1
            self.w.append(pair)
            for a in rows.own[g].tolist():
                model.add(sum(x for (i, _), x in pair.items() if i == a) == self.layout[g][a])
            for b in rows.own[h].tolist():
                model.add(sum(x for (_, i), x in pair.items() if i == b) == self.layout[h][b])
        for g, literals in enumerate(self.y):
            for a, literal in enumerate(literals):
                if not rows.possible[rows.y[g] + a]:
                    model.add(literal == 0)

    def _any(self, literals: Sequence[Any]) -> Any:
        """Return whether one of some literals holds, of which at most one does."""
        if not literals:
            return self.model.new_constant(0)
        if len(literals) == 1:
            return literals[0]
        result = self.model.new_bool_var("")
        self.model.add(sum(literals) == result)
        return result

    def _listed(self) -> list[Any]:
        """Return the literals in the order of the columns; 0 for pairs that are impossible."""
        columns: list[Any] = [literal for row in self.y for literal in row]
        for p, (g, h) in enumerate(self.rows.pairs):
            columns += [
                self.w[p].get((a, b), 0)
                for a in self.rows.own[g].tolist()
                for b in self.rows.own[h].tolist()
            ]
        return columns

    def add(self, row: Row) -> None:
        """Add a row."""
        columns = self._columns
        coefficients = self.rows.coefficients(row)
        used = np.flatnonzero((coefficients != 0) & self.rows.possible).tolist()
        total = sum(int(coefficients[c]) * columns[c] for c in used)
        if row.kind == "memory":
            assert row.resource is not None
            self.model.add(total <= (self.rows.capacity(row.resource[1]) or 0))
        else:
            self.model.add(total <= self.makespan)


def horizon(rows: Rows) -> int:
    """Return ticks that no strategy takes more than, one thing after another."""
    costs = rows.costs
    total = int(costs.duration.sum(axis=2).max(axis=1).sum())
    for moves in rows.moves:
        each = moves.transfer.sum(axis=(-1, -2)) + moves.copying.sum(axis=-1)
        total += int(each.max())
        total += int(getattr(moves, "collective", np.zeros(1)).max())
    return total

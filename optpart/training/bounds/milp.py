"""The integer program over the actions of all groups, with rows added where they are violated."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import NamedTuple

from ortools.sat.python import cp_model

from optpart.errors import OptpartError
from optpart.training.bounds.choice_model import ChoiceModel, horizon
from optpart.training.bounds.choices import Choices
from optpart.training.bounds.costs import Costs
from optpart.training.bounds.program import StrategyBound
from optpart.training.bounds.rows import NCCL, Resource, Row, Rows
from optpart.training.bounds.separation import Separator


class IntegerBound(NamedTuple):
    """A lower bound on the time of one iteration, for which there is no certificate.

    Attributes
    ----------
    value : Fraction or None
        Nanoseconds; ``None`` if no strategy satisfies links and memory.
    chosen : tuple of int or None
        The action of each group in the last solution.
    closed : bool
        Whether it is the optimum: the last solution violates no row.
    rounds : int
    """

    value: Fraction | None
    chosen: tuple[int, ...] | None
    closed: bool
    rounds: int


def integer_bound(choices: Choices, known: StrategyBound, *, seconds: float = 60.0) -> IntegerBound:
    """Raise the bound of the linear program: every group takes exactly one action.

    All coefficients are integers, and so is the bound of CP-SAT. It begins with the bound and the
    rows of the linear program. Rows that the best strategy violates are added until there are
    none; the strategy is then one of least time according to all rows.

    Parameters
    ----------
    known : StrategyBound
        Of the same choices.
    """
    deadline = time.perf_counter() + seconds
    if known.ticks is None:
        return IntegerBound(None, None, True, 0)
    rows = Rows(Costs(choices))
    used = [row for row, _ in known.multipliers.rows if row.kind != "memory"]
    devices: list[Resource] = [("device", d, d) for d in range(rows.costs.k)]
    loads = [Row("load", resource) for resource in (*devices, NCCL)]
    seen = dict.fromkeys((*loads, *used))
    model = ChoiceModel(rows, known.ticks, max(known.ticks, horizon(rows)), seen)
    separator = Separator(rows)
    bound, chosen, closed, rounds = known.ticks, None, False, 0
    while not closed and (left := deadline - time.perf_counter()) > 0:
        solver = cp_model.CpSolver()
        # One worker gives the same answer every time, unless the time ends it.
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = left
        status = solver.solve(model.model)
        rounds += 1
        if status == cp_model.MODEL_INVALID:
            raise OptpartError("the integer program is invalid; please report this")
        if status == cp_model.INFEASIBLE:
            return IntegerBound(None, None, True, rounds)
        # The solver passes integer bounds as doubles, which are exact below 2^53.
        bound = max(bound, round(solver.best_objective_bound))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        chosen = tuple(
            next(a for a, literal in enumerate(row) if solver.boolean_value(literal))
            for row in model.y
        )
        if status != cp_model.OPTIMAL:
            break
        violated = separator.violated(rows.point(chosen).astype(float), float(bound))
        new = [row for row in violated if row not in seen]
        for row in new:
            seen[row] = None
            model.add(row)
        closed = not new
    return IntegerBound(rows.costs.time(bound), chosen, closed, rounds)

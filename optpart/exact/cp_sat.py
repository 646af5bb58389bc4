"""The set-up of CP-SAT: the same for every model, in a solver process or in this one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Protocol

from ortools.sat.python import cp_model

from optpart.base.errors import FailureError
from optpart.exact.messages import Done, Limits, LowerBound, Send

#: Reads the value of a variable or an expression in a solution.
Value = Callable[[Any], int]


class Built(Protocol):
    """A model with its own way to read a solution."""

    model: cp_model.CpModel

    def found(self, value: Value) -> object:
        """Read a solution from the values of the variables."""
        ...


def solver_within(
    seconds: float = math.inf,
    *,
    workers: int = 1,
    seed: int = 1,
    deterministic: float | None = None,
    model: cp_model.CpModel | None = None,
) -> cp_model.CpSolver:
    """Return a solver with its limits and its seed.

    It leaves out two things with which OR-Tools 9.15 claims that a schedule is optimal although a
    shorter one exists: the step of its presolve that looks for at most one literal inside of linear
    constraints, where times are long (<https://github.com/google/or-tools/issues/5293>), and, for
    models with intervals, decisions that follow the solution of the linear relaxation, in about one
    of a hundred solves of a flexible job shop by one worker. Of other models no such claim is
    known, and models of paths are proven by these decisions.

    Parameters
    ----------
    deterministic : float, optional
        Limit in the solver's deterministic time.
    model : CpModel, optional
        What it will solve; one with intervals if it is not given.
    """
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.max_time_in_seconds = seconds
    parameters.num_workers = workers
    parameters.random_seed = seed
    parameters.presolve_inclusion_work_limit = 0
    if model is None or any(each.has_interval() for each in model.proto.constraints):
        parameters.exploit_integer_lp_solution = False
        parameters.exploit_all_lp_solution = False
    if deterministic is not None:
        parameters.max_deterministic_time = deterministic
    return solver


def minimise(
    model: cp_model.CpModel, seconds: float
) -> tuple[cp_model.CpSolver | None, int | None]:
    """Minimise in this process, by two workers, something that is never negative.

    Returns
    -------
    solver : CpSolver or None
        To read the best solution from, if there is one.
    bound : int or None
        What no solution is below; ``None`` if the solver claims that there is none. It is exact
        below 2^53.

    Raises
    ------
    FailureError
        If the solver refuses the model.
    """
    solver = solver_within(max(0.0, seconds), workers=2, model=model)
    status = solver.solve(model)
    if status == cp_model.MODEL_INVALID:
        raise FailureError(f"CP-SAT refuses the model: {model.validate()}")
    if status == cp_model.INFEASIBLE:
        return None, None
    least = round(max(0.0, solver.best_objective_bound))
    return None if status == cp_model.UNKNOWN else solver, least


def _as_it_is(parameters: Any) -> None:
    pass


def solve(
    build: Callable[[], Built],
    limits: Limits,
    send: Send,
    tune: Callable[[Any], None] = _as_it_is,
    *,
    steps: bool = True,
) -> None:
    """Build a model, solve it within limits, which count from now, and send what is found.

    Parameters
    ----------
    tune : callable
        Sets further parameters of the solver.
    steps : bool
        Whether to send every solution and every bound, not only the last ones.
    """
    begin = time.perf_counter()
    built = build()
    solver = solver_within(
        workers=limits.workers,
        seed=limits.seed,
        deterministic=limits.deterministic,
        model=built.model,
    )
    parameters = solver.parameters
    tune(parameters)

    class Report(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            send(built.found(self.value))

    if steps:
        # The solver passes integer bounds as doubles, which are exact below 2^53.
        solver.best_bound_callback = lambda value: send(LowerBound(round(value)))
    parameters.max_time_in_seconds = max(0.01, limits.seconds - (time.perf_counter() - begin))
    status = solver.solve(built.model, Report() if steps else None)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    if found and not steps:
        send(built.found(solver.value))
    least = None
    if built.model.has_objective() and (found or status == cp_model.UNKNOWN):
        least = round(solver.best_objective_bound)
    send(Done(solver.status_name(status), least))

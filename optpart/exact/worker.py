"""The worker process of CP-SAT, whose crashes do not affect the caller.

It reads jobs from standard input and writes messages (:mod:`optpart.exact.messages`).
"""

from __future__ import annotations

import time

from ortools.sat.python import cp_model

from optpart.exact.identical_model import IdenticalModel
from optpart.exact.messages import Done, Incumbent, Limits, LowerBound
from optpart.exact.model import ScheduleModel
from optpart.exact.serving import Send, serve
from optpart.exact.task import Task

#: Strategies for proving optimality with two workers: both run conflict-driven search, one of them
#: with frequent restarts. By default, one worker would only look for better schedules. If the
#: placement is fixed, linear programs contribute little.
_SEQUENCING = ("quick_restart_no_lp", "no_lp")
_PLACING = ("quick_restart", "no_lp")

#: Beyond this many vertices, little can be proven, so finding better schedules matters more.
_PROVABLE = 100


def main() -> None:
    """Serve jobs until standard input ends."""
    serve(_solve)


def _strategies(task: Task) -> tuple[str, ...]:
    """Return the strategies of the workers; empty for the solver's own choice."""
    if task.sequences_only:
        return _SEQUENCING
    if task.identical or task.instance.vertices > _PROVABLE:
        return ()
    return _PLACING


def _solve(task: Task, limits: Limits, send: Send) -> None:
    begin = time.perf_counter()
    built = IdenticalModel(task) if task.identical else ScheduleModel(task)
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = limits.workers
    parameters.random_seed = limits.seed
    parameters.max_time_in_seconds = max(0.01, limits.seconds - (time.perf_counter() - begin))
    if limits.workers == 2 and (strategies := _strategies(task)):
        parameters.subsolvers.extend(strategies)
        parameters.num_full_subsolvers = len(strategies)
    if limits.deterministic is not None:
        parameters.max_deterministic_time = limits.deterministic

    class Report(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            found = built.found(self.value)
            send(Incumbent(time.perf_counter() - begin, found.placement, found.start, found.begin))

    def bound(value: float) -> None:
        # The solver passes integer bounds as doubles, which are exact below 2^53.
        send(LowerBound(time.perf_counter() - begin, round(value)))

    solver.best_bound_callback = bound
    status = solver.solve(built.model, Report())
    least = None
    if task.asked != "decision" and status in (
        cp_model.OPTIMAL,
        cp_model.FEASIBLE,
        cp_model.UNKNOWN,
    ):
        least = round(solver.best_objective_bound)
    send(Done(time.perf_counter() - begin, solver.status_name(status), least))

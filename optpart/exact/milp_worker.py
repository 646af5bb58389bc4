"""The worker process of the MILP solvers; that of CP-SAT is :mod:`optpart.exact.worker`.

PuLP, and with it HiGHS, is imported only here: they cannot share a process with OR-Tools.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import highspy
import pulp

from optpart.base.children.scratch import Scratch
from optpart.exact.messages import Done, Incumbent, Limits, LowerBound, Send, serve
from optpart.exact.milp_blocks import blocks, loads
from optpart.exact.milp_model import MilpModel
from optpart.exact.milp_task import EPSILON, MARGIN, MilpTask, proven_ticks

#: Seconds that CBC may take past its limit to write its answer.
_GRACE = 5.0

_CBC_BOUND = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)

_HIGHS = {
    highspy.HighsModelStatus.kOptimal: "OPTIMAL",
    highspy.HighsModelStatus.kInfeasible: "INFEASIBLE",
    # All variables are bounded.
    highspy.HighsModelStatus.kUnboundedOrInfeasible: "INFEASIBLE",
    highspy.HighsModelStatus.kTimeLimit: "FEASIBLE",
}
_CBC = {
    pulp.LpSolutionOptimal: "OPTIMAL",
    pulp.LpSolutionIntegerFeasible: "FEASIBLE",
    pulp.LpSolutionNoSolutionFound: "FEASIBLE",
}


def main() -> None:
    """Serve jobs until standard input ends."""
    serve(_solve)


def _solve(task: MilpTask, limits: Limits, send: Send) -> None:
    _Run(task, limits, send).run()


class _Run:
    """One task: build the model, solve it, and report the results."""

    def __init__(self, task: MilpTask, limits: Limits, send: Send) -> None:
        self.begin = time.perf_counter()
        self.task = task
        self.limits = limits
        self.send = send
        self.model = MilpModel(task)
        self.model.extend(blocks(self.model))
        if task.loads is not None:
            self.model.extend(loads(self.model))
        self.bound, self.most = task.sought

    def run(self) -> None:
        solve = _highs if self.task.solver == "HiGHS" else _cbc
        left = max(0.01, self.limits.seconds - self._seconds())
        status = solve(self.model.problem, left, self.limits.seed, self._found, self._bounded)
        self.send(Done(status, self.bound))

    def _seconds(self) -> float:
        return time.perf_counter() - self.begin

    def _found(self, values: Mapping[str, float]) -> None:
        self.send(Incumbent(*self.model.incumbent(values)))

    def _bounded(self, value: float) -> None:
        starts, rows = len(self.model.start) + 2, self.model.rows
        ticks = proven_ticks(value, starts, rows, max(self.task.upper, self.most))
        if ticks is not None and self.bound < ticks <= self.most:
            self.bound = ticks
            self.send(LowerBound(ticks))


Found = Callable[[Mapping[str, float]], None]
Bounded = Callable[[float], None]


def _highs(
    problem: pulp.LpProblem, seconds: float, seed: int, found: Found, bounded: Bounded
) -> str:
    solver = pulp.HiGHS(
        msg=False,
        timeLimit=seconds,
        gapAbs=MARGIN,
        gapRel=0.0,
        random_seed=seed % 2**31,
        mip_feasibility_tolerance=EPSILON,
        primal_feasibility_tolerance=EPSILON,
        dual_feasibility_tolerance=EPSILON,
    )
    solver.createAndConfigureSolver(problem)
    solver.buildSolverModel(problem)
    model: Any = problem.solverModel
    variables: list[Any] = problem.variables()
    if _hinted(problem):
        solution = highspy.HighsSolution()
        solution.col_value = [float(variable.varValue) for variable in variables]
        model.setSolution(solution)

    def tell(values: Any) -> None:
        found({variable.name: values[variable.index] for variable in variables})

    model.cbMipImprovingSolution += lambda event: tell(event.data_out.mip_solution)
    model.cbMipInterrupt += lambda event: bounded(event.data_out.mip_dual_bound)
    model.run()
    status = model.getModelStatus()
    if status == highspy.HighsModelStatus.kOptimal:
        tell(model.getSolution().col_value)
    bounded(model.getInfo().mip_dual_bound)
    return _HIGHS.get(status) or str(model.modelStatusToString(status))


def _hinted(problem: pulp.LpProblem) -> bool:
    return all(variable.varValue is not None for variable in problem.variables())


def _cbc(problem: pulp.LpProblem, seconds: float, seed: int, found: Found, bounded: Bounded) -> str:
    path = shutil.which("cbc") or shutil.which(pulp.PULP_CBC_CMD.pulp_cbc_path)
    if path is None:
        return "CBC is not installed"
    with Scratch() as scratch:
        mps, hint, solved = (str(scratch.folder / name) for name in ("mps", "mst", "sol"))
        solver = pulp.COIN_CMD(path=path, msg=False)
        variables, names, rows, _ = problem.writeMPS(mps, rename=True)
        arguments = [path, mps]
        if _hinted(problem):
            solver.writesol(hint, problem, variables, names, rows)
            arguments += ["-mips", hint]
        options = {
            "sec": seconds,
            "timeMode": "elapsed",
            "allow": MARGIN,
            "ratio": 0,
            "primalT": EPSILON,
            "dualT": EPSILON,
            "integerT": EPSILON,
            "randomCbcSeed": seed % 2**31,
        }
        arguments += [text for key, value in options.items() for text in (f"-{key}", str(value))]
        arguments += ["-solve", "-printingOptions", "all", "-solution", solved]
        log = scratch.start(arguments, seconds + _GRACE).read().decode(errors="replace")
        if scratch.wait() is None:
            return "FEASIBLE"  # only the time limit is known
        if not Path(solved).exists():
            return "no answer"
        ended, values, *_, status = solver.readsol_MPS(solved, problem, variables, names, rows)
    if status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        found(values)
    # If the search is complete, CBC does not always print its bound separately.
    if stated := _CBC_BOUND.search(log):
        bounded(float(stated[1]))
    elif status == pulp.LpSolutionOptimal:
        bounded(sum(c * values[x.name] for x, c in problem.objective.items()))
    # PuLP reports infeasibility in two ways, one of them only in the first status.
    return "INFEASIBLE" if ended == pulp.LpStatusInfeasible else _CBC.get(status, "no answer")

"""MiniZinc: a solver-independent formulation of the whole problem.

The models are in ``models/``: one file shared by all variants, and one for each communication and
memory model. Together with Gecode they check the other formulations: the model is plain, the solver
shares no code with the others, and neither our heuristics nor our bounds are used.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from optpart.base.children.scratch import Scratch
from optpart.base.errors import InputError
from optpart.exact import minizinc_data as data
from optpart.kernels.ticks import Grid
from optpart.problem.feasibility import contradiction, excluded
from optpart.problem.instance import Instance
from optpart.problem.rational import RationalArray
from optpart.solution.goal import MINIMISED, Goal, Measure
from optpart.solution.job import Job, method
from optpart.solution.record import Record
from optpart.solution.result import Result, Watch
from optpart.solution.schedule import Schedule, Transfers, crossings
from optpart.solution.termination import Termination

#: Limit on the entries of tables; larger models take impractically long to compile.
_MAX_TERMS = 1_000_000

#: Seconds beyond its limit for the command to stop by itself.
_GRACE = 0.3

_SOLUTION = "----------"
_PROOF = "=========="
_UNSATISFIABLE = "=====UNSATISFIABLE====="


class _EndedError(RuntimeError):
    """The command ended without a proof; earlier solutions remain valid."""

    def __init__(self, termination: Termination, reason: str) -> None:
        super().__init__(reason)
        self.termination = termination
        self.reason = reason


@method
def minizinc(job: Job, watch: Watch | None = None, *, solver: str = "gecode") -> Result:
    """Solve an instance with a MiniZinc solver, in one thread.

    Every communication and memory model is supported, and every goal without contiguous blocks and
    bottlenecks. If the start satisfies the goal, the search is limited to schedules that are no
    worse. The seconds of the budget include compilation; the seed has no effect.

    Parameters
    ----------
    solver : str
        Name of the solver as for ``minizinc --solver``.

    Returns
    -------
    Result
        ``OPTIMAL`` and ``INFEASIBLE`` are proven by the solver; without a proof, there is no bound.
        The bound is valid for the instance restricted by ``goal``.

    Raises
    ------
    InputError
        If the command ``minizinc`` is not installed.
    UnsupportedError
        If times or sizes cannot be expressed as whole numbers of at most 2^29 units.
    """
    check_scope(job.instance, job.goal)
    return _Solve(job, watch, solver).run()


def check_scope(instance: Instance, goal: Goal) -> None:
    """Raise :class:`InputError` if the goal is not supported or the command is not installed."""
    goal.require_no_blocks("minizinc")
    if which("minizinc") is None:
        raise InputError(
            "minizinc",
            "the command is not installed",
            "install MiniZinc with Gecode (apt-get install minizinc, or www.minizinc.org)",
        )


@cache
def models() -> Path:
    """Return the folder of the models: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    installed = package / "models"
    return installed if installed.is_dir() else package.parent / "models"


class _Solve:
    """One run, which minimises the makespan, the traffic, or both in turn."""

    def __init__(self, job: Job, watch: Watch | None, solver: str) -> None:
        self.record = Record(job, watch)
        self.job = job
        self.instance = job.instance
        self.goal = job.goal
        self.solver = solver
        self.infeasible = ""

    def run(self) -> Result:
        """Minimise the objective, or both in turn if there are two."""
        with self.record.until_interrupted():
            try:
                self._search()
            except _EndedError as error:
                self.record.end(error.termination, error.reason)
        return self.record.result("minizinc", infeasible=self.infeasible, workers=1)

    def _search(self) -> None:
        instance, k = self.instance, self.instance.devices
        if max(instance.vertices**2, instance.graph.tensors * k) * k > _MAX_TERMS:
            raise _EndedError(Termination.UNSUPPORTED, "too large for MiniZinc")
        self.grid = Grid.of(instance)
        self.sizes = data.Sizes.of(instance, self.goal)
        self.horizon = data.horizon(instance, self.grid)
        if self.job.start is not None:
            self.record.offer_start(self.job.start)
        for measure in MINIMISED[self.goal.objective]:
            if not self._minimise(measure):
                return

    def _minimise(self, measure: Measure) -> bool:
        """Minimise the makespan or the traffic; return whether the optimum is proven."""
        content = data.write(
            self.instance, self.grid, self.sizes, self.goal, self._most(measure), measure
        )
        names = ("tf", self.instance.model.communication, self.instance.model.memory)
        command = ["minizinc", "--solver", self.solver, "-a", "--output-mode", "json"]
        command += [str(models() / f"{name}.mzn") for name in names]
        for answer in _answers(command, content, self.job.budget.seconds - self.record.seconds):
            if answer == _UNSATISFIABLE:
                self._no_schedule()
                return False
            if answer == _PROOF:
                break
            found = _schedule(self.instance, self.grid, json.loads(answer))
            if broken := self.record.offer(found):
                raise _EndedError(Termination.FAILED, f"MiniZinc's schedule is not valid: {broken}")
        self.record.raise_bound(self.record.values[measure], measure)
        return True

    def _most(self, measure: Measure) -> tuple[int, int]:
        """Return the limits of makespan and traffic, from the goal and the incumbent."""
        makespans = [self.goal.makespan, self.record.bound]
        traffics = [self.goal.traffic]
        reached = makespans if measure == "makespan" else traffics
        reached.append(self.record.values.get(measure))
        return (
            min([self.horizon, *(self.grid.floor(x) for x in makespans if x is not None)]),
            min([self.sizes.total, *(x // self.sizes.unit for x in traffics if x is not None)]),
        )

    def _no_schedule(self) -> None:
        if self.record.incumbent is not None:
            raise AssertionError(
                f"minizinc: {self.solver} finds no schedule of {self.instance.name}, which has "
                "one; please report this as a bug"
            )
        self.infeasible = (
            self.goal.contradiction(self.instance)
            or contradiction(self.instance)
            or excluded(self.instance, self.solver, self.goal.given)
        )


def _schedule(instance: Instance, grid: Grid, answer: dict[str, Any]) -> Schedule:
    """Return the solver's schedule with its own times; earlier ones might break memory limits."""
    placement = np.array(answer["place"], dtype=np.int32) - 1

    def times(ticks: list[int]) -> RationalArray:
        return RationalArray.from_fractions(map(grid.time, ticks))

    crossing = crossings(instance, placement)
    return Schedule(
        placement,
        times(answer["start"]),
        Transfers(
            np.array([tensor for tensor, _ in crossing], dtype=np.int32),
            np.array([target for _, target in crossing], dtype=np.int32),
            times([answer["begin"][tensor][target] for tensor, target in crossing]),
            times([answer["arrival"][tensor][target] for tensor, target in crossing]),
        ),
    )


def _answers(command: list[str], content: str, seconds: float) -> Iterator[str]:
    """Run MiniZinc; yield each solution as JSON, and finally the line that states the proof.

    Raises
    ------
    _EndedError
        If the command exceeded the time limit, failed or died.
    """
    if seconds <= 0:
        raise _EndedError(Termination.TIME_LIMIT, "time limit")
    begin = time.perf_counter()
    with ExitStack() as stack:
        try:
            scratch = stack.enter_context(Scratch())
        except OSError as error:
            reason = f"MiniZinc could not be started ({error.strerror})"
            raise _EndedError(Termination.FAILED, reason) from None
        path = scratch.folder / "instance.dzn"
        path.write_text(content, encoding="utf-8")
        seconds -= time.perf_counter() - begin
        limited = [*command, "--time-limit", str(max(1, int(1000 * seconds))), str(path)]
        lines = scratch.start(limited, seconds + _GRACE)
        proof = yield from _solutions(line.decode() for line in lines)
        code = scratch.wait()
        if code == 0 and proof:
            yield proof
        elif not code:
            raise _EndedError(Termination.TIME_LIMIT, "time limit")
        else:
            raise _EndedError(Termination.FAILED, _failure(code, scratch.complaints()))


def _solutions(lines: Iterable[str]) -> Generator[str, None, str]:
    """Yield each solution; return the line that states the proof, empty if there is none."""
    solution: list[str] = []
    proof = ""
    for line in map(str.rstrip, lines):
        if line == _SOLUTION:
            yield "".join(solution)
            solution = []
        elif line in (_PROOF, _UNSATISFIABLE):
            proof = line
        elif not line.startswith(("%", "=")):
            solution.append(line)
    return proof


def _failure(code: int, complaints: str) -> str:
    """Return the reason for this exit code, in one line."""
    if code < 0:
        return f"MiniZinc died (signal {-code})"
    said = [line for line in complaints.splitlines() if re.search("error|exception", line, re.I)]
    return f"MiniZinc failed: {said[-1] if said else f'exit {code}'}"

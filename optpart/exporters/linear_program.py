"""The mixed-integer linear program of an instance, as a file for any solver.

The program is that of the method ``milp`` (:mod:`optpart.exact.milp_model`), with symmetry between
devices broken and load cuts. Its times are whole ticks of a grid on which every time of the
instance is exact, so that the optimum of the program is the least makespan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from optpart.base.children.worker import Worker, WorkerDiedError
from optpart.base.errors import FailureError, InputError, UnsupportedError
from optpart.base.files import Kind, begins, write_text
from optpart.base.limits import MOST_SECONDS
from optpart.exact.milp import HORIZON, check_scope, pairs_to_order
from optpart.exact.milp_task import MilpTask
from optpart.exact.symmetry import interchangeable_devices
from optpart.kernels.compiled import UNLIMITED, whole_memory
from optpart.kernels.horizon import horizon_without_queues
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.load import load_ticks
from optpart.lower_bounds.windows import windows
from optpart.problem.feasibility import contradiction
from optpart.problem.instance import Instance
from optpart.solution.goal import Goal

#: About the rows of a program that takes some minutes and gigabytes to write.
_MOST_ROWS = 1_000_000

#: By form.
KINDS: dict[Literal["lp", "mps"], Kind] = {
    "lp": Kind("a linear program of optpart's", begins(rb"\\ Schedules of ")),
    "mps": Kind("a linear program of optpart's in MPS", begins(rb"\* Schedules of ")),
}

_WRITER = "optpart.exporters.linear_program_writer"


def write(instance: Instance, output: str | Path, form: Literal["lp", "mps"]) -> list[str]:
    """Write the linear program of an instance.

    Parameters
    ----------
    form : {"lp", "mps"}
        CPLEX LP, or free MPS.

    Returns
    -------
    list of str
        The unit of time, and what the program rests on.

    Raises
    ------
    InputError
        If the model of the instance is not covered, nothing can be placed, times have no exact
        grid, or the program would be too large.
    """
    text, remarks = program(instance, form)
    write_text(output, text, KINDS[form])
    return remarks


def program(instance: Instance, form: Literal["lp", "mps"]) -> tuple[str, list[str]]:
    """Return the text of the program, and remarks; see :func:`write`."""
    check_scope(instance, Goal())
    found = contradiction(instance)
    if found:
        raise InputError(instance.name, f"has no schedule ({found})", "give a feasible instance")
    grid = Grid.of(instance)
    if not grid.exact:
        problem = "its times have no common unit of which they are moderate multiples"
        raise UnsupportedError(instance.name, problem, "round its times")
    upper = horizon_without_queues(grid)
    window = windows(instance, grid, upper)
    lower = None if window.bound is None else load_ticks(instance, grid, window)
    if lower is None or lower > upper:
        problem = "has no schedule (its bounds exclude any)"
        raise InputError(instance.name, problem, "give a feasible instance")
    pairs = pairs_to_order(instance, window)
    if pairs > _MOST_ROWS:
        problem = f"has about {pairs:,} pairs of vertices that may share a device"
        raise UnsupportedError(instance.name, problem, f"give at most {_MOST_ROWS:,}")
    need, capacity = whole_memory(instance, relax=True)
    if (need != whole_memory(instance, relax=False)[0]).any():
        problem = "its memory needs have no common unit of which they are moderate multiples"
        raise UnsupportedError(instance.name, problem, "round them")
    job = MilpTask(
        instance=instance,
        grid=grid,
        head=window.head,
        tail=window.tail,
        possible=window.possible,
        lower=lower,
        upper=upper,
        need=need,
        capacity=np.where(capacity < UNLIMITED, capacity, -1),
        alike=interchangeable_devices(instance, Goal()),
        load_cuts=True,
        order=(),
        traffic=None,
        placement=None,
        start=None,
        sequence=[],
        solver="HiGHS",
    )
    unit = "the time unit of the instance" if grid.scale == 1 else f"{1 / grid.scale} time units"
    remarks = [f"One unit of time of the program is {unit}; the objective is the makespan."]
    if upper > HORIZON:
        remarks.append(
            f"Times reach up to {upper:,}: the tolerances of solvers are not small against 1, so "
            "check what they call optimal."
        )
    return _text(job, form, remarks), remarks


def _text(job: MilpTask, form: str, remarks: list[str]) -> str:
    # PuLP loads HiGHS, which cannot share a process with OR-Tools.
    worker = Worker(_WRITER)
    try:
        worker.send((job, form, remarks))
        text = worker.receive(MOST_SECONDS)
    except WorkerDiedError as error:
        problem = f"the writer of linear programs {error}"
        raise FailureError(f"{job.instance.name}: {problem}") from None
    finally:
        worker.stop()
    assert isinstance(text, str)
    return text

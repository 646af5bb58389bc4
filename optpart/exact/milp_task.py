"""The task that the MILP method sends to its worker process, and the bound that its answer proves.

This module must not import a solver: PuLP loads HiGHS, which cannot share a process with OR-Tools.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from optpart.exact.model_data import ModelData
from optpart.problem.instance import Instance

Solver = Literal["HiGHS", "CBC"]

#: The feasibility, integrality and dual tolerances of the solvers.
EPSILON = 1e-9

#: The solvers may discard solutions whose improvement is smaller than this, in ticks.
MARGIN = 0.25


@dataclass(frozen=True, eq=False, kw_only=True)
class MilpTask(ModelData):
    """The data from which the linear program is built.

    Attributes
    ----------
    order : tuple of (int, int)
        In each pair, the first vertex must end before the second starts if they share a device.
    traffic : Fraction, optional
        Upper limit of the traffic.
    placement, start : ndarray, optional
        The initial schedule.
    sequence : list of int
        The vertices of the initial schedule in order of their starts.
    contiguous, device_order
        As in :class:`~optpart.solution.goal.Goal`.
    loads : pair of int, optional
        If the bottleneck is minimised: its proven lower bound and upper limit, in ticks divided by
        ``channels``.
    timed : bool
        Whether times matter, not only the placement.
    """

    order: tuple[tuple[int, int], ...]
    traffic: Fraction | None
    placement: NDArray[np.int32] | None
    start: NDArray[np.int64] | None
    sequence: list[int]
    solver: Solver
    contiguous: bool = False
    device_order: tuple[int, ...] = ()
    loads: tuple[int, int] | None = None
    timed: bool = True

    @property
    def sought(self) -> tuple[int, int]:
        """Proven lower bound and upper limit of what is minimised."""
        return (self.lower, self.upper) if self.loads is None else self.loads


def proven_ticks(bound: float, starts: int, rows: int, horizon: int) -> int | None:
    """Convert a solver's bound on the makespan to whole ticks.

    The minimal makespan on a grid is a whole number. The result is ``⌈B − ¼ − τ⌉``:

    - ``¼`` is :data:`MARGIN`. It is subtracted because the solver may discard solutions that
      improve on its incumbent by less than this, and then report the incumbent as the bound.
    - ``τ = ε·H·(starts + 3·rows)`` is the largest error that the dual tolerance ``ε`` can cause in
      the bound of one linear program: a reduced cost with the wrong sign, of at most ``ε``, adds at
      most ``ε`` times the range of its column or row. The range of a start is at most the horizon
      ``H``, that of a row at most about ``3H``.

    The feasibility and integrality tolerances only admit more solutions, so they can only lower
    the bound and need no margin. A completed search reports at least its incumbent minus the
    margin, so the result is the incumbent if ``τ < ½``; every discarded solution was then discarded
    with a margin of more than ``τ``.

    Parameters
    ----------
    bound : float
        The solver's dual bound in ticks.
    starts, rows : int
        Number of columns that represent times, and number of rows.
    horizon : int
        Largest makespan that the model admits, in ticks.

    Returns
    -------
    int or None
        ``None`` if the bound is not finite.
    """
    if not math.isfinite(bound):
        return None
    return math.ceil(bound - MARGIN - EPSILON * horizon * (starts + 3 * rows))


def passed_tensors(instance: Instance) -> Mapping[tuple[int, int], list[int]]:
    """Return the tensors passed between each pair of vertices."""
    graph = instance.graph
    passed: dict[tuple[int, int], list[int]] = {}
    for u, v, tensor in graph.edges():
        passed.setdefault((u, v), []).append(tensor)
    return passed

"""The job that the MILP method sends to its worker process, and what its answer proves.

Nothing here imports a solver: PuLP loads HiGHS, and HiGHS and OR-Tools cannot share a process.
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

#: Feasibility, integrality and dual tolerance set for the solvers.
EPSILON = 1e-9

#: The solvers may discard solutions that are better by less than this, in ticks.
MARGIN = 0.25


@dataclass(frozen=True, eq=False, kw_only=True)
class Job(ModelData):
    """All that the linear program is built from.

    Attributes
    ----------
    order : tuple of (int, int)
        Of each pair, the first vertex ends before the second starts if they share a device.
    traffic : Fraction, optional
        What must not be exceeded.
    placement, start : ndarray, optional
        A schedule to start from.
    sequence : list of int
        Its vertices by start.
    """

    order: tuple[tuple[int, int], ...]
    traffic: Fraction | None
    placement: NDArray[np.int32] | None
    start: NDArray[np.int64] | None
    sequence: list[int]
    solver: Solver


def proven_ticks(bound: float, starts: int, rows: int, horizon: int) -> int | None:
    """Turn a solver's bound of the makespan into one in whole ticks.

    The least makespan on a grid is a whole number. The result is ``⌈B − ¼ − τ⌉``:

    - ``¼`` is the margin :data:`MARGIN`. The solver may discard solutions that beat its incumbent
      by less than that and nevertheless report its incumbent as the bound; so the margin is
      subtracted.
    - ``τ = ε·H·(starts + 3·rows)`` is the most that the tolerance ``ε`` of dual solutions can add
      to the bound of one linear program: a reduced cost of the wrong sign by at most ``ε`` adds at
      most ``ε`` times the range of its column or row; the range of a start is at most the horizon
      ``H``, that of a row at most about ``3H``.

    Primal tolerances, of feasibility and integrality, only admit more solutions, so they lower the
    bound and need no allowance. A completed search reports at least its incumbent less the margin,
    so with ``τ < ½`` the result is the incumbent; every decision to discard was then made with a
    margin of more than ``τ``.

    Parameters
    ----------
    bound : float
        The solver's dual bound in ticks.
    starts, rows : int
        Columns that are times, and rows of the model.
    horizon : int
        The makespan that the model admits, in ticks.

    Returns
    -------
    int or None
        ``None`` if the bound is not finite.
    """
    if not math.isfinite(bound):
        return None
    return math.ceil(bound - MARGIN - EPSILON * horizon * (starts + 3 * rows))


def passed_tensors(instance: Instance) -> Mapping[tuple[int, int], list[int]]:
    """Return, per pair of vertices, the tensors that pass between them."""
    graph = instance.graph
    passed: dict[tuple[int, int], list[int]] = {}
    for u, v, tensor in zip(
        graph.edge_source.tolist(), graph.edge_target.tolist(), graph.edge_tensor.tolist(),
        strict=True,
    ):  # fmt: skip
        passed.setdefault((u, v), []).append(tensor)
    return passed

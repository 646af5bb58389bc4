"""Records of the tiers that prove by arithmetic: paths, one machine, and loads.

Multipliers come from a linear program in doubles. They are only a proposal, which the checker's own
functions verify in exact numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from optpart.base import clock
from optpart.certificates.check import RejectedError, Windows, refute_by_load, room

Record = dict[str, Any]

#: Multipliers are rounded to multiples of ``1 / _PARTS``.
_PARTS = 2**20

#: Largest number of vertex sets to try; each takes a linear program.
_MAX_SETS = 60

#: Largest number of distinct heads, and of tails, that bound these sets, and those of one machine;
#: of more, an even selection.
_MAX_THRESHOLDS, _MAX_ON_ONE = 20, 100


def path_record(windows: Windows) -> Record | None:
    """Return the record of tier ``path`` if windows alone refute the horizon."""
    return None if windows.feasible else {}


def one_machine_record(windows: Windows) -> Record | None:
    """Return the record if some vertices refute the horizon on their only possible device.

    Notes
    -----
    For a pair of thresholds, the largest set consists of all vertices with at least this head and
    tail; it proves the sum of its least head, run times and least tail. The greatest of these sums
    is the length of Jackson's preemptive schedule (Carlier 1982), so no other set proves more.
    """
    problem = windows.problem
    for d in range(len(problem.devices)):
        there = [v for v, unit in enumerate(problem.unit) if windows.possible[unit] == [d]]
        heads = some((windows.head[v][d] for v in there), _MAX_ON_ONE)
        tails = some((windows.tail[v][d] for v in there), _MAX_ON_ONE)
        for head, tail in product(heads, tails):
            chosen = [v for v in there if windows.head[v][d] >= head and windows.tail[v][d] >= tail]
            total = head + sum(windows.time(v, d) for v in chosen) + tail
            if chosen and total > windows.horizon:
                return {"device": d, "vertices": chosen}
    return None


def load_record(windows: Windows, deadline: float = math.inf) -> Record | None:
    """Return the record of tier ``load`` if some set of vertices is too much for the devices.

    Parameters
    ----------
    deadline : float
        When :func:`optpart.base.clock.now` has reached it, no further set is tried.

    Notes
    -----
    Each set consists of the vertices with at least some head and at least some tail: those that
    cannot start before some time, and after which some time must pass.
    """
    for vertices in _sets(windows):
        if clock.now() > deadline:
            break
        record = proven_load(windows, vertices, *multipliers(windows, vertices))
        if record is not None:
            return record
    return None


def proven_load(
    windows: Windows, vertices: list[int], y: list[int], mu: list[str]
) -> Record | None:
    """Return the record with these multipliers if it refutes the horizon."""
    record = {"vertices": vertices, "load": y, "memory": mu}
    with suppress(RejectedError):
        refute_by_load(windows, record)
        return record
    return None


def _sets(windows: Windows) -> list[list[int]]:
    """List the sets of vertices by least head and least tail, the set of all vertices first."""
    head, tail = [], []
    for v, unit in enumerate(windows.problem.unit):
        head.append(min(windows.head[v][d] for d in windows.possible[unit]))
        tail.append(min(windows.tail[v][d] for d in windows.possible[unit]))
    pairs = product(some({0, *head}, _MAX_THRESHOLDS), some({0, *tail}, _MAX_THRESHOLDS))
    thresholds = sorted(pairs, key=lambda pair: (sum(pair), pair))
    sets: dict[tuple[int, ...], None] = {}
    for h, t in thresholds:
        chosen = tuple(v for v in range(len(head)) if head[v] >= h and tail[v] >= t)
        if chosen:
            sets[chosen] = None
    found = list(sets)
    return [list(chosen) for chosen in found[:: 1 + len(found) // _MAX_SETS]]


def some(values: Iterable[int], most: int) -> list[int]:
    """Return at most the given number of distinct values, ascending, evenly spaced."""
    ascending = sorted(set(values))
    return ascending[:: 1 + len(ascending) // (most + 1)]


def multipliers(windows: Windows, vertices: list[int]) -> tuple[list[int], list[str]]:
    """Propose multipliers of load and memory.

    Maximise ``Σ_u z_u − Σ y·room − Σ μ·M`` subject to ``z_u ≤ y·load + μ·need`` and ``Σ y = 1``.
    """
    problem = windows.problem
    k, units = len(problem.devices), len(windows.members)
    chosen = set(vertices)
    unit_time = max(1, windows.horizon)
    limits = [limit for limit in problem.capacity if limit is not None]
    unit_memory = max([*limits, Fraction(1)])
    rows, columns, values = [], [], []
    row = 0
    for unit, members in enumerate(windows.members):
        need = problem.need[unit]
        for d in windows.possible[unit]:
            load = sum(windows.time(v, d) for v in members if v in chosen)
            entries = [(unit, 1.0), (units + d, -load / unit_time)]
            if problem.capacity[d] is not None:
                entries.append((units + k + d, -float(need / unit_memory)))
            for column, value in entries:
                rows.append(row)
                columns.append(column)
                values.append(value)
            row += 1
    cost = np.zeros(units + 2 * k)
    cost[:units] = -1
    for d, limit in enumerate(problem.capacity):
        cost[units + d] = room(windows, chosen, d) / unit_time
        cost[units + k + d] = 0.0 if limit is None else float(limit / unit_memory)
    once = np.zeros((1, units + 2 * k))
    once[0, units : units + k] = 1
    above: Any = coo_array((values, (rows, columns)), shape=(row, units + 2 * k)).tocsr()
    bounds: list[Any] = [(None, None)] * units + [(0, None)] * k
    bounds += [(0, 0 if limit is None else None) for limit in problem.capacity]
    solved = linprog(
        cost, A_ub=above, b_ub=np.zeros(row), A_eq=once, b_eq=[1.0], bounds=bounds, method="highs"
    )
    if solved.status != 0:
        return [1] * k, ["0"] * k
    found = np.maximum(0.0, np.asarray(solved.x))
    y = [round(float(x) * _PARTS) for x in found[units : units + k]]
    # A memory multiplier is time per memory, in the scales of the program.
    per = Fraction(unit_time) / unit_memory
    mu = [str(round(float(x) * _PARTS) * per) for x in found[units + k :]]
    return y, mu

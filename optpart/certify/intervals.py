"""Records of tier ``intervals``: which vertices share a device, case by case, along a longest path.

The heads are those of the checker, and so are the starts computed in every case, so that it proves
the same (see :mod:`optpart.bounds.cases`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optpart.bounds.cases import Growth, Heads
from optpart.certify.arithmetic import Record
from optpart.certify.check import MAX_CERTIFICATE, Windows

#: Vertices of an interval, and cases of its tree, at most.
_SIZE = 32
_CASES = 40

#: Bytes per number of a record, with those around it; a record takes up to half of a certificate.
_BYTES = 12


class Proof(NamedTuple):
    """A record, and the length in ticks up to which it refutes: no schedule takes less."""

    record: Record
    ticks: int


def interval_proof(windows: Windows, deadline: float) -> Proof:
    """Raise heads along a longest path, as far as the deadline permits."""
    heads = _heads(windows)
    growth = Growth(_SIZE, _CASES, deadline)
    steps = [
        {"vertices": step.vertices, "cases": step.cases}
        for step in heads.rise(growth, numbers=MAX_CERTIFICATE // (2 * _BYTES))
    ]
    return Proof({"steps": steps}, heads.ticks)


def _heads(windows: Windows) -> Heads:
    grid, problem = windows.grid, windows.grid.problem
    k = len(problem.devices)
    head = np.array(windows.head, dtype=np.int64)
    run = [[0 if p is None else p for p in row] for row in grid.run]
    number: dict[int, int] = {}
    tables: list[list[list[int]]] = []
    inputs: list[list[tuple[int, int]]] = [[] for _ in problem.order]
    for u, v, tensor in problem.edges:
        arrival = grid.arrival[tensor]
        if id(arrival) not in number:
            number[id(arrival)] = len(tables)
            tables.append(arrival)
        inputs[v].append((u, number[id(arrival)]))
    return Heads(
        order=problem.order,
        unit=problem.unit,
        separated=[(problem.unit[a], problem.unit[b]) for a, b in problem.separated],
        head=head,
        tail=np.array(windows.tail, dtype=np.int64),
        run=np.array(run, dtype=np.int64).reshape(head.shape),
        inputs=inputs,
        arrival=np.array(tables, dtype=np.int64).reshape(-1, k, k),
        never=grid.horizon + 1,
    )

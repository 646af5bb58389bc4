"""Records of tier ``intervals``: which vertices share a device, case by case, along a longest path.

Heads rise first, and then tails from the end, where they add to the raised heads. Both are those of
the checker, and so are the starts computed in every case, so that it proves the same (see
:mod:`optpart.bounds.cases`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optpart import clock
from optpart.bounds.cases import Growth, Heads, Times
from optpart.certify.arithmetic import Record
from optpart.certify.check import MAX_CERTIFICATE, Windows

#: Vertices of an interval, and cases of its tree, at most.
_SIZE = 36
_CASES = 50

#: Bytes per number of a record, with what surrounds it, and for everything else in a certificate.
_BYTES = 12
_RESERVE = 2**16


class Proof(NamedTuple):
    """A record, and the length in ticks up to which it refutes: no schedule takes less."""

    record: Record
    ticks: int


def interval_proof(windows: Windows, deadline: float) -> Proof:
    """Raise heads along a longest path, and then tails, as far as the deadline permits.

    The record has tails only if they prove more.
    """
    most = (MAX_CERTIFICATE - _RESERVE) // _BYTES
    head, tail = np.array(windows.head, dtype=np.int64), np.array(windows.tail, dtype=np.int64)
    forwards = _heads(windows, head, tail)
    # Half of the time, and half of the numbers at most: where time is short, two halves of a path
    # that meet prove about as much as the whole of it.
    half = clock.now() + (deadline - clock.now()) / 2
    steps = _steps(forwards, half, most // 2)
    proven = forwards.ticks
    if proven < forwards.never:
        backwards = _heads(windows, tail, forwards.head, backwards=True)
        left = most - sum(len(step["vertices"]) + len(step["cases"]) for step in steps)
        tails = _steps(backwards, deadline, left)
        if backwards.ticks > proven:
            return Proof({"steps": steps, "backwards": tails}, backwards.ticks)
    return Proof({"steps": steps}, proven)


def _steps(heads: Heads, deadline: float, numbers: int) -> list[Record]:
    growth = Growth(_SIZE, _CASES, deadline)
    return [
        {"vertices": step.vertices, "cases": step.cases} for step in heads.rise(growth, numbers)
    ]


def _heads(windows: Windows, head: Times, tail: Times, *, backwards: bool = False) -> Heads:
    grid, problem = windows.grid, windows.grid.problem
    k = len(problem.devices)
    crossing = grid.departure if backwards else grid.arrival
    run = [[0 if p is None else p for p in row] for row in grid.run]
    number: dict[int, int] = {}
    tables: list[list[list[int]]] = []
    inputs: list[list[tuple[int, int]]] = [[] for _ in problem.order]
    for u, v, tensor in problem.edges:
        times = crossing[tensor]
        if id(times) not in number:
            number[id(times)] = len(tables)
            tables.append(times)
        before, after = (v, u) if backwards else (u, v)
        inputs[after].append((before, number[id(times)]))
    return Heads(
        order=problem.order[::-1] if backwards else problem.order,
        unit=problem.unit,
        separated=[(problem.unit[a], problem.unit[b]) for a, b in problem.separated],
        head=head,
        tail=tail,
        run=np.array(run, dtype=np.int64).reshape(head.shape),
        inputs=inputs,
        arrival=np.array(tables, dtype=np.int64).reshape(-1, k, k),
        never=grid.horizon + 1,
    )

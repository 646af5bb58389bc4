"""Paths in which like vertices follow one another, such as the blocks of a language model.

A *run* is a stretch of a path whose vertices have the same run times, the same memory and the same
tensors between them. If the transfer times inside a run obey the triangle inequality, it need not
return to a device that it has left, unless to end where it began:

    Keep the devices of its first and last vertex, and the number of vertices on every device. Of
    two stretches on one device, unless they are the first and the last of the run, one has
    neighbours from the run on both sides. Swap its vertices into the other stretch. The work and
    the memory of every device stay the same, since the vertices are alike, and the run goes on
    directly where it went by way of this stretch, which takes no longer.

So a run is described by a path through distinct devices, and by the number of vertices on each.
The model of these choices grows with the number of runs, not of vertices, and CP-SAT solves it to
optimality even if memory is scarce.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from optpart.base.children.failures import record_failure
from optpart.exact.messages import Done, Incumbent, Limits, LowerBound
from optpart.exact.process import (
    SolverDiedError,
    SolverLateError,
    SolverTooLargeError,
    borrowed,
    prompt_grace,
)
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.problem import Series
from optpart.problem.durations import Durations
from optpart.problem.instance import Instance

WORKER = "optpart.exact.series.repeats_worker"

#: With fewer vertices per run, the model is hardly smaller than others.
_LEAST_LENGTH = 3

#: Limit on the literals of the model.
_MOST_LITERALS = 50_000


@dataclass(frozen=True)
class Run:
    """Consecutive vertices that are alike.

    Attributes
    ----------
    length : int
    time : dict from device to int
        Ticks that one vertex takes, on the devices that it may use.
    need : int
        Memory that one vertex takes.
    inside, after : dict from (device, device) to int
        Ticks to cross from one vertex of the run to the next, and from its last one to the next
        run; without the pairs of devices that cannot cross.
    """

    length: int
    time: dict[int, int]
    need: int
    inside: dict[tuple[int, int], int]
    after: dict[tuple[int, int], int]


@dataclass(frozen=True)
class Path:
    """The job for the solver.

    Attributes
    ----------
    runs : list of Run
    capacity : dict from device to int
        Of the devices whose memory may bind.
    same, apart : list of (int, int)
        Runs of one vertex each that must, or must not, share a device.
    """

    runs: list[Run]
    capacity: dict[int, int]
    same: list[tuple[int, int]]
    apart: list[tuple[int, int]]


@dataclass(frozen=True)
class PathResult:
    """An incumbent or bound from the solver.

    Attributes
    ----------
    devices : list of int, optional
        A device for every vertex, in the order of the path.
    bound : int, optional
        A lower bound of the makespan in ticks.
    impossible : bool
        Whether it is proven that no placement keeps the limits of memory.
    """

    devices: list[int] | None = None
    bound: int | None = None
    impossible: bool = False


def path_of_runs(series: Series) -> Path | None:
    """Return the runs of an instance; ``None`` if it is no path, or its vertices hardly repeat."""
    order = series.instance.graph.topological_order.tolist()
    sent = _sent(series, order)
    if sent is None:
        return None
    firsts = [0]
    for i in range(1, len(order)):
        if not _continues(series, order, sent, firsts[-1], i):
            firsts.append(i)
    k = series.devices
    if len(order) < _LEAST_LENGTH * len(firsts) or 3 * len(firsts) * k * k > _MOST_LITERALS:
        return None
    links, run_of = series.links, {order[i]: r for r, i in enumerate(firsts)}
    return Path(
        [_run(series, order, sent, *ends) for ends in pairwise([*firsts, len(order)])],
        {d: room for d, room in enumerate(series.capacity.tolist()) if room >= 0},
        [(run_of[v], run_of[w]) for v in order for w in links.mates[v] if v < w],
        [(run_of[v], run_of[w]) for v in order for w in links.apart[v] if v < w],
    )


def repeats(instance: Instance) -> bool:
    """Return whether the graph is a path of few kinds of vertices, which long runs may divide."""
    graph, n = instance.graph, instance.vertices
    if len(graph.edge_source) != n - 1:
        return False
    if (
        max(np.bincount(ends, minlength=n).max() for ends in (graph.edge_source, graph.edge_target))
        > 1
    ):
        return False
    given = instance.durations
    times = given.times if isinstance(given, Durations) else graph.ops
    rows = times.numerators.reshape(n, -1).tolist()
    return len({tuple(row) for row in rows}) * _LEAST_LENGTH <= n


def solve(path: Path, limits: Limits) -> Iterator[PathResult]:
    """Yield solutions and bounds as they are found; nothing more if the solver breaks down."""
    try:
        with borrowed(WORKER) as process:
            for message in process.solve(path, limits, prompt_grace(limits)):
                if isinstance(message, Incumbent):
                    yield PathResult(devices=message.placement.tolist())
                elif isinstance(message, LowerBound):
                    yield PathResult(bound=message.value)
                elif isinstance(message, Done):
                    if message.status == "INFEASIBLE":
                        yield PathResult(impossible=True)
                    elif message.value is not None:
                        yield PathResult(bound=message.value)
    except (SolverLateError, SolverTooLargeError):
        return
    except SolverDiedError as error:
        record_failure("the model of runs", error)


def _sent(series: Series, order: list[int]) -> list[int] | None:
    """Return, for every vertex but the last, the row of delays to the next; ``None`` if no path."""
    after = series.links.after
    found: list[int] = []
    for v, w in pairwise(order):
        if [target for target, _ in after[v]] != [w]:
            return None
        found.append(after[v][0][1])
    return found


def _continues(series: Series, order: list[int], sent: list[int], first: int, i: int) -> bool:
    """Return whether the vertex at ``i`` continues the run that begins at ``first``."""
    v, w = order[first], order[i]
    links = series.links
    if any(others[x] for others in (links.mates, links.apart) for x in (v, w)):
        return False
    if series.charge[v] != series.charge[w]:
        return False
    if (series.duration[v] != series.duration[w]).any():
        return False
    if i > first + 1:
        return sent[i - 1] == sent[first]
    return _direct(links.delays[sent[first]], np.flatnonzero(series.duration[v] >= 0))


def _direct(delays: NDArray[np.int64], allowed: NDArray[np.int64]) -> bool:
    """Return whether no way between two devices is shorter by way of a third."""
    among = delays[np.ix_(allowed, allowed)]
    return all(
        (among <= among[:, [d]] + among[[d], :])[
            np.ix_(np.arange(len(allowed)) != d, np.arange(len(allowed)) != d)
        ].all()
        for d in range(len(allowed))
    )


def _run(series: Series, order: list[int], sent: list[int], first: int, end: int) -> Run:
    v = order[first]
    allowed = np.flatnonzero(series.duration[v] >= 0).tolist()
    return Run(
        end - first,
        {d: int(series.duration[v, d]) for d in allowed},
        int(series.charge[v]),
        _crossings(series, sent[first], allowed) if end > first + 1 else {},
        _crossings(series, sent[end - 1], range(series.devices)) if end < len(order) else {},
    )


def _crossings(series: Series, row: int, devices: list[int] | range) -> dict[tuple[int, int], int]:
    delays = series.links.delays[row]
    return {(d, e): int(delays[d, e]) for d, e in permutations(devices, 2) if delays[d, e] < NEVER}

"""Columns of a part by a search over choices of devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.exact.series.choices import (
    CHOSEN,
    END,
    LOW,
    TIME,
    VALUE,
    Effort,
    Setting,
    Trail,
    choices,
    means,
)
from optpart.exact.series.columns import Sequence
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.problem import Series
from optpart.exact.series.sequencing import Body, Sequencing
from optpart.exact.series.weights import Steps, Tables

#: Nodes of the search for the best order of a choice, unless more are asked for.
ORDERS = 300

#: Beyond every limit that the search is given; times its weights, it fits 64 bits.
_HIGHEST = 2**50


@dataclass
class Pace:
    """How fast searches are on this machine: nodes and seconds so far, which begin with a guess."""

    visited: int = 40_000
    seconds: float = 0.1

    def nodes(self, seconds: float) -> int:
        """Return how many nodes a search can visit in some seconds."""
        return int(self.visited / self.seconds * max(0.0, seconds))


@dataclass(frozen=True)
class Chosen:
    """Columns of a part from one device.

    Attributes
    ----------
    end : ndarray
        Device of the cut vertex after the part; 0 if there is none.
    low, time : ndarray
        Lower bound of the ticks between the ends of both cut vertices, and those of a schedule.
    taken : ndarray, columns × k
        Memory; of a merged column, less than that of the schedule.
    value : ndarray
        Lower bound of time, cost, and what follows, by the first dual.
    dropped : int
        The least value of a column that may be missing; ``NEVER`` if none is.
    vertices : ndarray, length m
        Those of the part but its cut vertex, in topological order.
    device, start, stop : ndarray, columns × m
        Of each vertex in that schedule.
    cut : int
        The cut vertex after the part, or −1.
    """

    end: NDArray[np.int64]
    low: NDArray[np.int64]
    time: NDArray[np.int64]
    taken: NDArray[np.int64]
    value: NDArray[np.int64]
    dropped: int
    vertices: NDArray[np.int64]
    device: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    cut: int

    def sequence(self, column: int) -> Sequence:
        """Return the vertices in the order of their starts, with devices."""
        rank = np.lexsort((np.arange(len(self.vertices)), self.stop[column], self.start[column]))
        found = list(
            zip(self.vertices[rank].tolist(), self.device[column, rank].tolist(), strict=True)
        )
        return (*found, (self.cut, int(self.end[column]))) if self.cut >= 0 else tuple(found)


def choose(
    series: Series,
    i: int,
    device: int,
    duals: tuple[NDArray[np.int64], NDArray[np.int64]],
    limit: NDArray[np.int64],
    room: NDArray[np.int64],
    *,
    best_only: bool,
    slack: int = 0,
    most: int,
    nodes: int,
    pace: Pace,
    orders: int = ORDERS,
    bits: int = -1,
) -> Chosen:
    """Search for the columns of a part from a device; see :func:`~.choices.choices`.

    Parameters
    ----------
    duals : pair of ndarray
        Of every dual, the cost of every vertex (n × k), and what follows the part on each device.
    limit : ndarray
        For each dual.
    room : ndarray, length k
        Memory that the part may take; negative where there is no limit.
    pace : Pace
        Updated.
    bits : int
        If not negative, columns with the same end whose memory is in the same cell of a grid are
        merged into one, which takes the least time and memory of any of them.
    """
    begin = clock.now()
    part, split = series.parts[i], series.stretches[i].chains
    assert split is not None
    cost, after = duals
    run = np.where(series.duration < 0, NEVER, series.duration)
    body, k = split.vertices, series.devices
    cut = part.vertices[-1] if part.closed else -1
    if part.closed:
        direct = series.arrivals(i, device, [cut])[0]
        join_run, join_need, join_cost = run[cut], int(series.charge[cut]), cost[:, cut]
    else:
        # Where the last part ends does not matter.
        direct = join_run = np.zeros(1, dtype=np.int64)
        join_need = 0
        join_cost = after = np.zeros((len(cost), 1), dtype=np.int64)
    steps = _steps(series, i, device, run[body], len(join_run))
    chains, m = int(steps.chain[-1]) + 1, len(body)
    count = means(chains, k, len(cost))
    sequencing = Sequencing.of(m, k)
    found, size, dropped, visited = choices(
        Body(
            run[body],
            series.arrivals(i, device, body.tolist()),
            split.link,
            split.leave,
            split.order,
            split.pred_first,
            split.pred,
            split.pred_row,
            series.links.delays,
            series.charge[body],
        ),
        steps,
        Setting(
            direct=direct,
            run=join_run,
            need=join_need,
            idle=_idle(steps),
            room=np.where(room < 0, NEVER, room),
            cost=np.ascontiguousarray(cost[:, body]),
            end_cost=np.ascontiguousarray(join_cost),
            after=np.where(after < _HIGHEST, after, NEVER),
            limit=np.minimum(limit, _HIGHEST),
        ),
        Effort(best_only, slack, most, nodes, orders, bits),
        Tables.of(count, chains, m, k),
        Trail.of(m, k, count),
        sequencing,
    )
    pace.visited += int(visited)
    pace.seconds += clock.now() - begin
    found = found[:size]
    end, low, time, value = (found[:, column].copy() for column in (END, LOW, TIME, VALUE))
    chosen, start, taken = np.split(found[:, CHOSEN:], [m, 2 * m], axis=1)
    start, chosen = start[:, split.order], chosen[:, split.order]
    vertices = body[split.order]
    stop = start + run[vertices[None, :], chosen]
    taken = taken.copy()
    return Chosen(end, low, time, taken, value, int(dropped), vertices, chosen, start, stop, cut)


def _steps(series: Series, i: int, device: int, run: NDArray[np.int64], ends: int) -> Steps:
    split = series.stretches[i].chains
    assert split is not None
    m, k = run.shape
    delays = series.links.delays
    first = split.link < 0
    last = np.roll(first, -1)
    arrive = series.arrivals(i, device, split.vertices.tolist())
    way = np.repeat(arrive[:, None, :], k, axis=1)
    way[~first] = delays[split.link[~first]]
    way = np.where(run[:, None, :] >= NEVER, NEVER, way)
    out = np.zeros((ends, m, k), dtype=np.int64)
    leaving = last & (split.leave >= 0)
    if leaving.any():
        out[:, leaving] = delays[split.leave[leaving]].transpose(2, 0, 1)
    return Steps(np.cumsum(first) - 1, last, run, way, out)


def _idle(steps: Steps) -> NDArray[np.int64]:
    """Return how long each device waits if it runs anything, for each end."""
    m, k = steps.run.shape
    head = np.full((m, k), NEVER, dtype=np.int64)
    tail = np.full((len(steps.out), m, k), NEVER, dtype=np.int64)
    for x in range(m):
        if x == 0 or steps.last[x - 1]:
            head[x] = steps.way[x, 0]
        else:
            before = np.minimum(NEVER, head[x - 1] + steps.run[x - 1])
            head[x] = np.minimum(NEVER, (before[:, None] + steps.way[x]).min(axis=0))
    for x in range(m - 1, -1, -1):
        if steps.last[x]:
            tail[:, x] = steps.out[:, x]
        else:
            after = np.minimum(NEVER, steps.run[x + 1] + tail[:, x + 1])
            tail[:, x] = np.minimum(NEVER, (steps.way[x + 1][None] + after[:, None, :]).min(axis=2))
    allowed = steps.run < NEVER
    first = np.where(allowed, head, NEVER).min(axis=0)
    final = np.where(allowed[None], tail, NEVER).min(axis=1)
    idle = first[None, :] + final
    return np.where(idle < NEVER, idle, 0)

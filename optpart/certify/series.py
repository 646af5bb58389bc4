"""Records of tier ``series``: prices of memory, and the exact potentials at these prices.

Prices may come from anywhere. Potentials are computed with the checker's own functions, so they are
the largest that it accepts.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

from scipy.optimize import linprog
from scipy.sparse import coo_array

from optpart.certify.arithmetic import Record
from optpart.certify.check import (
    MAX_TICKS,
    NEVER,
    SAME,
    Guide,
    Label,
    Part,
    Prices,
    RejectedError,
    Series,
    Windows,
    check_in_series,
)

#: Proposed prices are rounded to multiples of ``1 / _PARTS`` of a suitable unit.
_PARTS = 2**40

#: Highest price: makespans for as much memory as the largest device has.
_DEAREST = 8.0


class NotInSeriesError(Exception):
    """There is no record of this tier; the message is the reason."""


class _Timed(Series):
    """The parts of a graph, until a deadline."""

    def __init__(self, windows: Windows, deadline: float) -> None:
        super().__init__(windows)
        self.deadline = deadline

    def count(self, label: Label) -> None:
        """Count the entries of one more label, in time."""
        super().count(label)
        if time.perf_counter() > self.deadline:
            raise NotInSeriesError("no proof in series in the time limit")


def proposed_prices(series: Series) -> list[Fraction]:
    """Propose prices of memory on each device, in ticks per unit of the instance.

    They are the shadow prices of memory in a linear program: each vertex is divided among devices,
    each edge among pairs of devices, and the longest path of average times is as short as possible
    within the capacities. If all parts are single vertices, no prices prove more.
    """
    k, limited = series.k, [d for d, limit in enumerate(series.capacity) if limit is not None]
    if not limited or not any(series.need):
        return [Fraction(0)] * k
    time_unit = max(1, series.horizon)
    memory_unit = max(1, max(series.capacity[d] or 0 for d in limited))
    program = _Program()
    start = [program.variable(float(v == series.sink)) for v in range(series.sink + 1)]
    place = [{d: program.variable() for d in devices} for devices in series.devices]
    for ways in place:
        program.equal([(x, 1.0) for x in ways.values()], 1.0)
    for u, following in enumerate(series.after):
        run = [(x, series.run[u][d] / time_unit) for d, x in place[u].items()]
        for v, rule in series.rule[u].items():
            if rule == SAME and u < v:
                for d, x in place[u].items():
                    program.equal([(x, 1.0), (place[v][d], -1.0)], 0.0)
        for v, delays in following.items():
            pairs = {
                (d, e): program.variable()
                for d in place[u]
                for e in place[v]
                if delays[d][e] < NEVER
            }
            for d, x in place[u].items():
                program.equal([(x, -1.0), *((y, 1.0) for (f, _), y in pairs.items() if f == d)], 0)
            for e, x in place[v].items():
                program.equal([(x, -1.0), *((y, 1.0) for (_, f), y in pairs.items() if f == e)], 0)
            moves = [(y, delays[d][e] / time_unit) for (d, e), y in pairs.items()]
            program.at_most([(start[u], 1.0), (start[v], -1.0), *run, *moves], 0.0)
    before: int | None = None
    for vertices in series.parts:
        *inner, cut = vertices
        for d in range(k) if inner else ():
            # What runs on a device between two cuts takes turns there.
            run = [(place[v][d], series.run[v][d] / time_unit) for v in inner if d in place[v]]
            if before is not None:
                run.append((start[before], 1.0))
                run += [(x, series.run[before][e] / time_unit) for e, x in place[before].items()]
            program.at_most([*run, (start[cut], -1.0)], 0.0)
        before = cut
    first = program.rows
    for d in limited:
        needs = [
            (ways[d], need / memory_unit)
            for ways, need in zip(place, series.need, strict=True)
            if d in ways
        ]
        excess = program.variable(_DEAREST)
        program.at_most([*needs, (excess, -1.0)], (series.capacity[d] or 0) / memory_unit)
    shadow = program.prices()
    values = [Fraction(0)] * k
    for d, price in zip(limited, shadow[first:], strict=False):
        values[d] = round(price * _PARTS) * Fraction(time_unit, _PARTS * memory_unit) / series.unit
    return values


class _Program:
    """A linear program in non-negative variables, built row by row."""

    def __init__(self) -> None:
        self.variables = self.rows = self._equations = 0
        self._cost: list[float] = []
        self._above: list[tuple[int, int, float]] = []
        self._even: list[tuple[int, int, float]] = []
        self._most: list[float] = []
        self._value: list[float] = []

    def variable(self, cost: float = 0.0) -> int:
        self.variables += 1
        self._cost.append(cost)
        return self.variables - 1

    def at_most(self, terms: list[tuple[int, float]], limit: float) -> None:
        self._above += [(self.rows, x, factor) for x, factor in terms]
        self._most.append(limit)
        self.rows += 1

    def equal(self, terms: list[tuple[int, float]], value: float) -> None:
        self._even += [(self._equations, x, factor) for x, factor in terms]
        self._value.append(value)
        self._equations += 1

    def prices(self) -> list[float]:
        """Return the shadow price of each inequality, or nothing if there is no solution."""
        solved = linprog(
            self._cost,
            A_ub=self._matrix(self._above, self.rows),
            b_ub=self._most,
            A_eq=self._matrix(self._even, self._equations),
            b_eq=self._value,
            method="highs",
        )
        if solved.status != 0:
            return []
        return [max(0.0, -float(x)) for x in solved.ineqlin.marginals]

    def _matrix(self, entries: list[tuple[int, int, float]], rows: int) -> Any:
        at, column, factor = zip(*entries, strict=True)
        return coo_array((factor, (at, column)), shape=(rows, self.variables)).tocsr()


def series_record(windows: Windows, seconds: float) -> Record:
    """Return a record that refutes the horizon.

    Raises
    ------
    NotInSeriesError
        If there is none, or none was found within the limits.
    """
    deadline = time.perf_counter() + seconds
    try:
        series = _Timed(windows, deadline)
        if len(series.parts) == 1:
            raise NotInSeriesError("no vertex splits the graph into parts")
        sets: list[Record] = []
        free = [Fraction(0)] * series.k
        for values in (free, proposed_prices(series)):
            if sets and values == free:
                break
            sets.append(priced(series, values))
            if proves(series, sets[-1]):
                return {"sets": sets[-1:]}
        record = {"sets": sets}
        check_in_series(series, record)
        return record
    except RejectedError as error:
        raise NotInSeriesError(str(error)) from None


def priced(series: Series, values: list[Fraction]) -> Record:
    """Return a set for the record: prices of memory, and the potentials at these prices."""
    k = series.k
    rows: list[list[int | None]] = [[None] * k for _ in series.parts[1:]]
    for row, vertices in zip(rows, series.parts, strict=False):
        for d in series.devices[vertices[-1]]:
            row[d] = 0
    document: Record = {"prices": [str(x) for x in values], "start": 0, "potentials": rows}
    prices = Prices(series, document)
    for i in reversed(range(len(series.parts))):
        part = Part(series, i)
        guide = Guide(part, prices)
        if i == 0:
            document["start"] = _least(part, guide, 0)
        else:
            for d in series.devices[series.parts[i - 1][-1]]:
                rows[i - 1][d] = prices.potential[i - 1][d] = _least(part, guide, d)
    return document


def proves(series: Series, document: Record) -> bool:
    """Return whether a set alone refutes the horizon."""
    prices = Prices(series, document)
    return prices.start - prices.room([0] * series.k) > series.horizon


def _least(part: Part, guide: Guide, d: int) -> int:
    """Return the least time and payment after a cut on a device.

    It is sought below limits that grow, so that few labels are needed.
    """
    start = part.start(d)
    limit = guide.bound(part.state(), start, d)
    step = max(1, limit // 64)
    while limit < MAX_TICKS:
        found = part.walk([(0, start)], [guide], limit, guide.prices)
        if found:
            return min(found)[0]
        limit, step = limit + step, 2 * step
    # Most likely, nothing can follow on that device.
    found = part.walk([(0, start)], [guide], MAX_TICKS - 1, guide.prices)
    return min(found)[0] if found else MAX_TICKS

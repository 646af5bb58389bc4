"""Records of tier ``series``: prices of memory, and the exact potentials at these prices.

Prices may come from anywhere. Potentials are computed with the checker's own functions, so they are
the largest that it accepts.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice

from optpart.base import clock
from optpart.certificates.arithmetic import Record
from optpart.certificates.check import (
    MAX_TICKS,
    Allowance,
    Guide,
    Part,
    Prices,
    RejectedError,
    Series,
    Windows,
    refute_in_series,
)
from optpart.exact.series.dual import Dual, Pricing
from optpart.exact.series.problem import Series as Decomposition
from optpart.problem.instance import Instance

#: Sets of prices in a record: more of them leave fewer labels, which then take longer.
_SETS = 3

#: Relaxations to solve for prices.
_RELAXATIONS = 30


class NotInSeriesError(Exception):
    """There is no record of this tier; the message is the reason."""


class _Timed(Allowance):
    """As many steps as can be taken until a deadline."""

    def __init__(self, deadline: float) -> None:
        super().__init__(2**60)
        self.deadline = deadline

    def spend(self, steps: int, size: int = 0) -> None:
        """Pay for some steps, in time."""
        super().spend(steps, size)
        if clock.now() > self.deadline:
            raise NotInSeriesError("no proof in series in the time limit")


def proposed_prices(
    instance: Instance, series: Series, ticks: Fraction, seconds: float
) -> list[list[Fraction]]:
    """Propose prices of memory on each device, in ticks per unit of the instance.

    The first are 0; the others come from the Lagrangian relaxation, the best of them first.

    Parameters
    ----------
    ticks : Fraction
        Ticks per unit of time.
    """
    free = [Fraction(0)] * series.k
    if not any(series.need) or all(limit is None for limit in series.capacity):
        return [free]
    deadline = clock.now() + seconds
    duals: list[Dual] = []
    try:
        with clock.limited(seconds):
            solver = Decomposition(instance, (series.horizon + 1) / ticks)
            pricing = Pricing(solver, solver.grid.floor((series.horizon + 1) / ticks))
            duals.extend(islice(pricing.run(deadline), _RELAXATIONS))
    except clock.OutOfTimeError:
        if not duals:
            return [free]
    best = sorted(duals, key=lambda dual: -dual.bound)
    most = max(range(len(solver.need)), key=lambda unit: int(solver.need[unit]))
    members = instance.units[most].tolist()
    # The solver has a unit of memory and a tick of its own.
    unit = sum(series.need[v] for v in members) * series.unit / int(solver.need[most])
    found = [free]
    for dual in best:
        scale = ticks / solver.grid.scale / unit / 2**dual.shift
        values = [
            int(price) * scale if limit is not None else Fraction(0)
            for price, limit in zip(dual.price.tolist(), series.capacity, strict=True)
        ]
        if values not in found:
            found.append(values)
    return found[:_SETS]


def series_record(instance: Instance, windows: Windows, ticks: Fraction, seconds: float) -> Record:
    """Return a record that refutes the horizon, on a grid with so many ticks per unit of time.

    Raises
    ------
    NotInSeriesError
        If there is none, or none was found within the limits.
    """
    deadline = clock.now() + seconds
    try:
        windows.allowance = _Timed(deadline)
        series = Series(windows)
        if len(series.parts) == 1:
            raise NotInSeriesError("no vertex splits the graph into parts")
        sets: list[Record] = []
        for values in proposed_prices(instance, series, ticks, seconds / 4):
            sets.append(priced(series, values))
            if proves(series, sets[-1]):
                return {"sets": sets[-1:]}
        record = {"sets": sets}
        refute_in_series(windows, record)
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
        held, part = series.allowance.bytes, Part(series, i)
        guide = Guide(part, prices)
        if i == 0:
            document["start"] = _least(part, guide, 0)
        else:
            for d in series.devices[series.parts[i - 1][-1]]:
                rows[i - 1][d] = prices.potential[i - 1][d] = _least(part, guide, d)
        series.allowance.bytes = held
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

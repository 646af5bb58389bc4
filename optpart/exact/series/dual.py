"""Lagrangian relaxation of memory: prices, and what the rest of the graph costs at these prices.

Let every unit of memory on device ``d`` cost ``λ_d ≥ 0`` ticks. In a schedule within the capacities
``M_d``, all memory together costs at most ``Σ λ_d·M_d``. So the least of time plus cost, over all
schedules whether they fit or not, less ``Σ λ_d·M_d``, bounds the makespan. Without the limits, the
parts of a graph meet in the device and the end of a cut vertex alone, apart from edges that jump
over it and groups that span it, both of which the relaxation ignores. So the least is a shortest
path over the devices of the cut vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock, threads
from optpart.exact.series.choosing import Pace, choose
from optpart.exact.series.columns import Column, Pool, Sequence, prices
from optpart.exact.series.kernel import (
    COST,
    ENTRY,
    MEMORY,
    Limits,
    Prices,
    Scratch,
    Tasks,
    advance,
    table,
)
from optpart.exact.series.lattice import NEVER, Lattice
from optpart.exact.series.problem import Series

#: Labels kept per downset: few to collect columns, many to prove that none is missing.
_FEW, _MANY = 20, (20, 300, 3_000, 30_000)

#: Of a part with more downsets than this, each gets accordingly fewer labels.
_NODES = 600

#: Nodes of the search over choices of devices to collect columns, and what it may miss by, as a
#: share of a schedule: to collect columns, and to raise the bound.
_SEARCHED, _MISSED = 10_000, (1e-3, 2e-5)

#: A limit of the search this close to a known value, as a share of a schedule, is that value.
_NEAR = 2e-3

#: The time that a relaxation has left is shared out to its searches, and each may take so many
#: shares: few need more than a small one.
_SHARES = 4

#: Share of the time for relaxations that one of them may take.
_ONE = 0.3

#: Labels made per second, roughly, and those that an extension may make however late it is.
_PACE, _LEAST_MADE = 150_000, 5_000

#: What costs at most as much as this many capacities; the costs of one fit 58 bits.
_MOST_CAPACITIES = 16

#: Relative improvement of the bound below which prices are settled.
_SETTLED = 2e-4

#: Prices that differ by less than this, as a share, give much the same bounds.
_ALIKE = 1e-2


@dataclass(frozen=True, eq=False)
class Dual:
    """Prices of memory, and lower bounds of everything that follows each cut.

    Attributes
    ----------
    series : Series
    price : ndarray of int64, length k
        Ticks per unit of memory, times ``2**shift``.
    shift : int
    after : ndarray of int64, (parts + 1) × k
        Row ``i``: the least time from the end of the cut vertex before part ``i`` to the end of the
        schedule, plus the cost of all memory taken from there on, for each device of that vertex.
    remain : ndarray of int64, n × k
        The same from the start of each vertex, less the least cost of every vertex from there on
        in its part; along one path only.
    bound : int
        Lower bound of the makespan in ticks; 0 if ``begin`` is not 0.
    begin : int
        The first part that the relaxation has; rows of ``after`` before it do not count.
    """

    series: Series
    price: NDArray[np.int64]
    shift: int
    cost: NDArray[np.int64]
    least: NDArray[np.int64]
    after: NDArray[np.int64]
    remain: NDArray[np.int64]
    bound: int
    begin: int = 0

    def exchanged(self, name: NDArray[np.int64]) -> Dual:
        """Return the same relaxation with new names of interchangeable devices."""
        old = np.argsort(name)
        return replace(
            self,
            price=self.price[old],
            cost=self.cost[:, old],
            after=self.after[:, old],
            remain=self.remain[:, old],
        )

    def rest_cost(self, lattice: Lattice) -> NDArray[np.int64]:
        """Return the least cost of what is still to be placed in a part, for each downset."""
        rest: NDArray[np.int64] = (lattice.rest @ self.least[lattice.vertices]).astype(np.int64)
        return rest


@dataclass(frozen=True)
class _Search:
    """What a relaxation asks of a part.

    Attributes
    ----------
    dual : Dual
        Filled for all parts that follow.
    device : int
        Of the cut vertex before the part.
    known : int
        The least time and cost from there on with a known column.
    found : list of Column
        New columns.
    """

    dual: Dual
    part: int
    device: int
    known: int
    labels: int
    found: list[Column] = field(default_factory=list)


class Pricing:
    """Relaxations of one instance at changing prices, and the columns that they have used.

    It looks at the limit of :mod:`optpart.base.clock`, and raises ``OutOfTimeError`` beyond it.

    Parameters
    ----------
    upper : int
        Ticks of a schedule, or of a horizon.
    workers : int
        Devices for which a part is searched at the same time.
    """

    def __init__(self, series: Series, upper: int, workers: int = 1) -> None:
        self.series = series
        self.workers = workers
        self.upper = max(1, upper)
        self.pool = Pool(len(series), series.devices)
        # Prices times capacities stay below 2^58, as no price is worth more than 8 schedules, and
        # below 2^61 over all devices.
        most = 8 * self.upper * -(-series.devices // 8)
        self.shift = max(0, min(40, 58 - most.bit_length()))
        self._pace = Pace()
        self._add_single_vertices()

    @cached_property
    def _wide(self) -> bool:
        """True if any part has more than one vertex."""
        return any(len(part.vertices) > 1 for part in self.series.parts)

    def run(self, deadline: float) -> Iterator[Dual]:
        """Yield relaxations; the bounds rise on the whole, until prices settle."""
        series = self.series
        value = np.zeros(series.devices)
        labels = _FEW if self._wide and series.limited else _MANY[-1]
        dual = self.relax(value, labels, deadline)
        yield dual
        best = dual.bound
        while series.limited and best < self.upper and (now := clock.now()) < deadline:
            known = len(self.pool)
            found = self._prices(series.capacity)
            if found is None:
                return
            value, hoped = found
            dual = self.relax(value, labels, now + _ONE * (deadline - now))
            yield dual
            gain, best = dual.bound - best, max(best, dual.bound)
            settled = len(self.pool) == known or hoped - best <= _SETTLED * abs(best)
            if settled or gain <= _SETTLED * abs(best):
                if labels == _MANY[-1] and settled:
                    break
                labels = _MANY[-1]

    def after(
        self, i: int, device: int, room: NDArray[np.int64], known: list[Dual], deadline: float
    ) -> Dual | None:
        """Return the relaxation of part ``i`` and all that follow, at prices that suit their start.

        Memory is scarce elsewhere where the first parts have taken more or less of it than usual.

        Parameters
        ----------
        device : int
            That of the cut vertex before the part.
        room : ndarray, length k
            Memory that is left there; negative where there is no limit.
        known : list of Dual
            Relaxations whose prices are not needed again.

        Returns
        -------
        Dual or None
            ``None`` if there are no prices, or none but known ones.
        """
        found = self._prices(room, i, device)
        if found is None:
            return None
        price = self._price(found[0])
        for dual in known:
            if dual.begin <= i and np.allclose(price, dual.price, rtol=_ALIKE, atol=1.0):
                return None
        return self.relax(found[0], _MANY[-1], deadline, begin=i)

    def _price(self, value: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return prices, times ``2**shift``."""
        capacity = self.series.capacity
        most = 8.0 * self.upper / np.maximum(1, capacity)
        price = np.floor(np.where(capacity >= 0, np.minimum(value, most), 0) * 2.0**self.shift)
        return price.astype(np.int64)

    def relax(
        self, value: NDArray[np.float64], labels: int, deadline: float, begin: int = 0
    ) -> Dual:
        """Return the relaxation at given prices.

        Parameters
        ----------
        value : ndarray, length k
            Ticks per unit of memory.
        labels : int
            Labels to keep per downset; with fewer than there are, the bound is weaker but valid.
        begin : int
            The first part.
        """
        series, k = self.series, self.series.devices
        limited = series.capacity >= 0
        price = self._price(value)
        # Beyond many capacities, memory costs nothing more, so that costs fit 64 bits.
        most_paid = np.where(limited, _MOST_CAPACITIES * np.maximum(1, series.capacity), 0)
        cost = np.minimum(series.charge[:, None], most_paid[None, :]) * price >> self.shift
        least = np.where(series.duration >= 0, cost, NEVER).min(axis=1)
        alike = bool((price == price[series.kind]).all())
        after = np.zeros((len(series) + 1, k), dtype=np.int64)
        remain = np.full((series.instance.vertices, k), NEVER, dtype=np.int64)
        dual = Dual(series, price, self.shift, cost, least, after, remain, 0, begin)
        pool = self.pool.columns()
        for i in range(len(series) - 1, begin - 1, -1):
            clock.check_time()
            self._fill_remain(dual, i)
            here = slice(pool.first[i], pool.first[i + 1])
            total = pool.time[here] + pool.memory[here] @ (price * 2.0**-self.shift)
            total = np.floor(total + after[i + 1, pool.end[here]])
            allowed = series.allowed_before(i)
            searches = [
                _Search(dual, i, d, int(total[pool.start[here] == d].min(initial=NEVER)), labels)
                for d in allowed
                if not alike or series.kind[d] == d
            ]
            # Each has what those before it leave of the time.
            late = partial(self._latest, i, begin, alike, deadline)
            found = threads.each(
                partial(self._least_after, late),
                searches,
                self.workers if len(series.parts[i].vertices) > 1 else 1,
            )
            for search, cheapest in zip(searches, found, strict=True):
                after[i, search.device] = cheapest
                for column in search.found:
                    self.pool.add(column)
            for d in allowed:
                if alike:
                    after[i, d] = after[i, series.kind[d]]
            if i:
                after[i, series.duration[series.cut(i)] < 0] = NEVER
        constant = sum(
            -((-int(x) * int(m)) >> self.shift)
            for x, m in zip(price, series.capacity, strict=True)
            if m >= 0
        )
        return replace(dual, bound=0 if begin else int(after[0, 0]) - constant)

    def _latest(self, i: int, begin: int, alike: bool, deadline: float) -> float:
        """Return until when the next search of a relaxation may take, which has come to part i."""
        now, series = clock.now(), self.series
        name = series.kind if alike else np.arange(series.devices)
        left = sum(
            len(np.unique(name[series.allowed_before(j)]))
            for j in range(begin, i + 1)
            if len(series.parts[j].vertices) > 1
        )
        share = _SHARES * self.workers / max(1, left)
        return now + min(1.0, share) * max(0.0, deadline - now)

    def _prices(
        self, capacity: NDArray[np.int64], part: int = 0, device: int = 0
    ) -> tuple[NDArray[np.float64], float] | None:
        """Return prices that are best for the columns in the pool.

        If identical devices have as much room, so are their prices: the next part then begins on
        the first of them, and their memory is one knapsack.
        """
        kind = self.series.kind
        columns = self.pool.columns().since(part)
        if (capacity != capacity[kind]).any() and len(self.series.exchanges) > 1:
            limit = np.where(self.series.capacity < 0, -1.0, capacity)
            columns = columns.exchanged(self.series.exchanges)
            return prices(columns, limit, float(self.upper), device)
        same = (kind[:, None] == np.arange(len(kind))[None, :]).astype(np.int64)
        pooled = np.where(same.any(axis=0), same.T @ capacity, -1.0)
        found = prices(
            columns._replace(end=kind[columns.end], memory=columns.memory @ same),
            np.where(self.series.capacity[kind] < 0, -1.0, pooled),
            float(self.upper),
            int(kind[device]),
        )
        return None if found is None else (found[0][kind], found[1])

    # --- one part --------------------------------------------------------------------------

    def _column(
        self, i: int, device: int, end: int, time: int, memory: NDArray[np.int64], way: Sequence
    ) -> Column:
        """Return a column, which begins on the first of identical devices, by exchanged names."""
        name = list(range(self.series.devices))
        first = int(self.series.kind[device])
        name[device], name[first] = first, device
        taken = memory[name]
        end = name[end] if self.series.parts[i].closed else end
        return Column(i, first, end, time, taken, tuple((v, name[d]) for v, d in way))

    def _add_single_vertices(self) -> None:
        """Add every column of the parts of one vertex."""
        series = self.series
        for i, part in enumerate(series.parts):
            clock.check_time()
            if len(part.vertices) > 1:
                continue
            v = part.vertices[0]
            for d in series.allowed_before(i):
                for e, arrival in enumerate(series.arrivals(i, d, [v])[0].tolist()):
                    if arrival < NEVER:
                        used = np.zeros(series.devices, dtype=np.int64)
                        used[e] = series.charge[v]
                        run = int(series.duration[v, e])
                        end = e if part.closed else 0
                        self.pool.add(Column(i, d, end, arrival + run, used, ((v, e),)))

    def _fill_remain(self, dual: Dual, i: int) -> None:
        """Fill ``remain`` for a part, once ``after`` is known for the next."""
        series, part = self.series, self.series.parts[i]
        for v in reversed(part.vertices):
            run = series.duration[v]
            here = run + dual.cost[v] - dual.least[v]
            if part.closed and v == part.vertices[-1]:
                here = here + dual.after[i + 1]
            else:
                tail = np.zeros(series.devices, dtype=np.int64)
                for w, row in series.links.after[v]:
                    if series.part_of[w] == i:
                        there = series.links.delays[row] + dual.remain[w][None, :]
                        tail = np.maximum(tail, there.min(axis=1))
                here = here + tail
            dual.remain[v] = np.where(run >= 0, np.minimum(here, NEVER), NEVER)

    def _along_paths(self, dual: Dual, i: int, device: int) -> int:
        """Return the least time and cost from a cut on, along one path through the next part."""
        series, part = self.series, self.series.parts[i]
        ready = (
            [w for w, _ in series.links.after[series.cut(i)] if series.part_of[w] == i]
            if i
            else [v for v in part.vertices if not series.links.before[v]]
        )
        times = series.arrivals(i, device, ready) + dual.remain[ready]
        longest = int(times.min(axis=1).max(initial=0))
        return min(NEVER, longest + int(dual.least[list(part.vertices)].sum()))

    def _least_after(self, latest: Callable[[], float], search: _Search) -> int:
        """Return the least time and cost from a cut on; ``latest`` says until when to search."""
        labels, deadline = search.labels, latest()
        bound = self._along_paths(search.dual, search.part, search.device)
        stretch = self.series.stretches[search.part]
        best = search.known
        if stretch.chains is not None:
            found = self._chosen(search, bound, best, deadline)
            bound, best = max(bound, found[0]), found[1]
        if len(stretch.part.vertices) == 1 or stretch.lattice is None:
            return bound
        took = 0.0
        for beam in _MANY:
            begin = clock.now()
            # A pass with more labels takes about ten times as long.
            if bound >= best or beam > labels or (beam > _FEW and begin + 10 * took > deadline):
                break
            narrow = max(2, beam * _NODES // max(_NODES, stretch.lattice.nodes))
            found = self._cheapest(search, best, narrow, deadline)
            bound = max(bound, min(found))
            best = min(best, found[0])
            took = clock.now() - begin
        return bound

    def _chosen(self, search: _Search, lower: int, upper: int, deadline: float) -> tuple[int, int]:
        """Search for the cheapest choice of devices below ``upper``.

        Limits rise from ``lower``, as a search takes the less time the lower its limit: one that is
        just above the least value ends in a small part of the time that is lost, from a high limit,
        on choices that are better than known ones but far from the best.

        Returns
        -------
        (int, int)
            Lower bound of its value, and the least value that is known.
        """
        dual, i, device = search.dual, search.part, search.device
        careful = search.labels > _FEW
        best = upper
        # Where no choice is known, none is likely to be so bad.
        high = min(upper, lower + self.upper)
        while lower < best:
            near = high - lower <= max(1, _NEAR * self.upper)
            limit = upper if lower >= high else high if near else (lower + high) // 2
            nodes = self._pace.nodes(deadline - clock.now()) if careful else 0
            found = choose(
                self.series,
                i,
                device,
                (dual.cost[None], dual.after[i + 1][None]),
                np.array([limit]),
                self.series.capacity,
                best_only=True,
                slack=int(_MISSED[careful] * self.upper) if limit == upper else 0,
                most=0,
                nodes=max(_SEARCHED, nodes),
                pace=self._pace,
            )
            for row in range(len(found.end)):
                end, time = int(found.end[row]), int(found.time[row])
                way = found.sequence(row)
                search.found.append(self._column(i, device, end, time, found.taken[row], way))
            value = int(found.value.min(initial=NEVER))
            lower = max(lower, min(limit, value, found.dropped))
            best = min(best, value)
            if min(value, found.dropped) < limit:
                break
        return lower, best

    def _cheapest(self, search: _Search, upper: int, beam: int, deadline: float) -> tuple[int, int]:
        """Return the cheapest column below ``upper``, and the least bound of what was dropped."""
        dual, i, device = search.dual, search.part, search.device
        series, stretch = self.series, self.series.stretches[i]
        assert stretch.lattice is not None
        final, cost, memory, last, history, dropped = extend(
            series,
            i,
            [dual],
            (
                series.first_label(i, device)[None, :],
                np.zeros(1, dtype=np.int64),
                np.zeros((1, series.devices), dtype=np.int64),
            ),
            upper,
            beam,
            deadline,
            pricing=True,
        )
        best = upper
        for row in range(len(final)):
            end = int(history[last[row], 2]) if stretch.part.closed else 0
            span = int(final[row, 0])
            way = traced(history, int(last[row]))[1]
            search.found.append(self._column(i, device, end, span, memory[row], way))
            following = int(dual.after[i + 1, end]) if stretch.part.closed else 0
            best = min(best, span + int(cost[row]) + following)
        return best, dropped


def traced(history: NDArray[np.int64], entry: int) -> tuple[int, Sequence]:
    """Return the label at the start of a history that leads to an entry, and the steps between."""
    backwards: list[tuple[int, int]] = []
    while entry >= 0:
        entry, v, d = history[entry].tolist()
        backwards.append((v, d))
    return -1 - entry, tuple(reversed(backwards))


class Extended(NamedTuple):
    """Labels of a whole part.

    Attributes
    ----------
    time : ndarray, labels × (1 + k + …)
        The end of all so far, and when each device and each slot can be used.
    cost : ndarray
    memory : ndarray, labels × k
    last : ndarray
        Their entries in the history.
    history : ndarray, entries × 3
        For every label made: the entry before (−1 − i for label i of the start), vertex, device.
    dropped : int
        The least bound of a label that was given up.
    """

    time: NDArray[np.int64]
    cost: NDArray[np.int64]
    memory: NDArray[np.int64]
    last: NDArray[np.int64]
    history: NDArray[np.int64]
    dropped: int


def extend(
    series: Series,
    i: int,
    duals: list[Dual],
    labels: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    upper: int,
    beam: int,
    deadline: float,
    *,
    pricing: bool = False,
    whole: bool = False,
) -> Extended:
    """Extend labels through a part; see :func:`~optpart.exact.series.kernel.advance`.

    Parameters
    ----------
    labels : tuple of ndarray
        Times, costs and memory.
    pricing : bool
        Whether memory has a price in the labels, rather than a limit.
    whole : bool
        Whether the labels hold all memory taken since the start of the schedule.
    """
    stretch, lattice, k = series.stretches[i], series.stretches[i].lattice, series.devices
    assert lattice is not None
    tasks = Tasks(
        duration=series.duration,
        delays=series.links.delays,
        capacity=series.capacity,
        place=series.places(i),
        rest_need=stretch.rest_need,
        cost=duals[0].cost if pricing else np.zeros(series.duration.shape, dtype=np.int64),
    )
    prices = Prices(
        price=np.stack([dual.price for dual in duals]),
        shift=duals[0].shift,
        remain=np.stack([dual.remain for dual in duals]),
        rest_cost=np.stack([dual.rest_cost(lattice) for dual in duals]),
        after=np.stack([dual.after[i + 1] for dual in duals]),
    )
    limits = Limits(
        upper=upper,
        beam=beam,
        most=max(_LEAST_MADE, int(_PACE * (deadline - clock.now()))),
        pareto=not pricing,
        whole=whole,
        open_end=not stretch.part.closed,
        by_end=not whole,
    )
    scratch = Scratch.of(len(lattice.vertices), k)
    begun = table(lattice, *labels)
    found, history, written, dropped = advance(lattice, tasks, prices, limits, scratch, begun)
    return Extended(
        time=np.ascontiguousarray(found[:, MEMORY + k :]),
        cost=found[:, COST].copy(),
        memory=np.ascontiguousarray(found[:, MEMORY : MEMORY + k]),
        last=found[:, ENTRY].copy(),
        history=history[:written].copy(),
        dropped=int(dropped),
    )

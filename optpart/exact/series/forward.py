"""The forward pass: labels with all memory taken, from the first part to the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock, threads
from optpart.exact.series.choosing import ORDERS, Pace, choose
from optpart.exact.series.columns import Column, Pool, Sequence
from optpart.exact.series.dual import Dual, Pricing, extend, traced
from optpart.exact.series.join import Cut, Ends, Extensions, joined
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.problem import Series

#: Columns of a part, for each label that may be kept, and nodes of the search for each of them.
_COLUMNS_PER_LABEL, _NODES_PER_COLUMN = 50, 200

#: Merged labels at the end for which a schedule is tried.
_TRIED = 50

#: Share of the time that is left for one search, and of that of a pass that merges labels.
_ONE_SEARCH, _ONE_MERGING_SEARCH = 1 / 6, 1 / 2

#: Share of the time that is left for the slowest part of a pass.
_SLOWEST = 0.3

#: Columns of each enumeration that join the pool.
_POOLED = 200

#: Relaxations in use at most; cuts, and labels at each of them, for which prices are sought at a
#: time; and how many of the best labels they are drawn from.
_MOST_DUALS, _CUTS, _DRAWN, _AMONG = 40, 4, 3, 2_000

#: Relaxations that limit the columns of a part: every further one makes the search slower.
_ENUMERATING = 9

#: Share of the time that is left for these relaxations.
_SHARPENING = 0.15


@dataclass(frozen=True)
class PassResult:
    """The result of a forward pass.

    Attributes
    ----------
    value : int or None
        Unless labels were merged, ticks of the best schedule below the limit of the pass.
    sequence : list of pairs
        That schedule, or any other: vertices in the order of their starts, with devices.
    bound : int
        Lower bound of the makespan that the pass proves; at most its limit.
    complete : bool
        Whether no label was given up.
    """

    value: int | None
    sequence: Sequence
    bound: int
    complete: bool


@dataclass(frozen=True)
class _Enumerated:
    """The columns of a part from one device, below limits, as arrays with an entry for each.

    ``limit`` has an entry for every dual, ``room`` for every device; ``dropped`` is the least bound
    of what was given up, on the scale of the first limit; ``loose`` says whether some ``span`` is
    only a lower bound; ``best`` are some of them, for the pool.
    """

    limit: NDArray[np.int64]
    room: NDArray[np.int64]
    beam: int
    dropped: int
    end: NDArray[np.int64]
    span: NDArray[np.int64]
    taken: NDArray[np.int64]
    sequence: Callable[[int], Sequence]
    loose: bool = False
    best: tuple[Column, ...] = ()

    def serves(self, limit: NDArray[np.int64], room: NDArray[np.int64], beam: int) -> bool:
        """Return whether another enumeration could not find more."""
        within = bool((self.limit >= limit).all() and (self.room >= room).all())
        if not within or self.dropped >= limit[0]:
            return within
        # Below lower limits, fewer columns compete for the same places.
        lower = limit < np.where(self.limit < NEVER, self.limit, limit)
        less = room < np.where(self.room < NEVER, self.room, room)
        return self.beam >= beam and not lower.any() and not less.any()


@dataclass(frozen=True)
class _Labels:
    """Labels before a part: those of a clean cut as devices and ends, others as rows of times.

    ``bound`` is a lower bound of the makespan of every schedule that a label stands for.
    """

    device: NDArray[np.int64]
    time: NDArray[np.int64]
    memory: NDArray[np.int64]
    bound: NDArray[np.int64]
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.memory)


@dataclass
class Forward:
    """Forward passes over one instance.

    Parameters
    ----------
    pricing : Pricing
    duals : list of Dual
        The first, of the whole graph, also limits which columns are enumerated.
    """

    pricing: Pricing
    duals: list[Dual]
    # By part, device, and bits of merged columns.
    _known: dict[tuple[int, int, int], _Enumerated] = field(default_factory=dict)
    _crowded: list[tuple[int, _Labels]] = field(default_factory=list)
    _orders: int = ORDERS
    _pace: Pace = field(default_factory=Pace)
    # Seconds of the slowest part of the last pass, with and without merging, for each label that
    # it might have kept.
    _per_label: dict[bool, float] = field(default_factory=dict)

    @property
    def series(self) -> Series:
        """The parts of the instance."""
        return self.pricing.series

    @property
    def pool(self) -> Pool:
        """The columns that are known."""
        return self.pricing.pool

    def _bounding(self, i: int) -> list[Dual]:
        """Return the relaxations that have part ``i``."""
        return [dual for dual in self.duals if dual.begin <= i]

    def _enumerating(self, i: int) -> list[Dual]:
        """Return the relaxations that limit the columns of part ``i``."""
        return self._bounding(i + 1)[:_ENUMERATING]

    def run(
        self,
        upper: int,
        beam: int,
        deadline: float,
        *,
        pooled: bool = False,
        merging: bool = False,
    ) -> PassResult | None:
        """Look for a schedule below ``upper``.

        Parameters
        ----------
        pooled : bool
            Whether to combine only the columns in the pool and a few others, which proves nothing.
        merging : bool
            Whether labels that are too many are merged rather than given up, and columns whose
            memory is alike: a relaxation, which proves a bound. It ends once anything is given up.
            A schedule that it comes upon need not be below the limit.

        Returns
        -------
        PassResult or None
            ``None`` if the time is up.
        """
        series, k = self.series, self.series.devices
        labels = _Labels(
            np.zeros(1, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            np.zeros((1, k), dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )
        dropped = 0 if pooled else NEVER
        self._crowded.clear()
        trail: list[_Step] = []
        begin, slowest = clock.now(), 0.0
        # What a part takes grows with the labels; the slowest has to end in time.
        pace = 0.0 if pooled else self._per_label.get(merging, 0.0)
        if pace > 0.0:
            beam = max(1, min(beam, int(_SLOWEST * (deadline - begin) / pace)))
        # Of the memory of merged columns; the more labels, the finer.
        bits = beam.bit_length() if merging else -1
        for i, stretch in enumerate(series.stretches):
            slowest, begin = max(slowest, clock.now() - begin), clock.now()
            if begin + pace * beam > deadline:
                return None
            if not pooled:
                self._per_label[merging] = slowest / beam
            if stretch.alone:
                columns = (
                    self._pooled(i, labels, upper, deadline)
                    if pooled
                    else self._columns(i, labels, upper, beam, bits, deadline)
                )
                if columns is None:
                    return None
                if merging:  # the columns take about as long for few labels as for many
                    begin = clock.now()
                labels, lost = self._join(i, labels, columns, upper, beam, merging, trail)
            else:
                labels, lost = self._extend(i, labels, upper, beam, trail, deadline)
            dropped = min(dropped, lost)
            if merging and dropped < upper:
                return PassResult(None, (), int(labels.bound.min(initial=dropped)), False)
            if lost < upper and not merging and series.clean[i + 1] and i + 1 < len(series):
                self._crowded.append((i + 1, labels))
            if not len(labels):
                return PassResult(None, (), min(upper, dropped), dropped >= upper)
        if merging:
            bounds = np.maximum(labels.time, labels.bound)
            ways = (_traced(trail, label, k) for label in bounds.argsort()[:_TRIED].tolist())
            return PassResult(None, next(filter(self._fits, ways), ()), int(bounds.min()), True)
        best = int(labels.time.argmin())
        value = int(labels.time[best])
        return PassResult(
            value, _traced(trail, best, k), min(upper, dropped, value), dropped >= value
        )

    def _fits(self, sequence: Sequence) -> bool:
        """Return whether there is memory for all vertices of a sequence."""
        used = np.zeros(self.series.devices, dtype=np.int64)
        for v, d in sequence:
            used[d] += self.series.charge[v]
        return bool(((used <= self.series.capacity) | (self.series.capacity < 0)).all())

    def sharpen(self, deadline: float) -> None:
        """Add relaxations with prices that suit the labels of cuts where some were given up."""
        crowded = [(i, labels) for i, labels in self._crowded if len(labels)]
        if not crowded:
            return
        now = clock.now()
        deadline = now + _SHARPENING * max(0.0, deadline - now)
        number = len(self.duals)
        random = np.random.default_rng(number)
        wanted = [
            (*crowded[at], row)
            for at in np.unique(np.linspace(0, len(crowded) - 1, _CUTS).astype(int)).tolist()
            for row in (0, *random.integers(min(len(crowded[at][1]), _AMONG), size=_DRAWN - 1))
        ]
        for left, (i, labels, row) in zip(range(len(wanted), 0, -1), wanted, strict=True):
            now = clock.now()
            if len(self.duals) >= _MOST_DUALS or now >= deadline:
                break
            room = self.series.capacity - labels.memory[row]
            late = now + (deadline - now) / left
            dual = self.pricing.after(i, int(labels.device[row]), room, self.duals, late)
            if dual is None:
                continue
            for name in self.series.exchanges:
                other = dual.exchanged(name)
                if all((other.price != known.price).any() for known in self.duals[number:]):
                    self.duals.append(other)
        if len(self.duals) > number:
            self._known.clear()

    # --- parts whose labels are devices and ends -------------------------------------------

    def _columns(
        self, i: int, labels: _Labels, upper: int, beam: int, bits: int, deadline: float
    ) -> list[_Enumerated | None] | None:
        """Return the columns from each device that can be part of a schedule below ``upper``."""
        wanted: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
        present = [d for d in range(self.series.devices) if (labels.device == d).any()]
        for d in present:
            here = labels.device == d
            limit, room = self._limits(i, labels.time[here], labels.memory[here], upper)
            known = self._known.get((i, d, bits))
            if known is None or not known.serves(limit, room, beam):
                wanted.append((d, limit, room))

        found = threads.each(
            lambda given: (
                self._enumerate(i, *given, beam, bits, deadline)
                if clock.now() <= deadline
                else None
            ),
            wanted,
            self.pricing.workers,
        )
        for (d, *_), new in zip(wanted, found, strict=True):
            if new is None:
                return None
            self._add(new.best)
            self._known[i, d, bits] = new
        return [
            self._known[i, d, bits] if d in present else None for d in range(self.series.devices)
        ]

    def _limits(
        self, i: int, ends: NDArray[np.int64], memory: NDArray[np.int64], upper: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return what some label leaves to a column of a part, by every dual, and of every memory.

        The limit is for time and cost of the column and all that follows, less what ``upper`` is.
        """
        series = self.series
        limited = series.capacity >= 0
        spare = np.where(limited, series.capacity - memory, 0)
        limit = [
            int((upper - ends + ((spare @ dual.price) >> dual.shift)).max())
            for dual in self._enumerating(i)
        ]
        return np.array(limit), np.where(limited, spare.max(axis=0), -1)

    def _add(self, columns: tuple[Column, ...]) -> None:
        for column in columns:
            self.pool.add(column)

    def _enumerate(
        self,
        i: int,
        device: int,
        limit: NDArray[np.int64],
        room: NDArray[np.int64],
        beam: int,
        bits: int,
        deadline: float,
    ) -> _Enumerated:
        if self.series.stretches[i].chains is not None:
            most = _COLUMNS_PER_LABEL * beam
            return self._choose(i, device, limit, room, beam, most, bits, deadline)
        series, dual = self.series, self.duals[0]
        # Labels of a part pay for its memory less all that there is.
        constant = int((np.maximum(series.capacity, 0) @ dual.price) >> dual.shift)
        times, _, memory, last, history, dropped = extend(
            series,
            i,
            self.duals[:1],
            (
                series.first_label(i, device)[None, :],
                np.zeros(1, dtype=np.int64),
                np.zeros((1, series.devices), dtype=np.int64),
            ),
            int(limit[0]) - constant,
            beam,
            deadline,
        )
        closed = series.parts[i].closed
        end = history[last, 2] if closed else np.zeros(len(last), dtype=np.int64)
        best = tuple(
            Column(i, device, int(end[row]), int(times[row, 0]), memory[row], way)
            for row in range(min(len(last), _POOLED))
            for way in [traced(history, int(last[row]))[1]]
        )
        return _Enumerated(
            np.where(np.arange(len(limit)) > 0, NEVER, limit),
            np.full(len(room), NEVER),
            beam,
            dropped + constant if dropped < NEVER else NEVER,
            end,
            times[:, 0].copy(),
            memory,
            lambda column: traced(history, int(last[column]))[1],
            best=best,
        )

    def _choose(
        self,
        i: int,
        device: int,
        limit: NDArray[np.int64],
        room: NDArray[np.int64],
        beam: int,
        most: int,
        bits: int,
        deadline: float,
    ) -> _Enumerated:
        left = max(0.1, deadline - clock.now())
        duals = self._enumerating(i)
        found = choose(
            self.series,
            i,
            device,
            (
                np.stack([dual.cost for dual in duals]),
                np.stack([dual.after[i + 1] for dual in duals]),
            ),
            limit,
            room,
            best_only=False,
            most=most,
            # Little is lost if labels are merged, but much if a column is given up.
            nodes=min(
                _NODES_PER_COLUMN * most if bits < 0 else NEVER,
                self._pace.nodes((_ONE_SEARCH if bits < 0 else _ONE_MERGING_SEARCH) * left),
            ),
            pace=self._pace,
            orders=self._orders,
            bits=bits,
        )
        best = tuple(
            Column(
                i,
                device,
                int(found.end[row]),
                int(found.time[row]),
                found.taken[row],
                found.sequence(row),
            )
            for row in np.argsort(found.value)[:_POOLED].tolist()
        )
        return _Enumerated(
            limit,
            room,
            beam,
            found.dropped,
            found.end,
            found.low,
            found.taken,
            found.sequence,
            loose=bool((found.low < found.time).any()),
            best=best if bits < 0 else (),
        )

    def tightened(self) -> bool:
        """Return whether times of columns were only bounds; from now on they are better ones."""
        loose = any(known.loose for (*_, bits), known in self._known.items() if bits < 0)
        if loose:
            self._orders *= 10
            self._known.clear()
        return loose

    def _pooled(
        self, i: int, labels: _Labels, upper: int, deadline: float
    ) -> list[_Enumerated | None]:
        """Return the columns in the pool, and the best that can follow some label."""
        if self.series.stretches[i].chains is not None:
            wanted = [
                (d, *self._limits(i, labels.time[here], labels.memory[here], upper))
                for d in np.unique(labels.device).tolist()
                for here in [labels.device == d]
            ]
            for found in threads.each(
                lambda given: self._choose(i, *given, 0, 2 * _POOLED, -1, deadline),
                wanted,
                self.pricing.workers,
            ):
                self._add(found.best)
        pool = self.pool.columns()
        here = np.arange(pool.first[i], pool.first[i + 1])
        sequences = self.pool.sequences(i)
        columns: list[_Enumerated | None] = []
        nothing = np.zeros(0, dtype=np.int64)
        for d in range(self.series.devices):
            chosen = here[pool.start[here] == d]
            columns.append(
                _Enumerated(
                    nothing,
                    nothing,
                    0,
                    NEVER,
                    pool.end[chosen],
                    pool.time[chosen],
                    pool.memory[chosen],
                    partial(_picked, sequences, chosen - pool.first[i]),
                )
            )
        return columns

    def _join(
        self,
        i: int,
        labels: _Labels,
        columns: list[_Enumerated | None],
        upper: int,
        beam: int,
        merging: bool,
        trail: list[_Step],
    ) -> tuple[_Labels, int]:
        series, k = self.series, self.series.devices
        present = [c for c in columns if c is not None]
        first = np.cumsum([0, *(0 if c is None else len(c.end) for c in columns)])
        empty = np.zeros(0, dtype=np.int64)
        columns_of = Extensions(
            first=first,
            end=np.concatenate([empty, *(c.end for c in present)]),
            span=np.concatenate([empty, *(c.span for c in present)]),
            taken=np.ascontiguousarray(
                np.concatenate([np.zeros((0, k), dtype=np.int64), *(c.taken for c in present)])
            ),
        )
        duals = self._bounding(i + 1)
        cut = Cut(
            after=np.stack([dual.after[i + 1] for dual in duals]),
            price=np.stack([dual.price for dual in duals]),
            shift=duals[0].shift,
            capacity=series.capacity,
            rest_need=series.stretches[i].later,
            ahead=self._ahead(i + 1),
            kind=series.kind,
            upper=upper,
            beam=beam,
            merging=merging,
        )
        device, ends, memory, bound, source, column, renamed, lost = joined(
            Ends(labels.device, labels.time, labels.memory, labels.bound), columns_of, cut
        )
        trail.append(partial(_joined, source, column, labels.device, first, columns, renamed))
        for d, c in enumerate(columns):
            if c is not None and c.dropped < NEVER:
                here = labels.device == d
                limit, _ = self._limits(i, labels.time[here], labels.memory[here], upper)
                lost = min(lost, upper - int(limit[0]) + c.dropped)
        return _Labels(device, ends, memory, bound), lost

    def _ahead(self, i: int) -> NDArray[np.int64]:
        """Return how much earlier a label before part ``i`` must end to replace another, k × k."""
        series, k = self.series, self.series.devices
        if i == len(series) or not series.parts[i - 1].closed:
            return np.zeros((k, k), dtype=np.int64)
        waiting = series.stretches[i].waiting
        at = np.stack([series.arrivals(i, d, waiting).reshape(-1) for d in range(k)])
        one, other = at[:, None, :], at[None, :, :]
        later = np.where(other >= NEVER, -NEVER, np.where(one >= NEVER, NEVER, one - other))
        least: NDArray[np.int64] = np.clip(later.max(axis=2, initial=-NEVER), 0, NEVER)
        return least

    # --- parts whose labels are rows of times ----------------------------------------------

    def _extend(
        self,
        i: int,
        labels: _Labels,
        upper: int,
        beam: int,
        trail: list[_Step],
        deadline: float,
    ) -> tuple[_Labels, int]:
        series = self.series
        rows = labels.rows
        if rows is None:
            rows = np.stack(
                [
                    _later(series.first_label(i, int(d)), int(t))
                    for d, t in zip(labels.device, labels.time, strict=True)
                ]
            )
        times, _, memory, last, history, dropped = extend(
            series,
            i,
            self._bounding(i),
            (rows, np.zeros(len(rows), dtype=np.int64), labels.memory),
            upper,
            beam,
            deadline,
            whole=True,
        )
        trail.append(partial(_extended, last, history))
        ends, device = times[:, 0].copy(), history[last, 2]
        bound = np.zeros(len(ends), dtype=np.int64)
        if series.clean[i + 1]:
            return _Labels(device, ends, memory, bound), dropped
        lattice = series.stretches[i + 1].lattice
        assert lattice is not None
        width = 1 + series.devices * (1 + len(lattice.slots(0)))
        following = np.ascontiguousarray(times[:, :width])
        return _Labels(device, ends, memory, bound, following), dropped


#: Returns, for a label, the label before, the steps between, and the new names of devices.
_Step = Callable[[int], tuple[int, Sequence, NDArray[np.int64] | None]]


def _traced(trail: list[_Step], best: int, devices: int) -> Sequence:
    """Return the sequence of vertices that leads to a label at the end."""
    way: list[tuple[Sequence, NDArray[np.int64] | None]] = []
    at = best
    for step in reversed(trail):
        at, sequence, renamed = step(at)
        way.append((sequence, renamed))
    true = np.arange(devices)
    found: list[tuple[int, int]] = []
    for sequence, renamed in reversed(way):
        found += [(v, int(true[d])) for v, d in sequence]
        if renamed is not None:
            now = true.copy()
            now[renamed] = true
            true = now
    return tuple(found)


def _joined(
    source: NDArray[np.int64],
    column: NDArray[np.int64],
    device: NDArray[np.int64],
    first: NDArray[np.int64],
    columns: list[_Enumerated | None],
    renamed: NDArray[np.int64],
    label: int,
) -> tuple[int, Sequence, NDArray[np.int64] | None]:
    before = int(source[label])
    d = int(device[before])
    chosen = columns[d]
    assert chosen is not None
    return before, chosen.sequence(int(column[label] - first[d])), renamed[label]


def _extended(
    last: NDArray[np.int64], history: NDArray[np.int64], label: int
) -> tuple[int, Sequence, NDArray[np.int64] | None]:
    return *traced(history, int(last[label])), None


def _picked(sequences: list[Sequence], rows: NDArray[np.int64], column: int) -> Sequence:
    return sequences[int(rows[column])]


def _later(label: NDArray[np.int64], ticks: int) -> NDArray[np.int64]:
    """Return a label whose times are later by some ticks."""
    return np.minimum(label + ticks, NEVER)

"""The forward pass: labels with all memory taken, from the first part to the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.exact.series.choosing import ORDERS, Pace, choose
from optpart.exact.series.columns import Pool, Sequence
from optpart.exact.series.dual import Dual, Pricing, extend, traced
from optpart.exact.series.join import Cut, Ends, Extensions, joined
from optpart.exact.series.lattice import NEVER
from optpart.exact.series.problem import Series

#: Columns of a part, for each label that may be kept, and nodes of the search for each of them.
_COLUMNS_PER_LABEL, _NODES_PER_COLUMN = 50, 200

#: Share of the time that is left for one search.
_ONE_SEARCH = 1 / 6

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
        Ticks of the best schedule below the limit of the pass.
    sequence : list of pairs
        That schedule: vertices in the order of their starts, with devices.
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
    only a lower bound.
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
    """Labels before a part: those of a clean cut as devices and ends, others as rows of times."""

    device: NDArray[np.int64]
    time: NDArray[np.int64]
    memory: NDArray[np.int64]
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
    _known: dict[tuple[int, int], _Enumerated] = field(default_factory=dict)
    _crowded: list[tuple[int, _Labels]] = field(default_factory=list)
    _orders: int = ORDERS
    _pace: Pace = field(default_factory=Pace)
    # Seconds of the slowest part of the last pass, for each label that it might have kept.
    _per_label: float = 0.0

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
        self, upper: int, beam: int, deadline: float, *, pooled: bool = False
    ) -> PassResult | None:
        """Look for a schedule below ``upper``.

        Parameters
        ----------
        pooled : bool
            Whether to combine only the columns in the pool and a few others, which proves nothing.

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
        )
        dropped = 0 if pooled else NEVER
        self._crowded.clear()
        trail: list[_Step] = []
        begin, slowest = clock.now(), 0.0
        # What a part takes grows with the labels; the slowest has to end in time.
        pace = 0.0 if pooled else self._per_label
        if pace > 0.0:
            beam = max(1, min(beam, int(_SLOWEST * (deadline - begin) / pace)))
        for i, stretch in enumerate(series.stretches):
            slowest, begin = max(slowest, clock.now() - begin), clock.now()
            if begin + pace * beam > deadline:
                return None
            if not pooled:
                self._per_label = slowest / beam
            if stretch.alone:
                columns = (
                    self._pooled(i, labels, upper, deadline)
                    if pooled
                    else self._columns(i, labels, upper, beam, deadline)
                )
                if columns is None:
                    return None
                labels, lost = self._join(i, labels, columns, upper, beam, trail)
            else:
                labels, lost = self._extend(i, labels, upper, beam, trail, deadline)
            dropped = min(dropped, lost)
            if lost < upper and series.clean[i + 1] and i + 1 < len(series):
                self._crowded.append((i + 1, labels))
            if not len(labels):
                return PassResult(None, (), min(upper, dropped), dropped >= upper)
        best = int(labels.time.argmin())
        value = int(labels.time[best])
        return PassResult(
            value, _traced(trail, best, k), min(upper, dropped, value), dropped >= value
        )

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
        self, i: int, labels: _Labels, upper: int, beam: int, deadline: float
    ) -> list[_Enumerated | None] | None:
        """Return the columns from each device that can be part of a schedule below ``upper``."""
        found: list[_Enumerated | None] = []
        for d in range(self.series.devices):
            here = labels.device == d
            if not here.any():
                found.append(None)
                continue
            limit, room = self._limits(i, labels.time[here], labels.memory[here], upper)
            known = self._known.get((i, d))
            if known is None or not known.serves(limit, room, beam):
                if clock.now() > deadline:
                    return None
                known = self._enumerate(i, d, limit, room, beam, deadline)
                self._known[i, d] = known
            found.append(known)
        return found

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

    def _enumerate(
        self,
        i: int,
        device: int,
        limit: NDArray[np.int64],
        room: NDArray[np.int64],
        beam: int,
        deadline: float,
    ) -> _Enumerated:
        if self.series.stretches[i].chains is not None:
            return self._choose(i, device, limit, room, beam, _COLUMNS_PER_LABEL * beam, deadline)
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
        for row in range(min(len(last), _POOLED)):
            sequence = traced(history, int(last[row]))[1]
            self.pool.add(i, device, int(end[row]), int(times[row, 0]), memory[row], sequence)
        return _Enumerated(
            np.where(np.arange(len(limit)) > 0, NEVER, limit),
            np.full(len(room), NEVER),
            beam,
            dropped + constant if dropped < NEVER else NEVER,
            end,
            times[:, 0].copy(),
            memory,
            lambda column: traced(history, int(last[column]))[1],
        )

    def _choose(
        self,
        i: int,
        device: int,
        limit: NDArray[np.int64],
        room: NDArray[np.int64],
        beam: int,
        most: int,
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
            nodes=min(_NODES_PER_COLUMN * most, self._pace.nodes(_ONE_SEARCH * left)),
            pace=self._pace,
            orders=self._orders,
        )
        for row in np.argsort(found.value)[:_POOLED].tolist():
            end, span = int(found.end[row]), int(found.time[row])
            self.pool.add(i, device, end, span, found.taken[row], found.sequence(row))
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
        )

    def tightened(self) -> bool:
        """Return whether times of columns were only bounds; from now on they are better ones."""
        loose = any(known.loose for known in self._known.values())
        if loose:
            self._orders *= 10
            self._known.clear()
        return loose

    def _pooled(
        self, i: int, labels: _Labels, upper: int, deadline: float
    ) -> list[_Enumerated | None]:
        """Return the columns in the pool, and the best that can follow some label."""
        if self.series.stretches[i].chains is not None:
            for d in np.unique(labels.device).tolist():
                here = labels.device == d
                limit, room = self._limits(i, labels.time[here], labels.memory[here], upper)
                self._choose(i, d, limit, room, 0, 2 * _POOLED, deadline)
        pool = self.pool.columns()
        here = np.arange(pool.first[i], pool.first[i + 1])
        sequences = self.pool.sequences(i)
        found: list[_Enumerated | None] = []
        nothing = np.zeros(0, dtype=np.int64)
        for d in range(self.series.devices):
            chosen = here[pool.start[here] == d]
            found.append(
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
        return found

    def _join(
        self,
        i: int,
        labels: _Labels,
        columns: list[_Enumerated | None],
        upper: int,
        beam: int,
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
        )
        device, ends, memory, source, column, renamed, lost = joined(
            Ends(labels.device, labels.time, labels.memory), columns_of, cut
        )
        trail.append(partial(_joined, source, column, labels.device, first, columns, renamed))
        for d, c in enumerate(columns):
            if c is not None and c.dropped < NEVER:
                here = labels.device == d
                limit, _ = self._limits(i, labels.time[here], labels.memory[here], upper)
                lost = min(lost, upper - int(limit[0]) + c.dropped)
        return _Labels(device, ends, memory), lost

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
        if series.clean[i + 1]:
            return _Labels(device, ends, memory), dropped
        lattice = series.stretches[i + 1].lattice
        assert lattice is not None
        width = 1 + series.devices * (1 + len(lattice.slots(0)))
        following = np.ascontiguousarray(times[:, :width])
        return _Labels(device, ends, memory, following), dropped


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

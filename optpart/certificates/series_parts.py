"""What a part comes to, and that it comes to nothing else.

An *outcome* of a part is the device of its cut, the memory that it takes on each device at least,
and the time that it lasts at least. The places of its units are told apart, and the orders of
vertices that would overlap on a device. Each case has a longest path, and is one of the outcomes.
"""

from __future__ import annotations

from itertools import chain
from operator import ge
from typing import NamedTuple

from optpart.certificates.cutting_planes import (
    Clause,
    Conditional,
    Literal,
    TooLargeError,
    Truth,
    Whole,
    add,
)
from optpart.certificates.series_rows import Arc, SeriesRows

#: How many ways to place a part are looked at, and how many outcomes are kept after one device.
WAYS, OUTCOMES = 100_000, 1_000

#: How many vertices a part may have, and how many places and orders a case; both are recursions.
DEPTH = 100

#: The places of units, and of two vertices which is first.
_Placed = dict[int, int]
_Order = dict[tuple[int, int], bool]


class Outcome(NamedTuple):
    """The device of a cut, memory taken on each limited device, and time, all at least."""

    device: int
    memory: tuple[int, ...]
    time: int

    def implies(self, other: Outcome) -> bool:
        """Return whether this is as much as another, or more."""
        same = self.device == other.device and self.time >= other.time
        return same and all(map(ge, self.memory, other.memory))


class _Way(NamedTuple):
    """The longest path to a vertex: its length, the vertex before, and the last row or tail."""

    time: int
    before: int | None = None
    row: int | None = None
    conditions: tuple[Literal, ...] = ()
    tail: tuple[int, int | None, int] | None = None


class PartRows:
    """The outcomes of a part by the device of the cut before.

    Attributes
    ----------
    outcomes : dict from int to list of Outcome
        The outcomes after the cut before on each device.
    whole : dict from Outcome to Whole
        The variable that stands for each, and its literals.
    shown : dict from int to Clause
        If the cut before is there, one of its outcomes occurs.

    Raises
    ------
    TooLargeError
        If there are too many ways to place the part.
    """

    def __init__(self, rows: SeriesRows, i: int) -> None:
        self.rows, self.i, self.part, self.script = rows, i, range(i, i + 1), rows.script
        self.vertices, self.cut = rows.parts[i], rows.cut(i - 1)
        self.end, before, inside = self.vertices[-1], rows.before, {*self.vertices, self.cut}
        self._edges = [(u, v) for v in self.vertices for u in sorted(before[v]) if u in inside]
        # The cut's own place first, since every outcome names it.
        named = [rows.unit[v] for v in (self.end, *self.vertices) if v != rows.sink]
        self._units = [*dict.fromkeys(named)]
        self._pairs = [pair for pair in rows.first if pair[0] in inside]
        units = {*named} if self.cut is None else {*named, rows.unit[self.cut]}
        self._apart = [at for at in rows.apart if units.issuperset(at[:2])]
        self._after: dict[int, list[int]] = {}
        for u, v in self._edges:
            self._after.setdefault(u, []).append(v)
        self._tails: dict[tuple[int, int | None, int], int] = {}
        self._proven: dict[tuple[int, int | None, int], Clause] = {}
        self._ways, self._front = 0, dict[int, list[Outcome]]()
        self.outcomes: dict[int, list[Outcome]] = {}
        self.whole: dict[Outcome, Whole] = {}
        self.shown: dict[int, Clause] = {}
        for d in rows.at(i - 1):
            placed = {} if self.cut is None else {rows.unit[self.cut]: d}
            self._front = {e: [] for e in rows.at(i)}
            self._find(placed, {})
            found = [*chain(*self._front.values())]
            self.whole |= {x: self.script.all_of(self._parts(x)) for x in found}
            self.shown[d] = shown = self._prove(placed, {})
            occur = [x for x in found if self.whole[x][0].literal in shown.literals]
            self.outcomes[d] = occur

    def _parts(self, outcome: Outcome) -> list[Literal]:
        """Return the literals of an outcome."""
        rows, i = self.rows, self.i
        there = rows.at(i)[outcome.device]
        memory = zip(rows.limited, outcome.memory, strict=True)
        takes = [rows.takes(self.part, f, m).literal for f, m in memory if m]
        return [*([] if there is None else [there]), *takes, rows.lasts(i, outcome.time).literal]

    # --- cases -----------------------------------------------------------------------------

    def _find(self, placed: _Placed, order: _Order) -> None:
        """Collect the least outcomes."""
        if self._clash(placed) is not None:
            return
        ways = self._longest(placed, order)
        reached = self._reached(placed, ways)
        if reached is not None and self._known(reached) is not None:
            return
        cases = self._cases(placed, order, ways)
        for _, case in cases:
            self._find(*case)
        if not cases:
            assert reached is not None
            front = self._front[reached.device]
            front[:] = [x for x in front if not x.implies(reached)] + [reached]
            if sum(map(len, self._front.values())) > OUTCOMES:
                raise TooLargeError(f"a part has more than {OUTCOMES} outcomes")

    def _prove(self, placed: _Placed, order: _Order) -> Clause:
        """Prove that one of the outcomes occurs, or else some place or order is another."""
        clash = self._clash(placed)
        if clash is not None:
            return clash
        ways = self._longest(placed, order)
        reached = self._reached(placed, ways)
        if reached is not None and (outcome := self._known(reached)) is not None:
            return self._leaf(outcome, placed, ways)
        cases = self._cases(placed, order, ways)
        unit = self._open(placed)
        choice = None if unit is None else self.rows.some[unit]
        return self.script.cases(((x, self._prove(*case)) for x, case in cases), choice)

    def _known(self, reached: Outcome) -> Outcome | None:
        """Return an outcome that one implies."""
        return next(filter(reached.implies, self._front[reached.device]), None)

    def _clash(self, placed: _Placed) -> Clause | None:
        """Return that two units are not on one device, if they are."""
        for u, w, d in self._apart:
            if placed.get(u) == placed.get(w) == d:
                return self.rows.apart[u, w, d]
        return None

    def _open(self, placed: _Placed) -> int | None:
        return next((u for u in self._units if u not in placed), None)

    def _cases(
        self, placed: _Placed, order: _Order, ways: dict[int, _Way]
    ) -> list[tuple[Literal, tuple[_Placed, _Order]]]:
        """Return the cases to tell apart next, by their literals."""
        rows, unit = self.rows, self._open(placed)
        if unit is not None:
            return [(rows.place[unit, d], ({**placed, unit: d}, order)) for d in rows.on[unit]]
        for u, v in self._pairs:
            d, s, t = placed[rows.unit[u]], ways[u].time, ways[v].time
            together = d == placed[rows.unit[v]]
            if together and s < t + rows.time(v, d) and t < s + rows.time(u, d):
                b = rows.first[u, v]
                return [(x, (placed, {**order, (u, v): x > 0})) for x in (b, -b)]
        return []

    def _reached(self, placed: _Placed, ways: dict[int, _Way]) -> Outcome | None:
        """Return what a case comes to at least, if it says where the cut is."""
        rows, device = self.rows, 0
        if self.end != rows.sink:
            unit = rows.unit[self.end]
            if unit not in placed:
                return None
            device = placed[unit]
        time, needs = ways[self.end].time, rows.needs[self.i].items()
        if time > rows.horizon:  # too late, whatever it takes
            return Outcome(device, (0,) * len(rows.limited), rows.horizon + 1)
        memory = (sum(m for u, m in needs if placed.get(u) == f) for f in rows.limited)
        return Outcome(device, tuple(memory), time)

    def _longest(self, placed: _Placed, order: _Order) -> dict[int, _Way]:
        """Return the longest path to each vertex, as far as places and orders are known."""
        self._ways += 1
        if self._ways > WAYS or max(len(self.vertices), len(placed) + len(order)) > DEPTH:
            size = len(self.vertices)
            raise TooLargeError(f"a part of {size} vertices has too many ways to be placed")
        rows, ways = self.rows, dict[int, _Way]()
        if self.cut is not None:
            ways[self.cut] = _Way(0)
        else:
            ways = {v: _Way(0, None, rows.positive(v)) for v in self.vertices if v != rows.sink}
            ways.setdefault(self.end, _Way(0))
        arcs = [(u, v, rows.arc(u, v, placed)) for u, v in self._edges]
        for pair, kept in order.items():
            u, v = pair if kept else pair[::-1]
            arcs.append((u, v, rows.turn(u, v, placed[rows.unit[u]])))
        device = 0 if self.end == rows.sink else placed.get(rows.unit[self.end])
        # No cycle takes any time, since only vertices that overlap have been ordered.
        changed = True
        while changed:
            changed = False
            for u, v, (lag, row, conditions) in arcs:
                if u in ways and (v not in ways or ways[v].time < ways[u].time + lag):
                    ways[v] = _Way(ways[u].time + lag, u, row, conditions)
                    changed = True
        if device is not None and any(u not in placed for u in self._units):
            for v in [v for v in ways if v != self.end]:
                tail = v, placed.get(rows.unit[v]), device
                time = ways[v].time + self._tail(*tail)
                if time > ways[self.end].time:
                    ways[self.end] = _Way(time, v, tail=tail)
        return ways

    # --- tails -----------------------------------------------------------------------------

    def _open_to(self, v: int, d: int, w: int, e: int) -> list[int]:
        """Return the devices of ``w`` if ``v`` and the cut are on others."""
        unit = self.rows.unit
        if unit[w] == unit[v]:
            return [d]
        fixed = self.end != self.rows.sink and unit[w] == unit[self.end]
        return [e] if fixed else self.rows.devices(w)

    def _tail(self, v: int, d: int | None, e: int) -> int:
        """Return the least time from the start of a vertex to that of the cut, by their devices."""
        if (v, d, e) not in self._tails:
            if d is None:
                tail = min(self._tail(v, f, e) for f in self.rows.devices(v))
            else:
                tail = max(self._behind(v, d, e, w) for w in self._after[v])
            self._tails[v, d, e] = tail
        return self._tails[v, d, e]

    def _behind(self, v: int, d: int, e: int, w: int) -> int:
        """Return the least time by way of a consumer."""
        if w == self.end:
            return self._arc(v, d, w, e)[0]
        return min(
            self._arc(v, d, w, f)[0] + self._tail(w, f, e) for f in self._open_to(v, d, w, e)
        )

    def _arc(self, v: int, d: int, w: int, f: int) -> Arc:
        unit = self.rows.unit
        return self.rows.arc(
            v, w, {unit[v]: d} if w == self.rows.sink else {unit[v]: d, unit[w]: f}
        )

    def _until(self, v: int, t: int) -> Truth:
        """Return that the cut starts so much later than a vertex."""
        terms, constant = self.rows.moment(self.i)
        gap = add(dict(terms), self.rows.start[v], -1)
        return self.script.truth(gap, t - constant, "tail")

    def _shown(self, v: int, d: int | None, e: int) -> Clause:
        """Prove a tail, if the vertex and the cut are there."""
        if (v, d, e) not in self._proven:
            rows, least = self.rows, self._tail(v, d, e)
            if d is None:
                cases = [
                    (rows.place[rows.unit[v], f], self._at_least(v, least, f, e))
                    for f in rows.devices(v)
                ]
                shown = self.script.cases(cases, rows.some[rows.unit[v]])
            else:
                w = max(self._after[v], key=lambda w: self._behind(v, d, e, w))
                shown = self._by(v, d, e, w, least)
            self._proven[v, d, e] = shown
        return self._proven[v, d, e]

    def _at_least(self, v: int, least: int, d: int, e: int) -> Clause:
        """Weaken a tail."""
        shown, tail = self._shown(v, d, e), self._tail(v, d, e)
        if tail == least:
            return shown
        total = Conditional(self.script, self._until(v, least))
        total.given(self._until(v, tail))
        return self.script.resolved(total.clause(), [shown])

    def _by(self, v: int, d: int, e: int, w: int, least: int) -> Clause:
        """Prove a tail by way of a consumer, wherever that is."""
        rows, cases = self.rows, []
        for f in [e] if w == self.end else self._open_to(v, d, w, e):
            total = Conditional(self.script, self._until(v, least))
            _, row, conditions = self._arc(v, d, w, f)
            total.add(1, row)
            for condition in conditions:
                total.unless(condition, 2 * rows.horizon + 2)
            if w == self.end:
                return total.clause()
            total.given(self._until(w, self._tail(w, f, e)))
            clause = self.script.resolved(total.clause(), [self._shown(w, f, e)])
            cases.append((rows.place[rows.unit[w], f], clause))
        if len(cases) < len(rows.devices(w)):  # its place follows
            return cases[0][1]
        return self.script.cases(cases, rows.some[rows.unit[w]])

    def _leaf(self, outcome: Outcome, placed: _Placed, ways: dict[int, _Way]) -> Clause:
        """Prove an outcome by the longest path and the needs of what is placed."""
        rows, i = self.rows, self.i
        truth, parts = self.whole[outcome]
        reasons = []
        for f, m in zip(rows.limited, outcome.memory, strict=True):
            if m:
                takes = rows.takes(self.part, f, m)
                total, open_ = Conditional(self.script, takes), rows.need(self.part, f)
                there = {
                    rows.place[u, f]: n for u, n in rows.needs[i].items() if placed.get(u) == f
                }
                for x in sorted(there, key=lambda x: -there[x]):
                    if m > 0:
                        m -= there[x]
                        total.unless(-x, open_.pop(x))
                total.drop(open_)
                reasons.append(total.clause())
        total, v = Conditional(self.script, rows.lasts(i, outcome.time)), self.end
        at: int | None = v
        while at is not None:
            way = ways[at]
            total.add(1, way.row)
            for condition in way.conditions:
                # Twice the horizon is more than any coefficient of an arc.
                total.unless(condition, 2 * rows.horizon + 2)
            if way.tail is not None:
                total.given(self._until(way.tail[0], self._tail(*way.tail)))
                reasons.append(self._shown(*way.tail))
            at = way.before
        goal = Clause(truth.back, frozenset((truth.literal, *(-x for x in parts))))
        return self.script.resolved(goal, [*reasons, total.clause()])

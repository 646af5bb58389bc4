"""What a part comes to, and that it comes to nothing else.

An *outcome* of a part is the device of its cut, the memory that it takes on each device at least,
and the time that it lasts at least. The places of its units are told apart, and the orders of
vertices that would overlap on a device. Each case has a longest path, and is one of the outcomes.
"""

from __future__ import annotations

from typing import NamedTuple

from optpart.certificates.cutting_planes import Clause, Conditional, Literal, TooLargeError, Whole
from optpart.certificates.series_rows import SeriesRows

#: How many ways to place a part are looked at.
WAYS = 100_000

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
        memory = zip(self.memory, other.memory, strict=True)
        same = self.device == other.device and self.time >= other.time
        return same and all(m >= n for m, n in memory)


class _Way(NamedTuple):
    """The longest path to a vertex: its length, the vertex before, and the last row."""

    time: int
    before: int | None = None
    row: int | None = None
    conditions: tuple[Literal, ...] = ()


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
        self._ways, self._front = 0, list[Outcome]()
        self.outcomes: dict[int, list[Outcome]] = {}
        self.whole: dict[Outcome, Whole] = {}
        self.shown: dict[int, Clause] = {}
        for d in rows.at(i - 1):
            placed = {} if self.cut is None else {rows.unit[self.cut]: d}
            self._front = []
            self._find(placed, {})
            self.whole |= {x: self.script.all_of(self._parts(x)) for x in self._front}
            self.shown[d] = shown = self._prove(placed, {})
            occur = [x for x in self._front if self.whole[x][0].literal in shown.literals]
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
        if reached is not None and any(map(reached.implies, self._front)):
            return
        cases = self._cases(placed, order, ways)
        for _, case in cases:
            self._find(*case)
        if not cases:
            assert reached is not None
            self._front = [x for x in self._front if not x.implies(reached)] + [reached]

    def _prove(self, placed: _Placed, order: _Order) -> Clause:
        """Prove that one of the outcomes occurs, or else some place or order is another."""
        clash = self._clash(placed)
        if clash is not None:
            return clash
        ways = self._longest(placed, order)
        reached = self._reached(placed, ways)
        if reached is not None:
            for outcome in self._front:
                if reached.implies(outcome):
                    return self._leaf(outcome, placed, ways)
        cases = self._cases(placed, order, ways)
        unit = self._open(placed)
        choice = None if unit is None else self.rows.some[unit]
        return self.script.cases(((x, self._prove(*case)) for x, case in cases), choice)

    def _clash(self, placed: _Placed) -> Clause | None:
        """Return that two units are not on one device, if they are."""
        self._ways += 1
        if self._ways > WAYS:
            size = len(self._units)
            raise TooLargeError(f"a part of {size} units has more than {WAYS} ways to be placed")
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
        # No cycle takes any time, since only vertices that overlap have been ordered.
        changed = True
        while changed:
            changed = False
            for u, v, (lag, row, conditions) in arcs:
                if u in ways and (v not in ways or ways[v].time < ways[u].time + lag):
                    ways[v] = _Way(ways[u].time + lag, u, row, conditions)
                    changed = True
        return ways

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
            at = way.before
        goal = Clause(truth.back, frozenset((truth.literal, *(-x for x in parts))))
        return self.script.resolved(goal, [*reasons, total.clause()])

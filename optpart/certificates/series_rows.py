"""What every schedule within the horizon satisfies, as rows over places, starts and orders.

Variables say that a unit is on a device, and which of two vertices that no path orders is before
the other; a start ``σ`` is a number of bits. Every vertex ``v`` has an end ``σ_v + Σ_d p[v,d]·x``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, product

from optpart.certificates.check import Series, Windows
from optpart.certificates.cutting_planes import (
    Clause,
    Conditional,
    Literal,
    Script,
    Terms,
    Truth,
    add,
)

#: How much later a vertex starts than another, the row that says so, and its conditions.
Arc = tuple[int, int | None, tuple[Literal, ...]]


class SeriesRows:
    """The formula, and what follows from few of its rows.

    Cut ``i`` is the last vertex of part ``i``; that of the last part is the end of the schedule,
    and −1 is the moment 0. Both are nowhere.

    Parameters
    ----------
    joined : bool
        Whether to join parts until nothing connects them but the cut between them.

    Attributes
    ----------
    said : list of str
        What each variable of the formula means.
    on : list of list of int
        The devices of each unit, by its vertices' types, lists and run times alone.
    limited : dict from int to int
        The devices on which not everything fits at one time, and their memory.
    needs : list of dict from int to int
        By part, the memory of the units whose first vertex is in it.
    """

    def __init__(self, windows: Windows, *, joined: bool = False) -> None:
        self.series = series = Series(windows)
        self.parts, self.before = _joined(series) if joined else series.parts, series.before
        self.script, self.horizon, self.sink = Script(), windows.horizon, series.sink
        self.unit, self.last = windows.unit, len(self.parts) - 1
        self._run, self._edges, self._arcs = windows.run, dict[object, int](), dict[object, Arc]()
        self._truths, self._nothing = dict[object, Truth](), dict[object, int | None]()
        self.on = [
            [d for d in range(series.k) if all(windows.run[v][d] is not None for v in group)]
            for group in windows.members
        ]
        self.said: list[str] = []
        self.place = {
            (u, d): self._named(f"place {u} {d}") for u, on in enumerate(self.on) for d in on
        }
        bits = range(max(1, self.horizon.bit_length()))
        self.start = [{self._named(f"bit {v} {j}"): 1 << j for j in bits} for v in range(self.sink)]
        self._choose(windows.problem.separated)
        self._follow(windows)
        self._take_turns()
        self._fit()

    def _named(self, what: str) -> int:
        number = self.script.variable()
        self.said.append(f"{what} x{number}")
        return number

    # --- the formula -----------------------------------------------------------------------

    def _choose(self, separated: list[tuple[int, int]]) -> None:
        """Every unit is on one device, and separated ones are not on the same."""
        row = self.script.row
        there = [[self.place[u, d] for d in on] for u, on in enumerate(self.on)]
        #: By unit: it is on some device, and on no more than one.
        self.some = [Clause(row([(1, x) for x in each], 1), frozenset(each)) for each in there]
        self.one = [row([(-1, x) for x in each], -1) for each in there]
        self.apart: dict[tuple[int, int, int], Clause] = {}
        for u, w in sorted({(self.unit[a], self.unit[b]) for a, b in separated}):
            for d in self._common(u, w):
                pair = -self.place[u, d], -self.place[w, d]
                self.apart[u, w, d] = Clause(row([(1, x) for x in pair], 1), frozenset(pair))

    def _follow(self, windows: Windows) -> None:
        """A vertex starts after its inputs have arrived, and the last ones end by the horizon."""
        lag: dict[tuple[int, int], list[list[int]]] = {}
        for u, v, tensor in windows.problem.edges:
            delay = windows.departure[tensor]
            both = zip(lag.get((u, v), delay), delay, strict=True)
            lag[u, v] = [[*map(max, *rows)] for rows in both]
        self._lag = lag
        for u, v in [*lag, *((v, self.sink) for v in sorted(self.before[self.sink]))]:
            gap = [(-a, x) for x, a in self.start[u].items()]
            gap += [(-self.time(u, d), self.place[self.unit[u], d]) for d in self.devices(u)]
            if v == self.sink:
                self._edges[u, v] = self.script.row(gap, -self.horizon)
                continue
            gap += [(a, x) for x, a in self.start[v].items()]
            self._edges[u, v] = self.script.row(gap, 0)
            for d, e in product(self.devices(u), self.devices(v)):
                if (t := lag[u, v][d][e]) and self.unit[u] != self.unit[v]:
                    there = self.place[self.unit[u], d], self.place[self.unit[v], e]
                    self._edges[u, v, d, e] = self.script.row([*gap, *((t, -x) for x in there)], t)

    def _take_turns(self) -> None:
        """Of two vertices that no path orders, one runs before the other on their device."""
        #: The variables that the first of two vertices is before the second.
        self.first: dict[tuple[int, int], int] = {}
        self._turns: dict[tuple[int, int, int], int] = {}
        for part in self.parts:
            later: dict[int, set[int]] = {}
            for v in reversed(part):
                following = self.series.after[v].keys() & later.keys()
                later[v] = following.union(*(later[w] for w in following))
            for u, v in combinations(part, 2):
                common = [] if v in later[u] else self._common(self.unit[u], self.unit[v])
                if common:
                    self.first[u, v] = self._named(f"before {u} {v}")
                for d, (w, x, b) in product(common, ((u, v, 1), (v, u, -1))):
                    time = self.time(w, d)
                    gap = [(-a, y) for y, a in self.start[w].items()]
                    gap += [(a, y) for y, a in self.start[x].items()]
                    there = {-self.place[self.unit[y], d] for y in (u, v)}
                    large = max(1, self.horizon + time)
                    gap += [(large, y) for y in (-b * self.first[u, v], *there)]
                    self._turns[w, x, d] = self.script.row(gap, time)

    def _fit(self) -> None:
        """No device exceeds its memory."""
        need = self.series.need
        self.needs = [
            {self.unit[v]: need[v] for v in part if v < self.sink and need[v]}
            for part in self.parts
        ]
        self.limited: dict[int, int] = {}
        self.room: dict[int, int] = {}
        self._most: dict[tuple[int, int], int] = {}
        for d, limit in enumerate(self.series.capacity):
            terms = self.need(range(self.last + 1), d)
            if limit is not None and sum(terms.values()) > limit:
                self.limited[d] = limit
                self.room[d] = self.script.row([(-a, x) for x, a in terms.items()], -limit)
                for i in range(-1, self.last + 1):
                    later = self.need(range(i + 1, self.last + 1), d)
                    self._most[i, d] = sum(later.values())

    # --- names -----------------------------------------------------------------------------

    def time(self, v: int, d: int) -> int:
        """Return a run time."""
        time = self._run[v][d]
        assert time is not None
        return time

    def devices(self, v: int) -> list[int]:
        """Return the devices of a vertex."""
        return self.on[self.unit[v]]

    def _common(self, u: int, w: int) -> list[int]:
        return [d for d in self.on[u] if d in self.on[w]]

    def need(self, parts: range, d: int) -> Terms:
        """Return the memory that some parts take on a device."""
        each = (pair for i in parts for pair in self.needs[i].items())
        return {self.place[u, d]: need for u, need in each if d in self.on[u]}

    def cut(self, i: int) -> int | None:
        """Return the vertex of a cut that is somewhere."""
        v = self.parts[i][-1] if i >= 0 else self.sink
        return None if v == self.sink else v

    def at(self, i: int) -> dict[int, int | None]:
        """Return the variables that say where a cut is, by device; ``None`` if nowhere."""
        v = self.cut(i)
        return {0: None} if v is None else {d: self.place[self.unit[v], d] for d in self.devices(v)}

    def moment(self, i: int) -> tuple[Terms, int]:
        """Return the start of a cut: bits, and a constant."""
        v = self.cut(i)
        return ({}, self.horizon if i >= 0 else 0) if v is None else (self.start[v], 0)

    # --- rows that stand behind variables of the proof -------------------------------------

    def _stands(self, key: object, row: Callable[[], tuple[Terms, int]], least: int) -> Truth:
        """Return the variable that terms and a constant are at least so much; the same by key."""
        if (key, least) not in self._truths:
            terms, constant = row()
            self._truths[key, least] = self.script.truth(terms, least - constant)
        return self._truths[key, least]

    def begun(self, i: int, t: int) -> Truth:
        """Return that a cut starts at ``t`` or later."""
        return self._stands(("begun", i), lambda: self.moment(i), t)

    def gap(self, i: int) -> tuple[Terms, int]:
        """Return how long a part lasts, from the start of the cut before it to that of its own."""
        (before, early), (after, late) = self.moment(i - 1), self.moment(i)
        return add(dict(after), before, -1), late - early

    def lasts(self, i: int, t: int) -> Truth:
        """Return that a part lasts ``t`` or longer."""
        return self._stands(("lasts", i), lambda: self.gap(i), t)

    def takes(self, parts: range, d: int, m: int) -> Truth:
        """Return that some parts take ``m`` or more of the memory of a device."""
        return self._stands((parts, d), lambda: (self.need(parts, d), 0), m)

    def most(self, i: int, d: int) -> int:
        """Return all the memory that the parts after a cut can take of a device."""
        return self._most[i, d]

    # --- sums ------------------------------------------------------------------------------

    def positive(self, v: int) -> int | None:
        """Return that a vertex starts at 0 or later."""
        return self.script.sum((a, f"x{x}") for x, a in self.start[v].items())

    def nothing(self, parts: range, d: int) -> int | None:
        """Return that some parts take nothing or more of the memory of a device."""
        if (parts, d) not in self._nothing:
            need = self.need(parts, d).items()
            self._nothing[parts, d] = self.script.sum((a, f"x{x}") for x, a in need)
        return self._nothing[parts, d]

    def everything(self, parts: range, d: int) -> int | None:
        """Return that some parts take no more of the memory of a device than all of it."""
        return self.script.sum((a, f"~x{x}") for x, a in self.need(parts, d).items())

    def turn(self, u: int, v: int, d: int) -> Arc:
        """Return that ``v`` starts after ``u`` on a device, if that is the order."""
        b = self.first[u, v] if (u, v) in self.first else -self.first[v, u]
        there = {-self.place[self.unit[w], d] for w in (u, v)}
        return self.time(u, d), self._turns[u, v, d], (-b, *there)

    def arc(self, u: int, v: int, placed: Mapping[int, int]) -> Arc:
        """Return that ``v`` starts after its input ``u``, as far as their places are known."""
        d, e = placed.get(self.unit[u]), None if v == self.sink else placed.get(self.unit[v])
        if (u, v, d, e) not in self._arcs:
            self._arcs[u, v, d, e] = self._arc(u, v, d, e)
        return self._arcs[u, v, d, e]

    def _arc(self, u: int, v: int, d: int | None, e: int | None) -> Arc:
        there = {f: self.place[self.unit[u], f] for f in self.devices(u)}
        time, row = {f: self.time(u, f) for f in there}, self._edges[u, v]
        if d is None:  # whatever its device, u runs for its least run time
            least = min(time.values())
            more = [(time[f] - least, f"x{x}") for f, x in there.items()]
            some = self.some[self.unit[u]].number
            return least, self.script.sum([(1, row), (least, some), *more]), ()
        lag, others = 0, [(time[f], f"x{x}") for f, x in there.items() if f != d]
        if e is not None and (u, v, d, e) in self._edges:
            lag, row = self._lag[u, v][d][e], self._edges[u, v, d, e]
        conditions = [-there[d]] * (time[d] + lag > 0)
        if lag and e is not None:
            conditions.append(-self.place[self.unit[v], e])
        return time[d] + lag, self.script.sum([(1, row), *others]), tuple(conditions)

    def add_memory(self, total: Conditional, parts: range, d: int, m: int, factor: int = 1) -> None:
        """Add that some parts take ``m`` or more of the memory of a device."""
        if m:
            total.given(self.takes(parts, d, m), factor)
        else:
            total.add(factor, self.nothing(parts, d))

    def add_start(self, total: Conditional, i: int, t: int, factor: int = 1) -> None:
        """Add that a cut starts at ``t`` or later."""
        v = self.cut(i)
        if t:
            total.given(self.begun(i, t), factor)
        elif v is not None:
            total.add(factor, self.positive(v))


def _joined(series: Series) -> list[list[int]]:
    """Join parts about which a vertex says something, if it is not the cut just before."""
    within = set[int]()  # cuts that something passes by
    for i, part in enumerate(series.parts):
        for v in part:
            far = (series.part_of[w] for w in (*series.after[v], *series.rule[v]))
            within.update(range(i + (v == part[-1]), max(far, default=i)))
    parts: list[list[int]] = []
    for i, part in enumerate(series.parts):
        if i - 1 in within:
            parts[-1] += part
        else:
            parts.append([*part])
    return parts

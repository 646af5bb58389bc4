"""Records of tier ``probing``: assignments, branch by branch, or destructive bounds, step by step.

:mod:`optpart.lower_bounds.destructive` refutes a length by raising heads and tails and by excluding
devices on trial. What it does is written down, and then read backwards: only what the contradiction
at the end needs is kept, and only as much of every head and tail. A step that is kept is explained
by earlier heads, tails and exclusions, which thereby become needed in turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from optpart.base import clock
from optpart.certificates.arithmetic import Record
from optpart.certificates.check import (
    MAX_CERTIFICATE,
    Windows,
    too_much_work,
    waits,
    work_inside,
)
from optpart.kernels.compiled import whole_memory
from optpart.kernels.ticks import Grid
from optpart.lower_bounds.assignment import Tree, refutation
from optpart.lower_bounds.destructive import Refutation
from optpart.lower_bounds.energy import overload
from optpart.lower_bounds.one_machine import Sharpening, must_run_on
from optpart.lower_bounds.windows import NEVER
from optpart.lower_bounds.windows import Windows as Known
from optpart.problem.graph import inverse
from optpart.problem.instance import Instance

#: Bytes for everything else in a certificate.
_RESERVE = 2**16

Claim = list[Any]


class NotRefutedError(Exception):
    """The length was not refuted."""


class LateError(NotRefutedError):
    """The length was not refuted in the time limit."""


class _Time(NamedTuple):
    """A head or, backwards, a tail that has risen; to ``NEVER`` if it excludes the device."""

    backwards: bool
    v: int
    d: int
    t: int


class _Alone(NamedTuple):
    """A unit whose members do not fit on a device one after another."""

    unit: int
    d: int


class _Not(NamedTuple):
    """A unit that is not on a device, because a trial was refuted."""

    unit: int
    d: int
    trial: _Recorded


class _Full(NamedTuple):
    """A device that cannot run, one after another, all that has no other device left."""

    d: int


class _Work(NamedTuple):
    """Intervals with too much work, and prices of memory.

    Rows are device, begin, end and multiplier; prices are device and multiplier.
    """

    rows: list[list[int]]
    prices: list[list[int]]


_Event = _Time | _Alone | _Not
_End = _Full | _Work | None


def probing_record(
    instance: Instance, windows: Windows, grid: Grid, searching: float, deadline: float
) -> Record:
    """Refute the horizon of some windows.

    Parameters
    ----------
    windows : Windows
        Of the checker, on the grid ``grid``.
    searching, deadline : float
        When the search has to end, and when the record has to be written.

    Raises
    ------
    NotRefutedError
        A :class:`LateError` if more time may help.
    """
    search = _Search(instance, grid, searching, windows)
    if not search.by_trial(windows.horizon) or search.root is None:
        if search.left <= 0:
            raise LateError("does not refute it in the time limit")
        raise NotRefutedError("does not refute it")
    facts = _Traced(windows)
    claims = _Trimming(search.units, deadline).claims(facts, search.root, _Needs(windows))
    return _limited({"claims": claims})


def assignment_record(instance: Instance, windows: Windows, grid: Grid, deadline: float) -> Record:
    """Refute the horizon of some windows by assignments of whole units.

    Parameters
    ----------
    windows : Windows
        Of the checker, on the grid ``grid``.

    Raises
    ------
    NotRefutedError
        A :class:`LateError` if more time may help.
    """
    search = _Search(instance, grid, deadline, windows)
    tree = refutation(instance, grid, search.start, windows.horizon, deadline)
    if tree is None:
        if search.left <= 0:
            raise LateError("assignments do not refute it in the time limit")
        raise NotRefutedError("assignments do not refute it")
    return _limited({"claims": search.claims(tree)})


def _limited(record: Record) -> Record:
    """Return a record if it fits into a certificate."""
    size = len(json.dumps(record))
    if size > MAX_CERTIFICATE - _RESERVE:
        raise NotRefutedError(f"its record takes {size} bytes")
    return record


class _Recorded(Sharpening):
    """Sharpening that notes what it does.

    Attributes
    ----------
    log : list of events
    end : _Full, _Work or None
        What contradicts, unless some unit has no device left.
    """

    def __init__(self, instance: Instance, grid: Grid, window: Known, limit: int) -> None:
        super().__init__(instance, grid, window, limit)
        self.log: list[_Event] = []
        self.end: _End = None
        #: The sweep that is under way, and the times before it.
        self._before: tuple[Any, NDArray[np.int64]] | None = None

    def only(self, unit: int, device: int) -> _Recorded:
        copy = super().only(unit, device)
        assert isinstance(copy, _Recorded)
        copy.log, copy.end = [], None
        return copy

    def exclude(self, unit: int, device: int, trial: Sharpening) -> None:
        super().exclude(unit, device, trial)
        assert isinstance(trial, _Recorded)
        if trial.feasible and trial.end is None:
            trial.end = _Full(int((must_run_on(trial) > self.limit).argmax()))
        trial.forget()
        self.log.append(_Not(unit, device, trial))

    def forget(self) -> None:
        """Drop everything but the log."""
        nothing = np.empty((0, 0), dtype=np.int64)
        self.head = self.tail = nothing
        self._passes = {}

    def _sweep(self, side: Any, deadline: float, *, brief: bool) -> int:
        self._before = side, (self.tail if side.backwards else self.head).copy()
        changed = super()._sweep(side, deadline, brief=brief)
        self._before = None
        return changed

    def settle(self) -> None:
        """Write down what a sweep has raised, before devices that it has excluded are forgotten."""
        if self._before is not None:
            side, before = self._before
            times = self.tail if side.backwards else self.head
            place = inverse(side.order)
            v, d = np.nonzero(times > before)
            for i in place[v].argsort(kind="stable").tolist():
                at = int(v[i]), int(d[i])
                self.log.append(_Time(side.backwards, *at, int(times[at])))
        super().settle()

    def _merge(self, pairs: NDArray[np.int32]) -> int:
        # The checker does not know of units that become one.
        return 0

    def _one_after_the_other(self) -> int:
        before = self.possible.copy()
        dropped = super()._one_after_the_other()
        for unit, d in np.argwhere(before & ~self.possible).tolist():
            self.log.append(_Alone(unit, d))
        return dropped


class _Search(Refutation):
    """Refutation of a length from the windows of the checker on, written down.

    Attributes
    ----------
    units : list of int
        The checker's number of each unit.
    start : Windows
        Those windows.
    root : _Recorded, optional
        Where it began.
    """

    def __init__(self, instance: Instance, grid: Grid, deadline: float, windows: Windows) -> None:
        super().__init__(instance, grid, deadline)
        self.units = [windows.unit[members[0]] for members in instance.units]
        self.root: _Recorded | None = None
        possible = np.zeros((len(self.units), instance.devices), dtype=np.bool_)
        for row, unit in zip(possible, self.units, strict=True):
            row[windows.possible[unit]] = True
        there = possible[instance.unit_of]
        head, tail = (
            np.where(there, np.array(rows, dtype=np.int64), NEVER)
            for rows in (windows.head, windows.tail)
        )
        self.start = Known(head, tail, np.zeros(possible.shape, dtype=np.int64), possible)
        # Both count memory in whole units, but not in the same ones.
        need, _ = whole_memory(instance, relax=True)
        theirs = windows.problem.whole * sum(windows.problem.need)
        self._unit = Fraction(int(need.sum()), max(1, int(theirs)))

    def _begin(self, window: Known, limit: int) -> Sharpening:
        self.root = _Recorded(self.instance, self.grid, self.start, limit)
        return self.root

    def claims(self, tree: Tree) -> list[Claim]:
        """Return the claims of a proof by assignments."""
        claims: list[Claim] = [
            ["not", self.units[unit], d, self.claims(why)] for unit, d, why in tree.excluded
        ]
        if tree.end is not None:
            claims.append(["work", *self._scaled(tree.end.rows, tree.end.memory)])
        return claims

    def _scaled(
        self, rows: Iterable[tuple[int, int, int, int]], memory: dict[int, int]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return rows and prices of memory by the units of the checker."""
        if not memory:
            return [[*row] for row in rows], []
        up, down = self._unit.numerator, self._unit.denominator
        prices = [[d, mu * up] for d, mu in memory.items()]
        return [[d, begin, end, y * down] for d, begin, end, y in rows], prices

    def _overfull(self, work: Sharpening, limit: int) -> bool:
        assert isinstance(work, _Recorded)
        full = must_run_on(work) > limit
        if full.any():
            work.end = _Full(int(full.argmax()))
            return True
        found = overload(self.instance, self.grid, work.windows(), limit, seconds=self.left)
        if found is None:
            return False
        rows = found.rows
        table = (rows.device, rows.begin, rows.begin + rows.room, found.weight)
        columns = (column.tolist() for column in table)
        work.end = _Work(*self._scaled(zip(*columns, strict=True), found.memory))
        return True


class _Traced(Windows):
    """Windows of the checker whose changes can be undone."""

    def __init__(self, windows: Windows) -> None:
        self.__dict__.update(windows.__dict__)
        self.head, self.tail = windows.head[:], windows.tail[:]
        self.possible = windows.possible[:]
        self.trail: list[tuple[list[list[int]], int, list[int]]] = []

    def assuming(self, unit: int, d: int) -> Self:
        trial = super().assuming(unit, d)
        assert isinstance(trial, type(self))
        trial.trail = []
        return trial

    def exclude(self, unit: int, d: int) -> None:
        self.trail.append((self.possible, unit, self.possible[unit]))
        super().exclude(unit, d)

    def raise_to(self, backwards: bool, v: int, d: int, t: int) -> None:
        times = self.times(backwards)
        self.trail.append((times, v, times[v]))
        super().raise_to(backwards, v, d, t)

    def undo(self, length: int) -> None:
        """Undo all changes but the first ``length``."""
        while len(self.trail) > length:
            rows, i, row = self.trail.pop()
            rows[i] = row
        self.feasible = all(self.possible)


class _Needs:
    """The heads, tails and exclusions that a proof needs, as far as its beginning lacks them.

    Attributes
    ----------
    base : Windows
        What is known in the beginning, and by assumption.
    times : dict
        Least value by direction, vertex and device.
    out : set of (int, int)
        Unit and device.
    """

    def __init__(self, base: Windows) -> None:
        self.base = base
        self.times: dict[tuple[bool, int, int], int] = {}
        self.out: set[tuple[int, int]] = set()

    def time(self, backwards: bool, v: int, d: int, t: int) -> None:
        """Need a head or tail of at least ``t``."""
        if t > self.base.times(backwards)[v][d]:
            key = backwards, v, d
            self.times[key] = max(t, self.times.get(key, 0))

    def not_on(self, unit: int, d: int) -> None:
        """Need a unit not to be on a device."""
        if d in self.base.possible[unit]:
            self.out.add((unit, d))

    def add(self, other: _Needs) -> None:
        """Need what another proof needs."""
        for key, t in other.times.items():
            self.time(*key, t)
        for pair in other.out:
            self.not_on(*pair)


class _Trimming:
    """The choice of claims from what was written down."""

    def __init__(self, units: list[int], deadline: float) -> None:
        self.units, self.deadline = units, deadline

    def claims(self, facts: _Traced, work: _Recorded, needs: _Needs) -> list[Claim]:
        """Return claims that leave nothing possible, and need what they follow from."""
        events = []
        for event in work.log:
            mark = len(facts.trail)
            if facts.feasible and self._apply(facts, event):
                events.append((mark, event))
        claims: list[Claim] = self._contradiction(facts, work.end, needs)
        for mark, event in reversed(events):
            if clock.now() > self.deadline:
                raise LateError("no time left to write its proof")
            facts.undo(mark)
            claims += self._kept(facts, event, needs)
        return _joined(reversed(claims))

    def _apply(self, facts: _Traced, event: _Event) -> bool:
        """Do what was done; return whether that changes anything."""
        if isinstance(event, _Alone | _Not):
            unit = self.units[event.unit]
            known = event.d in facts.possible[unit]
            facts.exclude(unit, event.d)
            return known
        backwards, v, d, t = event
        unit = facts.unit[v]
        if d not in facts.possible[unit]:
            return False
        if t >= NEVER:
            # Its unit may be excluded for another member's sake.
            latest = facts.horizon - facts.time(v, d) - facts.times(not backwards)[v][d]
            if len(facts.members[unit]) > 1 and not waits(facts, backwards, v, d, latest + 1):
                return False
            facts.exclude(unit, d)
            return True
        if t <= facts.times(backwards)[v][d]:
            return False
        facts.raise_to(backwards, v, d, t)
        return True

    def _contradiction(self, facts: _Traced, end: _End, needs: _Needs) -> list[Claim]:
        """Need what contradicts in the end; return the claim of it, if it is one."""
        k = len(facts.problem.devices)
        if not facts.feasible:
            unit = facts.possible.index([])
            for d in range(k):
                needs.not_on(unit, d)
            return []
        if isinstance(end, _Full):
            there = [v for v, unit in enumerate(facts.unit) if facts.possible[unit] == [end.d]]
            chosen = _overload(facts, end.d, there, needs)
            for v in chosen:
                for e in range(k):
                    if e != end.d:
                        needs.not_on(facts.unit[v], e)
            return [["full", end.d, chosen]]
        if end is None or not too_much_work(facts, *end):
            raise NotRefutedError("what refutes it does not follow for the checker")
        _need_work(facts, end, needs)
        return [["work", *end]]

    def _kept(self, facts: _Traced, event: _Event, needs: _Needs) -> list[Claim]:
        """Return the claim of a step if it is needed, and need what explains it."""
        if isinstance(event, _Time):
            return self._time(facts, event, needs)
        unit, d = self.units[event.unit], event.d
        if (unit, d) not in needs.out:
            return []
        needs.out.remove((unit, d))
        if isinstance(event, _Alone):
            chosen = _overload(facts, d, facts.members[unit], needs)
            return [["not", unit, d, [["full", d, chosen]]]]
        inner = _Needs(needs.base.assuming(unit, d))
        why = self.claims(facts.assuming(unit, d), event.trial, inner)
        needs.add(inner)
        return [["not", unit, d, why]]

    def _time(self, facts: _Traced, event: _Time, needs: _Needs) -> list[Claim]:
        backwards, v, d, t = event
        unit = facts.unit[v]
        later = facts.times(not backwards)[v][d]
        latest = facts.horizon - facts.time(v, d) - later
        if t > latest:
            if (unit, d) not in needs.out:
                return []
            needs.out.remove((unit, d))
            needs.time(not backwards, v, d, later)
            t = latest + 1
        else:
            t = needs.times.get((backwards, v, d), 0)
            if t <= facts.times(backwards)[v][d]:
                return []
            del needs.times[backwards, v, d]
        _Explanation(facts, backwards, v, d, t, needs).explain()
        return [["tail" if backwards else "head", v, d, t]]


def _joined(claims: Iterable[Claim]) -> list[Claim]:
    """Write successive heads, or tails, as one claim."""
    joined: list[Claim] = []
    for claim in claims:
        if joined and claim[0] in ("head", "tail") and claim[0] == joined[-1][0]:
            joined[-1] += claim[1:]
        else:
            joined.append(claim)
    return joined


def _overload(facts: Windows, d: int, vertices: list[int], needs: _Needs) -> list[int]:
    """Return vertices that do not fit on a device one after another, and need their times."""
    jobs = [(facts.head[v][d], facts.time(v, d), facts.tail[v][d]) for v in vertices]
    subset = _fewest(jobs, facts.horizon + 1)
    if subset is None:
        raise NotRefutedError("what fills a device does not follow for the checker")
    begin, after, chosen = subset
    for i in chosen:
        needs.time(False, vertices[i], d, begin)
        needs.time(True, vertices[i], d, after)
    return [vertices[i] for i in chosen]


def _fewest(jobs: list[tuple[int, int, int]], t: int) -> tuple[int, int, list[int]] | None:
    """Return few jobs with least head + run times + least tail of ``t`` or more.

    Also return a least head and tail that suffice; ``None`` if there are no such jobs.
    """
    best: tuple[int, int, list[int]] | None = None
    falling = sorted(range(len(jobs)), key=lambda i: -jobs[i][2])
    for begin in sorted({head for head, _, _ in jobs}, reverse=True):
        total, chosen = 0, []
        for i in falling:
            if jobs[i][0] < begin:
                continue
            total += jobs[i][1]
            chosen.append(i)
            if begin + total + jobs[i][2] >= t:
                if best is None or len(chosen) < len(best[2]):
                    best = max(0, t - total - jobs[i][2]), jobs[i][2], chosen[:]
                break
    return best


def _weight(windows: Windows, work: _Work, unit: int, d: int) -> int:
    """Return what a unit weighs on a device; see ``too_much_work`` of the checker."""
    total = 0
    for device, begin, end, y in work.rows:
        for v in windows.members[unit] if device == d else ():
            total += y * work_inside(windows, v, d, begin, end)
    prices = sum(mu for device, mu in work.prices if device == d)
    return total + prices * int(windows.problem.whole * windows.problem.need[unit])


def _need_work(facts: Windows, work: _Work, needs: _Needs) -> None:
    """Need the heads and tails, and the exclusions, from which too much work follows."""
    for unit, members in enumerate(facts.members):
        least = min(_weight(facts, work, unit, d) for d in facts.possible[unit])
        for d in needs.base.possible[unit]:
            if _weight(needs.base, work, unit, d) >= least:
                continue
            if d not in facts.possible[unit]:
                needs.not_on(unit, d)
                continue
            for v in members:
                needs.time(False, v, d, facts.head[v][d])
                needs.time(True, v, d, facts.tail[v][d])


class _Explanation:
    """Why a vertex does not start on a device before a time; see ``waits`` of the checker.

    The checker assumes that it does, and goes from the vertex to its ancestors. Goals are that a
    vertex cannot be on a device then, or that some time passes from its end there to the start.
    They lead from ancestors to what is nearer to the vertex, so those farthest are explained first.
    """

    def __init__(
        self, facts: Windows, backwards: bool, v: int, d: int, t: int, needs: _Needs
    ) -> None:
        self.facts, self.backwards, self.v, self.d, self.t = facts, backwards, v, d, t
        self.needs = needs
        problem, at = facts.problem, facts.problem.order.index(v)
        self.order, self.inputs = problem.order[at::-1], problem.inputs
        if backwards:
            self.order, self.inputs = problem.order[at:], problem.outputs
        self.crossing = facts.arrival if backwards else facts.departure
        self.never = facts.horizon + 1
        self.after: dict[int, list[tuple[int, int]]] = {v: []}
        #: From the start, and from the end, of a vertex on each device to the start of ``v``.
        self.passed: dict[int, dict[int, int]] = {v: {d: 0}}
        self.rest: dict[int, dict[int, int]] = {}
        #: Where each unit can be, and the vertex for whose sake it cannot be on a device.
        self.left = {facts.unit[v]: [d]}
        self.because: dict[tuple[int, int], int] = {}
        #: The goals: devices that a vertex cannot be on, and times by device.
        self.out: dict[int, set[int]] = {}
        self.least: dict[int, dict[int, int]] = {}
        self.nowhere = self._reach()

    def _reach(self) -> int | None:
        """Go from the vertex to its ancestors; return the first that cannot be anywhere."""
        facts, unit = self.facts, self.facts.unit
        head = facts.times(self.backwards)
        for x in self.order:
            if x not in self.after:
                continue
            for w, tensor in self.inputs[x]:
                self.after.setdefault(w, []).append((x, tensor))
            if x == self.v:
                continue
            here = self.left.get(unit[x], facts.possible[unit[x]])
            self.rest[x] = {e: max(self._ways(x, e)) for e in here}
            self.passed[x] = {}
            for e, least in self.rest[x].items():
                if head[x][e] + facts.time(x, e) + least < self.t:
                    self.passed[x][e] = facts.time(x, e) + least
                else:
                    self.because[unit[x], e] = x
            self.left[unit[x]] = list(self.passed[x])
            if not self.passed[x]:
                return x
        return None

    def _ways(self, x: int, e: int) -> list[int]:
        """Return how much passes from the end of a vertex on a device, by each edge."""
        return [self._way(x, e, y, tensor) for y, tensor in self.after[x]]

    def _way(self, x: int, e: int, y: int, tensor: int) -> int:
        if self.facts.unit[x] == self.facts.unit[y]:
            return self.passed[y].get(e, self.never)
        times = self.crossing[tensor][e]
        return min(self.never, *(times[f] + time for f, time in self.passed[y].items()))

    def explain(self) -> None:
        """Need what the claim follows from."""
        facts, unit, d = self.facts, self.facts.unit, self.d
        head = facts.times(self.backwards)
        if self.nowhere is not None:
            self._only(self.nowhere, set())
        else:
            jobs = [w for w in self.rest if self.left[unit[w]] == [d]]
            times = [(head[w][d], facts.time(w, d), self.rest[w][d]) for w in jobs]
            subset = _fewest(times, self.t)
            if subset is None:
                raise NotRefutedError("a head or tail does not follow for the checker")
            begin, after, chosen = subset
            for i in chosen:
                self._only(jobs[i], {d})
                self.needs.time(self.backwards, jobs[i], d, begin)
                self._passes(jobs[i], d, after)
        for x in reversed(self.rest):
            for e in self.out.get(x, ()):
                self.needs.time(self.backwards, x, e, head[x][e])
                self._passes(x, e, self.t - head[x][e] - facts.time(x, e))
            for e, time in self.least.get(x, {}).items():
                if time > 0:
                    self._edge(x, e, time)

    def _only(self, x: int, devices: set[int]) -> None:
        """Need that a unit is on no other than some devices."""
        unit = self.facts.unit[x]
        for e in set(self.needs.base.possible[unit]) - devices:
            self._not_on(unit, e)

    def _not_on(self, unit: int, e: int) -> None:
        if (unit, e) in self.because:
            self.out.setdefault(self.because[unit, e], set()).add(e)
        elif unit != self.facts.unit[self.v]:
            self.needs.not_on(unit, e)

    def _passes(self, x: int, e: int, time: int) -> None:
        goals = self.least.setdefault(x, {})
        goals[e] = max(time, goals.get(e, 0))

    def _edge(self, x: int, e: int, time: int) -> None:
        """Need that so much passes, by the edge by which most does."""
        unit = self.facts.unit
        y, tensor = max(self.after[x], key=lambda edge: self._way(x, e, *edge))
        times = self.crossing[tensor][e]
        same = unit[y] == unit[x]
        for f in [e] if same else self.needs.base.possible[unit[y]]:
            if f not in self.passed[y]:
                self._not_on(unit[y], f)
            elif y != self.v:
                left = time - self.facts.time(y, f) - (0 if same else times[f])
                self._passes(y, f, left)

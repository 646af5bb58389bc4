"""Records of tier ``probing``: destructive bounds, step by step.

:mod:`optpart.bounds.destructive` refutes a length by raising heads and tails and by excluding
devices on trial. What it does is written down, and then read backwards: only what the contradiction
at the end needs is kept, and only as much of every head and tail. A step that is kept is explained
by earlier heads, tails and exclusions, which thereby become needed in turn.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from optpart import clock
from optpart.bounds.destructive import Refutation
from optpart.bounds.energy import overload
from optpart.bounds.one_machine import Sharpening, must_run_on
from optpart.bounds.windows import NEVER
from optpart.bounds.windows import Windows as Known
from optpart.certify.arithmetic import Record
from optpart.certify.check import (
    MAX_CERTIFICATE,
    Ancestry,
    Facts,
    Windows,
    too_much_work,
    weights,
)
from optpart.kernels.compiled import whole_memory
from optpart.kernels.ticks import Grid
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
    instance: Instance,
    windows: Windows,
    grid: Grid,
    by_intervals: Record,
    searching: float,
    deadline: float,
) -> Record:
    """Refute the horizon of some windows.

    Parameters
    ----------
    windows : Windows
        Of the checker, on the grid ``grid``.
    by_intervals : dict
        A record of tier ``intervals``, which raises heads and tails first.
    searching, deadline : float
        When the search has to end, and when the record has to be written.

    Raises
    ------
    NotRefutedError
        A :class:`LateError` if more time may help.
    """
    record = {part: by_intervals.get(part, []) for part in ("steps", "backwards")}
    facts = _Traced.after_intervals(windows, record)
    units = [windows.grid.problem.unit[members[0]] for members in instance.units]
    search = _Search(instance, grid, searching, facts, units)
    limit = windows.grid.horizon
    if not search.by_trial(limit) or search.root is None:
        if search.left <= 0:
            raise LateError("does not refute it in the time limit")
        raise NotRefutedError("does not refute it")
    needs = _Needs(facts.copy())
    record["claims"] = _Trimming(units, deadline).claims(facts, search.root, needs)
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
            place = np.empty(len(times), dtype=np.int64)
            place[side.order] = np.arange(len(times))
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
    """Refutation of a length from the facts of the checker on, written down.

    Attributes
    ----------
    root : _Recorded, optional
        Where it began.
    """

    def __init__(
        self, instance: Instance, grid: Grid, deadline: float, facts: Facts, units: list[int]
    ) -> None:
        super().__init__(instance, grid, deadline)
        self.root: _Recorded | None = None
        possible = np.array([[not x for x in facts.free[unit]] for unit in units], dtype=np.bool_)
        there = possible[instance.unit_of]
        head, tail = (
            np.where(there, np.array(rows, dtype=np.int64), NEVER) for rows in facts.known
        )
        self._start = Known(head, tail, np.zeros(possible.shape, dtype=np.int64), possible)
        # Both count memory in whole units, but not in the same ones.
        need, _ = whole_memory(instance, relax=True)
        self._unit = Fraction(int(need.sum()), max(1, sum(facts.need)))

    def _begin(self, window: Known, limit: int) -> Sharpening:
        self.root = _Recorded(self.instance, self.grid, self._start, limit)
        return self.root

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
        ends = rows.begin + rows.room
        table = (rows.device, rows.begin, ends, found.weight)
        work.end = _Work(
            [
                [int(d), int(begin), int(end), int(y) * self._unit.denominator]
                for d, begin, end, y in zip(*table, strict=True)
            ],
            [[d, mu * self._unit.numerator] for d, mu in found.memory.items()],
        )
        return True


class _Traced(Facts):
    """Facts of the checker whose changes can be undone.

    Attributes
    ----------
    trail : list of callables, optional
        They undo the changes, the last one first; ``None`` to forget them.
    """

    trail: list[Callable[[], None]] | None = None

    def copy(self) -> Self:
        facts = super().copy()
        facts.trail = None
        return facts

    def undo(self, length: int) -> None:
        """Undo all changes but the first ``length``."""
        assert self.trail is not None
        while len(self.trail) > length:
            self.trail.pop()()

    def spend(self, steps: int) -> None:
        """Count nothing."""

    def hold(self, size: int) -> None:
        """Count nothing."""

    def keep(self, unit: int, devices: list[int]) -> None:
        possible, free, refuted = self.possible[unit], self.free[unit], self.refuted

        def undo() -> None:
            self.possible[unit], self.free[unit], self.refuted = possible, free, refuted

        if self.trail is not None:
            self.trail.append(undo)
        super().keep(unit, devices)

    def _set(self, backwards: bool, v: int, row: list[int]) -> None:
        known, ended = self.known[backwards][v], self.ended[backwards][v]

        def undo() -> None:
            self.known[backwards][v], self.ended[backwards][v] = known, ended

        if self.trail is not None:
            self.trail.append(undo)
        super()._set(backwards, v, row)


class _Needs:
    """The heads, tails and exclusions that a proof needs, as far as its beginning lacks them.

    Attributes
    ----------
    base : Facts
        What is known in the beginning, and by assumption.
    times : dict
        Least value by direction, vertex and device.
    out : set of (int, int)
        Unit and device.
    """

    def __init__(self, base: Facts) -> None:
        self.base = base
        self.times: dict[tuple[bool, int, int], int] = {}
        self.out: set[tuple[int, int]] = set()

    def lacks(self, backwards: bool, v: int, d: int, t: int) -> bool:
        """Return whether a time is not known from the beginning."""
        return t > self.base.known[backwards][v][d]

    def time(self, backwards: bool, v: int, d: int, t: int) -> None:
        """Need a head or tail of at least ``t``."""
        if self.lacks(backwards, v, d, t):
            key = backwards, v, d
            self.times[key] = max(t, self.times.get(key, 0))

    def not_on(self, unit: int, d: int) -> None:
        """Need a unit not to be on a device."""
        if not self.base.free[unit][d]:
            self.out.add((unit, d))

    def add(self, other: _Needs) -> None:
        """Need what another proof needs."""
        for key, t in other.times.items():
            self.time(*key, t)
        for pair in other.out:
            self.not_on(*pair)

    def drop(self, unit: int, d: int) -> None:
        """Forget what is needed of a unit on a device."""
        self.out.discard((unit, d))
        for v in self.base.members[unit]:
            for backwards in (False, True):
                self.times.pop((backwards, v, d), None)

    def excluded(self, unit: int, d: int, before: Facts) -> bool:
        """Return whether anything needs an exclusion, given what is known before."""
        return (unit, d) in self.out or any(
            self.times.get((backwards, v, d), 0) > before.known[backwards][v][d]
            for v in self.base.members[unit]
            for backwards in (False, True)
        )


class _Trimming:
    """The choice of claims from what was written down."""

    def __init__(self, units: list[int], deadline: float) -> None:
        self.units, self.deadline = units, deadline

    def claims(self, facts: _Traced, work: _Recorded, needs: _Needs) -> list[Claim]:
        """Return claims that leave nothing possible, and need what they follow from."""
        facts.trail = []
        events = []
        for event in work.log:
            mark = len(facts.trail)
            if not facts.refuted and self._apply(facts, event):
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
            latest = facts.horizon - facts.run[v][d] - facts.known[not backwards][v][d]
            # Its unit may be excluded for another member's sake.
            if len(facts.members[unit]) > 1 and not Ancestry(facts, backwards, v, d).proves(
                latest + 1
            ):
                return False
            facts.exclude(unit, d)
            return True
        if t <= facts.known[backwards][v][d]:
            return False
        facts.raise_to(backwards, v, d, t)
        return True

    def _contradiction(self, facts: _Traced, end: _End, needs: _Needs) -> list[Claim]:
        """Need what contradicts in the end; return the claim of it, if it is one."""
        k = len(facts.run[0])
        if facts.refuted:
            unit = facts.possible.index([])
            for d in range(k):
                needs.not_on(unit, d)
            return []
        if isinstance(end, _Full):
            there = [v for v, unit in enumerate(facts.unit) if facts.possible[unit] == [end.d]]
            chosen = _crowd(facts, end.d, there, needs)
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
        if not needs.excluded(unit, d, facts):
            return []
        needs.drop(unit, d)
        if isinstance(event, _Alone):
            chosen = _crowd(facts, d, facts.members[unit], needs)
            return [["not", unit, d, [["full", d, chosen]]]]
        trial = facts.assume(unit, d)
        inner = _Needs(needs.base.assume(unit, d))
        why = self.claims(trial, event.trial, inner)
        needs.add(inner)
        return [["not", unit, d, why]]

    def _time(self, facts: _Traced, event: _Time, needs: _Needs) -> list[Claim]:
        backwards, v, d, t = event
        unit = facts.unit[v]
        later = facts.known[not backwards][v][d]
        latest = facts.horizon - facts.run[v][d] - later
        if t > latest:
            if not needs.excluded(unit, d, facts):
                return []
            needs.drop(unit, d)
            needs.time(not backwards, v, d, later)
            t = latest + 1
        else:
            t = needs.times.get((backwards, v, d), 0)
            if t <= facts.known[backwards][v][d]:
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


def _crowd(facts: Facts, d: int, vertices: list[int], needs: _Needs) -> list[int]:
    """Return vertices that do not fit on a device one after another, and need their times."""
    jobs = [(facts.known[False][v][d], facts.run[v][d], facts.known[True][v][d]) for v in vertices]
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


def _need_work(facts: Facts, work: _Work, needs: _Needs) -> None:
    """Need the heads and tails, and the exclusions, from which too much work follows."""
    k = len(facts.run[0])
    now, before = weights(facts, *work), weights(needs.base, *work)
    for unit, members in enumerate(facts.members):
        least = min(now[unit][d] for d in facts.possible[unit])
        for d in range(k):
            if needs.base.free[unit][d] or before[unit][d] >= least:
                continue
            if facts.free[unit][d]:
                needs.not_on(unit, d)
            else:
                for v in members:
                    needs.time(False, v, d, facts.known[False][v][d])
                    needs.time(True, v, d, facts.known[True][v][d])


class _Edge(NamedTuple):
    """An edge to a vertex, and the times of its tensor to ``d`` from elsewhere, and back."""

    to: int
    arriving: list[int]
    leaving: list[int]


class _Explanation:
    """Why a vertex does not start on a device before a time; see :class:`Ancestry`.

    Goals are that values of ancestors are at least so much. Earlier ancestors are explained first,
    so that the goals of later ones are complete when it is their turn.
    """

    def __init__(
        self, facts: Facts, backwards: bool, v: int, d: int, t: int, needs: _Needs
    ) -> None:
        self.facts, self.backwards, self.v, self.d, self.t = facts, backwards, v, d, t
        self.needs = needs
        self.ancestry = Ancestry(facts, backwards, v, d)
        self.side = facts.sides[backwards]
        self.bound: dict[int, int] = {}
        self.if_here: dict[int, int] = {}
        self.if_away: dict[int, int] = {}

    def explain(self) -> None:
        """Need what the claim follows from."""
        ancestry, facts = self.ancestry, self.facts
        self._begin()
        later: dict[int, list[_Edge]] = defaultdict(list)
        for y in ancestry.here:
            for w, arriving, leaving in self.side.inputs[y]:
                later[w].append(_Edge(y, arriving[self.d], leaving[self.d]))
        for x in sorted(ancestry.here, key=self.side.position.__getitem__):
            if x == self.v:
                break
            if facts.unit[x] != facts.unit[self.v] and x in self.bound:
                self._bound(x, self.bound[x], later[x])
            if self.if_here.get(x, 0) > 0:
                self._if_here(x, self.if_here[x], later[x])
            if self.if_away.get(x, 0) > 0:
                self._if_away(x, self.if_away[x], later[x])

    def _begin(self) -> None:
        facts, d, ancestry = self.facts, self.d, self.ancestry
        jobs = ancestry.forced(self.t)
        # What was excluded from the beginning needs no explanation.
        wrong = sorted(
            (w for w in jobs if facts.free[facts.unit[w]][d]),
            key=lambda w: (not self.needs.base.free[facts.unit[w]][d], -self.side.position[w]),
        )
        if wrong:
            self._forced(wrong[0])
            self.needs.not_on(facts.unit[wrong[0]], d)
            return
        head = facts.known[self.backwards]
        numbers = [(head[w][d], facts.run[w][d], ancestry.if_here[w]) for w in jobs]
        subset = _fewest(numbers, self.t)
        if subset is None:
            raise NotRefutedError("a head or tail does not follow for the checker")
        begin, after, chosen = subset
        for i in chosen:
            self._forced(jobs[i])
            self.needs.time(self.backwards, jobs[i], d, begin)
            _raise(self.if_here, jobs[i], after)

    def _forced(self, w: int) -> None:
        """Need that a vertex, or one colocated with it, must be here."""
        bound, unit = self.ancestry.bound, self.facts.unit
        if bound[w] < self.t:
            w = next(m for m in self.facts.members[unit[w]] if bound.get(m, 0) >= self.t)
        _raise(self.bound, w, self.t)

    def _here(self, x: int, t: int) -> None:
        """Need that from the start of ``x``, if it is here, ``t`` passes."""
        if x == self.v or t <= 0:
            return
        facts, unit = self.facts, self.facts.unit[x]
        left = t - facts.run[x][self.d]
        if facts.free[unit][self.d] and (
            self.needs.base.free[unit][self.d] or self.ancestry.if_here[x] < left
        ):
            self.needs.not_on(unit, self.d)
        else:
            _raise(self.if_here, x, left)

    def _there(self, x: int, t: int) -> None:
        """Need that from the start of ``x``, if it is away, ``t`` passes."""
        facts, ancestry = self.facts, self.ancestry
        if t <= 0 or facts.unit[x] == facts.unit[self.v]:
            return
        away = ancestry.if_away[x]
        if ancestry.fastest(x) + away < t:
            _raise(self.bound, x, facts.never)
            return
        _raise(self.if_away, x, t - self._other(x, facts.run[x], t - away))

    def _other(self, x: int, times: list[int], least: int) -> int:
        """Exclude ``x`` from other devices with a time below ``least``; return the least left."""
        unit = self.facts.unit[x]
        then = self.facts.never
        for e, time in enumerate(times):
            if e == self.d:
                continue
            if time < least:
                self.needs.not_on(unit, e)
            elif not self.needs.base.free[unit][e]:
                then = min(then, time)
        return then

    def _if_here(self, x: int, t: int, later: list[_Edge]) -> None:
        facts, ancestry = self.facts, self.ancestry

        def reached(edge: _Edge) -> int:
            y = edge.to
            if facts.unit[x] == facts.unit[y]:
                return ancestry.here[y]
            far: int = min(map(add, facts.free[facts.unit[y]], edge.leaving))
            return min(ancestry.here[y], far + ancestry.there[y])

        best = max(later, key=reached)
        self._here(best.to, t)
        if facts.unit[x] != facts.unit[best.to]:
            far = self._other(best.to, best.leaving, t - ancestry.there[best.to])
            self._there(best.to, t - far)

    def _if_away(self, x: int, t: int, later: list[_Edge]) -> None:
        facts, ancestry = self.facts, self.ancestry

        def reached(edge: _Edge) -> int:
            y = edge.to
            if facts.unit[x] == facts.unit[y]:
                return ancestry.there[y]
            near: int = min(map(add, facts.free[facts.unit[x]], edge.arriving))
            return min(near + ancestry.here[y], ancestry.there[y])

        best = max(later, key=reached)
        self._there(best.to, t)
        if facts.unit[x] != facts.unit[best.to]:
            near = self._other(x, best.arriving, t - ancestry.here[best.to])
            self._here(best.to, t - near)

    def _bound(self, x: int, t: int, later: list[_Edge]) -> None:
        """Need that if ``x`` is away, ``v`` does not start before ``t``, in the cheapest way."""
        ancestry, facts, d = self.ancestry, self.facts, self.d
        ways: list[tuple[int, Callable[[], None]]] = []
        ended_at, away = facts.ended[self.backwards][x], ancestry.if_away[x]
        if ancestry.ended(x) + away >= t:
            nothing = [0] * len(facts.run[x])

            def ended() -> None:
                self._elsewhere(x, nothing, t - away)
                _raise(self.if_away, x, away)

            ways.append((self._lacking(x, nothing, t - away), ended))
        for y, times, _ in later:
            if facts.unit[y] == facts.unit[x]:
                if ancestry.bound[y] >= t:
                    ways.append((0, partial(_raise, self.bound, y, t)))
                continue
            if ancestry.bound[y] < t:
                continue
            here = ancestry.here[y]
            if facts.known[self.backwards][y][d] + here >= t:

                def begun(y: int = y, here: int = here) -> None:
                    self.needs.time(self.backwards, y, d, t - here)
                    self._here(y, here)
                    _raise(self.bound, y, t)

                ways.append((int(self.needs.lacks(self.backwards, y, d, t - here)), begun))
            if min(map(add, ended_at, times)) + here >= t:

                def arrived(y: int = y, here: int = here, times: list[int] = times) -> None:
                    self._elsewhere(x, times, t - here)
                    self._here(y, here)
                    _raise(self.bound, y, t)

                ways.append((self._lacking(x, times, t - here), arrived))
        min(ways, key=lambda way: way[0])[1]()

    def _elsewhere(self, x: int, times: list[int], least: int) -> None:
        """Need that away from ``d``, ``x`` ends so late that with some times, it is ``least``."""
        for e, (run, time) in enumerate(zip(self.facts.run[x], times, strict=True)):
            if e != self.d:
                self.needs.time(self.backwards, x, e, least - run - time)

    def _lacking(self, x: int, times: list[int], least: int) -> int:
        """Return how many of these heads are not known from the beginning."""
        return sum(
            self.needs.lacks(self.backwards, x, e, least - run - time)
            for e, (run, time) in enumerate(zip(self.facts.run[x], times, strict=True))
            if e != self.d
        )


def _raise(goals: dict[int, int], x: int, t: int) -> None:
    goals[x] = max(t, goals.get(x, 0))

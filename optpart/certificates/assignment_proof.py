"""The proof of assignments as sums of rows.

A record of tier ``probing`` in which there are only ``not`` and ``work`` says where units are, and
nothing else. So its variables are places, and its rows say that every unit has one of its devices,
and that intervals of devices, and their memory, have no more room than they have. A claim ``work``
adds rows up until only places are left that an assumption or a claim excludes: one of these is
taken, a clause. Its places that a claim excludes go away with the clause of the claim; those that
an assumption excludes are exchanged for its opposite once the claim that assumes it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from optpart.certificates.check import Windows, work_inside
from optpart.certificates.cutting_planes import Clause, Conditional, Script, Summand, Terms, add

#: A unit on a device.
_Place = tuple[int, int]


class UnlikeAssignmentsError(Exception):
    """The record has claims about more than places, or about a unit that is assumed there."""


def refutation(windows: Windows, claims: list[Any]) -> AssignmentProof:
    """Return the proof of claims that the judge accepts.

    Raises
    ------
    UnlikeAssignmentsError
    TooLargeError
    """
    if not windows.feasible:
        raise UnlikeAssignmentsError("paths suffice")
    left = copy(windows)
    left.possible = windows.possible[:]
    claims = _reached(left, claims)
    proof = AssignmentProof(windows, claims)
    proof.script.end(proof.follow(claims, {}, {}))
    return proof


def _reached(windows: Windows, claims: list[Any]) -> list[Any]:
    """Return the claims that the judge looks at, and that say anything; there may be others."""
    reached: list[Any] = []
    for kind, *rest in claims:
        if not windows.feasible or (reached and reached[-1][0] == "work"):
            break
        if kind == "not":
            unit, d, why = rest
            if d in windows.possible[unit]:
                reached.append(["not", unit, d, _reached(windows.assuming(unit, d), why)])
                windows.exclude(unit, d)
        elif kind == "work":
            reached.append([kind, *rest])
        else:
            raise UnlikeAssignmentsError(kind)
    return reached


class AssignmentProof:
    """Rows about the places of units, and a proof that no placement satisfies them.

    Attributes
    ----------
    script : Script
        Rows and proof.
    said : list of str
        What each variable says.
    """

    def __init__(self, windows: Windows, claims: list[Any]) -> None:
        self.script, self._windows = Script(), windows
        every = [(u, d) for u, on in enumerate(windows.possible) for d in on]
        self._place = {place: self.script.variable() for place in every}
        self._at = {x: place for place, x in self._place.items()}
        self.said = [f"place {u} {d} x{x}" for (u, d), x in self._place.items()]
        choices = [[self._place[u, d] for d in on] for u, on in enumerate(windows.possible)]
        self._some = [self.script.row([(1, x) for x in each], 1) for each in choices]
        self._one = [self.script.row([(-1, x) for x in each], -1) for each in choices]
        #: By interval of a device or by device: what units take, and the number of the row.
        self._limits: dict[tuple[int, ...], tuple[Terms, int]] = {}
        for key in dict.fromkeys(_keys(claims)):
            terms, room = self._interval(*key) if len(key) == 3 else self._memory(*key)
            row = self.script.row([(-a, x) for x, a in terms.items()], -room)
            self._limits[key] = terms, row

    def _interval(self, d: int, begin: int, end: int) -> tuple[Terms, int]:
        """Return the least work of units in an interval, and how long it is."""
        windows, terms = self._windows, Terms()
        for v, u in enumerate(windows.unit):
            if (u, d) in self._place:
                add(terms, {self._place[u, d]: work_inside(windows, v, d, begin, end)})
        return terms, end - begin

    def _memory(self, d: int) -> tuple[Terms, int]:
        problem = self._windows.problem
        capacity = problem.capacity[d]
        assert capacity is not None
        terms = {
            x: int(problem.whole * problem.need[u]) for (u, e), x in self._place.items() if e == d
        }
        return terms, int(problem.whole * capacity)

    def follow(
        self, claims: list[Any], assumed: dict[int, int], excluded: dict[_Place, Clause]
    ) -> Clause:
        """Return which of the places that assumptions exclude some unit has.

        Parameters
        ----------
        assumed : dict
            Devices of units.
        excluded : dict
            Places, and the clauses of the claims that exclude them.
        """
        excluded = {**excluded}
        unit = next(reversed(assumed), -1)
        for kind, *rest in [*claims, ["end"]]:
            if unit >= 0 and not self._left(unit, assumed, excluded):
                break
            if kind == "work":
                return self._without(self._overload(rest, assumed, excluded), assumed, excluded)
            unit, d, why = rest
            if unit in assumed:
                raise UnlikeAssignmentsError("assumes two places of a unit")
            clause = self.follow(why, {**assumed, unit: d}, excluded)
            others = [x for x in clause.literals if self._at[abs(x)][0] == unit]
            if not others:
                return clause  # the assumption is not needed, so nothing is possible without it
            x = self._place[unit, d]
            places = [self._place[unit, e] for e in self._windows.possible[unit]]
            rest_of: list[Summand] = [(1, f"x{y}") for y in places if y != x and y not in others]
            number = self.script.sum([(1, clause.number), (1, self._one[unit]), *rest_of], "s")
            literals = clause.literals - {*others} | {-x}
            excluded[unit, d] = Clause(number, literals)
        anywhere = frozenset(self._place[unit, e] for e in self._windows.possible[unit])
        return self._without(Clause(self._some[unit], anywhere), assumed, excluded)

    def _overload(
        self, claim: list[Any], assumed: dict[int, int], excluded: dict[_Place, Clause]
    ) -> Clause:
        """Return that some unit is where it is not, by a weighted sum of rows."""
        rows, prices = claim
        keys = [((d, begin, end), y) for d, begin, end, y in rows] + [((d,), y) for d, y in prices]
        total, cost = Conditional(self.script), Terms()
        for key, y in keys:
            terms, row = self._limits[key]
            total.add(y, row)
            add(cost, terms, y)
        for u, on in enumerate(self._windows.possible):
            left = self._left(u, assumed, excluded)
            least = min(cost.get(self._place[u, d], 0) for d in left)
            total.add(least, self._some[u])
            for d in on:
                x = self._place[u, d]
                if cost.get(x, 0) >= least:
                    total.drop({x: cost.get(x, 0) - least})
                else:
                    total.unless(x, least - cost.get(x, 0))
        return total.clause()

    def _left(
        self, unit: int, assumed: dict[int, int], excluded: dict[_Place, Clause]
    ) -> list[int]:
        """Return the devices that are left to a unit."""
        on = self._windows.possible[unit]
        return [d for d in on if assumed.get(unit, d) == d and (unit, d) not in excluded]

    def _without(
        self, clause: Clause, assumed: dict[int, int], excluded: dict[_Place, Clause]
    ) -> Clause:
        """Return a clause without the places that claims exclude."""
        more = []
        for x in sorted(clause.literals):
            u, d = self._at[x]
            if assumed.get(u, d) == d:
                more.append(excluded[u, d])
        return self.script.resolved(clause, more)


def _keys(claims: list[Any]) -> Iterator[tuple[int, ...]]:
    """Yield the intervals of devices, and the devices of which memory counts, in claims."""
    for kind, *rest in claims:
        if kind == "not":
            yield from _keys(rest[2])
        else:
            yield from ((d, begin, end) for d, begin, end, _ in rest[0])
            yield from ((d,) for d, _ in rest[1])

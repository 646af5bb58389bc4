"""The proof of tier ``path`` as clauses over places and starts, and as sums of them.

The judge computes heads and tails, and drops devices until some unit has none. Each of these steps
is a sum here. Variables say that a unit is on a device, and that a vertex starts at some tick or
later; only ticks that the proof is about have variables. With ``x[v,d]`` for the place of ``v``,

- a head is a clause ``x[v,d] → σ_v ≥ t``, and a tail a clause ``x[v,d] → ¬(σ_v ≥ t)``;
- from the heads of an input ``u`` on its ``m`` devices ``e`` follows ``x[u,e] ∧ x[v,d] → σ_v ≥ t``,
  once each. The sum of these and of ``Σ x[u,e] ≥ 1``, divided by ``m``, is the head of ``v``; a
  dropped device adds ``¬x[u,e]`` instead. Tails follow from those of a consumer in the same way;
- a device is dropped if the head there is no less than the tail permits.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count

from optpart.certificates.check import ROUNDS, Windows
from optpart.certificates.cutting_planes import Row

#: A unit on a device, ``place``; or a vertex and a tick at which it starts or later, ``start``.
Variable = tuple[str, int, int]

#: Different literals: variables, and whether they are true.
_Clause = tuple[tuple[Variable, bool], ...]


class PathProof:
    """A refutation by paths.

    Attributes
    ----------
    variables : dict from Variable to int
        Their numbers, from 1.
    rows : list of Row
        Clauses that every schedule within the horizon satisfies.
    sums : list of str
        What follows from them, one after another, as VeriPB writes it after ``pol``: the rows and
        earlier sums to add, by number; ``s`` makes no coefficient exceed the right side, and ``m
        d`` divides and rounds up. The last is ``0 ≥ 1``.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows, self._late = windows, windows.horizon + 1
        every, run = range(len(windows.problem.devices)), windows.run
        self._time = [[self._late if t is None else t for t in row] for row in run]
        self._on = [
            [d for d in every if all(run[v][d] is not None for v in unit)] or [*every]
            for unit in windows.members
        ]
        # Clauses, and sums of sums with a divisor, are numbered as they come.
        self._number = count()
        self._clauses: dict[_Clause, int] = {}
        self._derived: dict[int, tuple[list[list[int]], int]] = {}
        # The tick and the step of each vertex on each device, and the step that drops a device.
        self._head: dict[tuple[int, int], tuple[int, int]] = {}
        self._tail: dict[tuple[int, int], tuple[int, int]] = {}
        self._gone: dict[tuple[int, int], int] = {}
        self.variables: dict[Variable, int] = {}
        self.rows: list[Row] = []
        self.sums: list[str] = []
        self._write(self._refute())

    def _refute(self) -> int:
        """Return the step at which some unit has no device."""
        windows, order = self._windows, self._windows.problem.order
        for v, unit in enumerate(windows.unit):
            for d in self._on[unit]:
                late = max(0, self._late - self._time[v][d])
                end = self._clause([(self._place(v, d), False), (("start", v, late), False)])
                self._tail[v, d] = late, end
        for _ in range(ROUNDS):
            for tighten, turn in ((self._raise_head, order), (self._lower_tail, order[::-1])):
                for v in turn:
                    unit = windows.unit[v]
                    for d in self._on[unit]:
                        if (unit, d) not in self._gone:
                            tighten(v, d)
                            self._drop(v, d)
                    if all((unit, d) in self._gone for d in self._on[unit]):
                        return self._sum([*self._dropped(unit), [self._choice(unit)]])
        raise AssertionError("the judge accepts no other record")

    # --- what every schedule satisfies -----------------------------------------------------

    def _clause(self, literals: Iterable[tuple[Variable, bool]]) -> int:
        """Add a clause; that something starts at 0 or later is true, and left out."""
        kept = (x for x in literals if x[0][0] == "place" or x[0][2] > 0)
        return self._clauses.setdefault(tuple(dict.fromkeys(kept)), next(self._number))

    def _choice(self, unit: int) -> int:
        return self._clause((("place", unit, d), True) for d in self._on[unit])

    def _precedence(self, u: int, v: int, on: tuple[int, int], ticks: tuple[int, int]) -> int:
        """If ``u`` and ``v`` are there, and ``u`` starts so late, then ``v`` starts so late."""
        there = [(self._place(w, d), False) for w, d in zip((u, v), on, strict=True)]
        return self._clause(
            [*there, (("start", u, ticks[0]), False), (("start", v, ticks[1]), True)]
        )

    def _earlier(self, v: int, t: int, least: int) -> list[int]:
        """What starts at some tick or later starts at an earlier one or later."""
        pair = (("start", v, t), False), (("start", v, least), True)
        return [self._clause(pair)] if t > least else []

    # --- what follows ----------------------------------------------------------------------

    def _raise_head(self, v: int, d: int) -> None:
        best, ready, producer = self._head.get((v, d), (0, 0))[0], dict[int, int](), v
        for u, tensor in self._windows.problem.inputs[v]:
            at = {
                e: min(self._late, self._head.get((u, e), (0, 0))[0] + self._lag(u, tensor, e, d))
                for e in self._left(u, v, d)
            }
            if min(at.values()) > best:
                best, ready, producer = min(at.values()), at, u
        cases = []
        for e, t in ready.items():
            begin, *step = self._head.get((producer, e), (0,))
            row = self._precedence(producer, v, (e, d), (begin, t))
            cases.append([*step, row, *self._earlier(v, t, best)])
        if cases:
            self._head[v, d] = best, self._by_cases(v, producer, cases)

    def _lower_tail(self, v: int, d: int) -> None:
        least, lags, consumer = self._tail[v, d][0], dict[int, int](), v
        for w, tensor in self._windows.problem.outputs[v]:
            after = {e: self._lag(v, tensor, d, e) for e in self._left(w, v, d)}
            late = max(0, *(self._tail[w, e][0] - lag for e, lag in after.items()))
            if late < least:
                least, lags, consumer = late, after, w
        cases = []
        for e, lag in lags.items():
            (late, step), t = self._tail[consumer, e], min(self._late, least + lag)
            row = self._precedence(v, consumer, (d, e), (least, t))
            cases.append([row, *self._earlier(consumer, t, late), step])
        if cases:
            self._tail[v, d] = least, self._by_cases(v, consumer, cases)

    def _drop(self, v: int, d: int) -> None:
        (late, tail), (t, *head) = self._tail[v, d], self._head.get((v, d), (0,))
        if t >= late:
            contradiction = [*head, *self._earlier(v, t, late), tail] if late else [tail]
            self._gone[self._windows.unit[v], d] = self._sum([contradiction])

    def _by_cases(self, v: int, w: int, cases: list[list[int]]) -> int:
        """Add up what follows for ``v``, wherever ``w`` is."""
        unit = self._windows.unit[w]
        if unit == self._windows.unit[v]:
            return self._sum(cases)
        return self._sum([*cases, *self._dropped(unit), [self._choice(unit)]], len(cases))

    def _sum(self, sums: list[list[int]], divisor: int = 1) -> int:
        if len(sums) == len(sums[0]) == 1:
            return sums[0][0]
        step = next(self._number)
        self._derived[step] = sums, divisor
        return step

    # --- names and numbers -----------------------------------------------------------------

    def _place(self, v: int, d: int) -> Variable:
        return "place", self._windows.unit[v], d

    def _lag(self, u: int, tensor: int, d: int, e: int) -> int:
        """Return the time from the start of ``u`` on ``d`` until its tensor arrives on ``e``."""
        return self._time[u][d] + self._windows.departure[tensor][d][e]

    def _left(self, w: int, v: int, d: int) -> list[int]:
        """Return the devices that are left to ``w`` if ``v`` is on ``d``."""
        unit = self._windows.unit[w]
        if unit == self._windows.unit[v]:
            return [d]
        return [e for e in self._on[unit] if (unit, e) not in self._gone]

    def _dropped(self, unit: int) -> list[list[int]]:
        return [[self._gone[unit, d]] for d in self._on[unit] if (unit, d) in self._gone]

    def _write(self, last: int) -> None:
        """Number the rows and sums that the last step needs."""
        needed = {last}
        for step in reversed(self._derived):
            if step in needed:
                needed.update(chain(*self._derived[step][0]))
        number: dict[int, int] = {}
        for clause, step in self._clauses.items():
            if step in needed:
                number[step] = len(number) + 1
                row = {
                    self.variables.setdefault(x, len(self.variables) + 1): 1 if true else -1
                    for x, true in clause
                }
                self.rows.append((row, 1 - sum(not true for _, true in clause)))
        for step, (sums, divisor) in self._derived.items():
            if step in needed:
                number[step] = len(number) + 1
                words = []
                for i, part in enumerate(sums):
                    words += [f"{number[each]}{' +' * (j > 0)}" for j, each in enumerate(part)]
                    words += ["s"] * (len(part) > 1) + ["+"] * (i > 0)
                self.sums.append(" ".join([*words, *[f"{divisor} d"] * (divisor > 1)]))

"""Second checker of certified optima: placement and precedence, without a grid.

    python -m optpart.certify.precedence DIRECTORY [--instance FILE]

checks the same claim as :mod:`optpart.certify.check` in another way. Its formula has no times: its
variables state that a unit is on a device, or that a vertex comes before another. Time enters
through *lemmas*, clauses in the record that need not be trusted: the negation of each is assumed,
and exact arithmetic must derive a contradiction from it. An LRAT proof then shows that formula and
lemmas together have no solution.

This module needs only Python's standard library and the first checker, from which it takes the
reading of files, the check of the schedule, and the check of LRAT proofs.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations, pairwise, product

from optpart.certify.check import (
    MAX_PACKED,
    Allowance,
    Formula,
    Problem,
    RejectedError,
    adding,
    calculating,
    check_proof,
    common_denominator,
    demand,
    demand_schedule,
    integer,
    judged,
    length,
    list_of,
    not_negative,
    object_of,
    problem_of,
    read_document,
    read_file,
    shown,
    unpacked_lines,
)

FORMAT = "optpart-precedence/1"

MAX_VERTICES = 150  # transitivity takes a clause per triple
MAX_DEVICES = 100
MAX_WEIGHT = 10**9

TRUE, FALSE = 1, -1  # literals of a variable that is in no clause

Clause = list[int]
Delay = list[list[int | None]]


class Precedence:
    """An instance in whole numbers, and the variables of the formula ``precedence/1``.

    Attributes
    ----------
    makespan : int
        The makespan below which there is no schedule. All times are multiples of one unit, so
        nothing is rounded.
    run : list of list of int
        Run time by vertex and device; meaningless if the vertex must not be there.
    inputs, outputs : list of list of (int, Delay)
        Neighbours of a vertex, with the delay by the device of the neighbour and of the vertex.
    possible : list of list of int
        Allowed devices of each unit.
    step : list of int
        Common divisor of all run times on a device.
    need : list of int, capacity : list of (int or None)
        Memory by vertex and by device.
    earlier, later : list of int
        Ancestors and descendants of each vertex, as bits.
    round : int
        Steps of one round of consequences.
    allowance : Allowance
        What they may still cost.
    weights : list of list of int
        Multipliers ≥ 0 of the devices, for weighted sums of their loads.
    """

    def __init__(
        self, problem: Problem, makespan: Fraction, weights: Sequence[Sequence[int]] = ()
    ) -> None:
        n, k = len(problem.vertices), len(problem.devices)
        demand(n <= MAX_VERTICES, "too many vertices for a formula of precedence")
        demand(k <= MAX_DEVICES, "too many devices for a formula of precedence")
        for weight in weights:
            demand(len(weight) == k and min(weight) >= 0, "weights are not ≥ 0, one per device")
        self.problem, self.allowance = problem, problem.allowance
        self.weights = weights
        tensors = list(dict.fromkeys(tensor for _, _, tensor in problem.edges))
        bits = length([makespan]) + length(chain(*problem.run)) + problem.length_of_delays()
        self.allowance.spend((n * k + 10 * len(tensors) * k * k) * calculating(bits))
        scale = common_denominator(chain([makespan], _times(problem, tensors)), self.allowance)
        self.makespan = int(makespan * scale)
        longest = max(chain([makespan], _times(problem, tensors)))
        bits = int(longest * scale).bit_length()
        self.allowance.hold(k * (n + 2 * len(tensors) * k) * (48 + bits // 7))
        self.run = [[0 if t is None else int(t * scale) for t in row] for row in problem.run]
        self.inputs: list[list[tuple[int, Delay]]] = [[] for _ in range(n)]
        self.outputs: list[list[tuple[int, Delay]]] = [[] for _ in range(n)]
        whole = {tensor: _whole(problem, tensor, scale) for tensor in tensors}
        turned = {t: [list(column) for column in zip(*m, strict=True)] for t, m in whole.items()}
        for u, v, tensor in problem.edges:
            self.inputs[v].append((u, whole[tensor]))
            self.outputs[u].append((v, turned[tensor]))
        self.members: list[list[int]] = [[] for _ in range(problem.units)]
        for v, unit in enumerate(problem.unit):
            self.members[unit].append(v)
        self.possible = [
            [d for d in range(k) if all(problem.run[v][d] is not None for v in members)]
            for members in self.members
        ]
        unit = math.lcm(1, *{need.denominator for need in problem.need})
        self.step = [
            math.gcd(*(self.run[v][d] for v in range(n) if d in self.possible[problem.unit[v]]))
            or 1
            for d in range(k)
        ]
        self.need = [int(need * unit) for need in problem.need]
        self.capacity = [None if c is None else math.floor(c * unit) for c in problem.capacity]
        pairs = [(problem.unit[a], problem.unit[b]) for a, b in problem.separated]
        self.separated = list(dict.fromkeys(pairs))
        rows = n * k * (10 + 10 * len(weights)) + 4 * len(problem.edges) * k * k
        turns = 5 * n * n * k + k * sum(len(members) ** 2 for members in self.members)
        self.round = (rows + turns + 10 * len(self.separated)) * adding(bits)
        self.earlier, self.later = [0] * n, [0] * n
        for v in problem.order:
            for u, _ in self.inputs[v]:
                self.earlier[v] |= self.earlier[u] | 1 << u
        for v in reversed(problem.order):
            for w, _ in self.outputs[v]:
                self.later[v] |= self.later[w] | 1 << w
        self._name()

    def _name(self) -> None:
        """Number the variables, from 2."""
        self.placing: dict[int, tuple[int, int]] = {}
        self.ordering: dict[int, tuple[int, int]] = {}
        self._place: list[dict[int, int]] = [{} for _ in self.members]
        self._before: dict[tuple[int, int], int] = {}
        number = 1
        for unit, devices in enumerate(self.possible):
            for d in devices:
                number += 1
                self.placing[number] = unit, d
                self._place[unit][d] = number
        for a, b in combinations(range(len(self.run)), 2):
            if self.earlier[b] >> a & 1:
                self._before[a, b] = TRUE
            elif self.earlier[a] >> b & 1:
                self._before[a, b] = FALSE
            else:
                number += 1
                self.ordering[number] = a, b
                self._before[a, b] = number
        self.variables = number

    def place(self, unit: int, d: int) -> int:
        """Return the literal for a unit being on a device."""
        return self._place[unit].get(d, FALSE)

    def before(self, a: int, b: int) -> int:
        """Return the literal for vertex ``a`` preceding vertex ``b``."""
        return self._before[a, b] if a < b else -self._before[b, a]


def _times(problem: Problem, tensors: Iterable[int]) -> Iterator[Fraction]:
    """Yield all run times and delays; a list of these fractions could take gigabytes."""
    k = range(len(problem.devices))
    for row in problem.run:
        yield from (time for time in row if time is not None)
    for tensor, d, e in product(tensors, k, k):
        time = problem.delay(tensor, d, e)
        if time is not None:
            yield time


def _whole(problem: Problem, tensor: int, scale: int) -> Delay:
    """Return the delay of a tensor from device to device."""

    def whole(time: Fraction | None) -> int | None:
        return None if time is None else int(time * scale)

    k = range(len(problem.devices))
    return [[whole(problem.delay(tensor, d, e)) for e in k] for d in k]


# Each of the following functions yields one family of clauses, which every schedule satisfies. In a
# schedule, `a` comes before `b` if it starts earlier. Ties are broken in favour of vertices of
# length 0, and then in a topological order. So every edge leads from an earlier to a later vertex,
# and of two vertices on one device, the earlier one ends before the other starts.


def one_device(code: Precedence) -> Iterator[Clause]:
    """Every unit is on one device."""
    for unit, devices in enumerate(code.possible):
        yield [code.place(unit, d) for d in devices]
        for d, e in combinations(devices, 2):
            yield [-code.place(unit, d), -code.place(unit, e)]


def apart(code: Precedence) -> Iterator[Clause]:
    """Separated units are on different devices."""
    for a, b in code.separated:
        for d in code.possible[a]:
            yield [-code.place(a, d), -code.place(b, d)]


def linked(code: Precedence) -> Iterator[Clause]:
    """The ends of an edge are on devices between which the tensor can cross."""
    for v, inputs in enumerate(code.inputs):
        b = code.problem.unit[v]
        for u, delay in inputs:
            a = code.problem.unit[u]
            for d in code.possible[a]:
                for e in code.possible[b]:
                    if delay[d][e] is None:
                        yield [-code.place(a, d), -code.place(b, e)]


def in_line(code: Precedence) -> Iterator[Clause]:
    """Precedence is transitive."""
    for a, b, c in combinations(range(len(code.run)), 3):
        first, second, both = code.before(a, b), code.before(b, c), code.before(a, c)
        yield [-first, -second, both]
        yield [first, second, -both]


def alike(code: Precedence) -> Iterator[Clause]:
    """Symmetry: units take interchangeable devices in turn.

    A schedule remains valid, with the same starts, if the devices of a class are renumbered in the
    order of their first units. Then a unit is on the next device of a class only if an earlier unit
    is on the device before it.
    """
    for devices in interchangeable(code):
        for d, e in pairwise(devices):
            for unit in range(len(code.members)):
                yield [-code.place(unit, e), *(code.place(other, d) for other in range(unit))]


def interchangeable(code: Precedence) -> list[list[int]]:
    """Return classes of devices, any two of which can be exchanged without changing anything."""
    k = len(code.problem.devices)
    delays = list({id(m): m for inputs in code.inputs for _, m in inputs}.values())

    def same(d: int, e: int) -> bool:
        others = [f for f in range(k) if f not in (d, e)]
        return (
            code.capacity[d] == code.capacity[e]
            and all(row[d] == row[e] for row in code.problem.run)
            and all(m[d][e] == m[e][d] for m in delays)
            and all(m[d][f] == m[e][f] and m[f][d] == m[f][e] for m in delays for f in others)
        )

    classes: list[list[int]] = []
    for d in range(k):
        known = next((devices for devices in classes if same(devices[0], d)), None)
        if known is None:
            classes.append([d])
        else:
            known.append(d)
    return classes


FAMILIES: tuple[Callable[[Precedence], Iterator[Clause]], ...] = (
    one_device,
    apart,
    linked,
    in_line,
    alike,
)


def clauses(
    code: Precedence,
    families: Sequence[Callable[[Precedence], Iterator[Clause]]] = FAMILIES,
) -> Iterator[Clause]:
    """Yield the clauses of the formula, without tautologies and duplicate literals."""
    for family in families:
        for clause in family(code):
            if TRUE not in clause:
                yield [literal for literal in dict.fromkeys(clause) if literal != FALSE]


class Consequences:
    """The arithmetic consequences of some literals and a makespan below the claimed one.

    If the consequences of a subset of the literals are known, ``fewer``, they are the start.

    Attributes
    ----------
    head, tail : list of list of int
        By vertex and device: if the vertex is there, its earliest start, and the least time from
        its end to the end of the schedule.
    possible : list of list of int
        Devices on which a unit can still be.
    earlier, later : list of int
        Vertices known to come before and after a vertex, as bits.
    """

    def __init__(
        self, code: Precedence, literals: Iterable[int], fewer: Consequences | None = None
    ) -> None:
        self.code = code
        nothing = [[0] * len(code.problem.devices) for _ in code.run]
        self.possible: list[list[int]] = list(fewer.possible if fewer else code.possible)
        self.earlier: list[int] = list(fewer.earlier if fewer else code.earlier)
        self.later: list[int] = list(fewer.later if fewer else code.later)
        self.head: list[list[int]] = [list(row) for row in (fewer.head if fewer else nothing)]
        self.tail: list[list[int]] = [list(row) for row in (fewer.tail if fewer else nothing)]
        for literal in literals:
            if abs(literal) in code.placing:
                unit, d = code.placing[abs(literal)]
                self._keep(unit, [e for e in self.possible[unit] if (e == d) == (literal > 0)])
            else:
                a, b = code.ordering[abs(literal)]
                self._order(*((a, b) if literal > 0 else (b, a)))

    def _order(self, a: int, b: int) -> None:
        self.earlier[b] |= 1 << a
        self.later[a] |= 1 << b
        self.changed = True

    def contradict(self) -> bool:
        """Return whether no schedule shorter than the makespan satisfies the literals.

        Every round only adds consequences of the rounds before, so stopping early is sound.
        """
        order = self.code.problem.order
        for _ in range(2 * len(order) + 2):
            self.code.allowance.spend(self.code.round)
            self.changed = False
            self._settle()
            self._longest(order, self.code.inputs, self.earlier, self.head)
            self._longest(order[::-1], self.code.outputs, self.later, self.tail)
            self._drop()
            for weight in self.code.weights:
                self._balance(weight)
            if not all(self.possible):
                return True
            for d, there in enumerate(self.settled):
                if self._too_much(there, d) or self._no_order(there, d):
                    return True
            if not self.changed:
                return False
        return False

    def _settle(self) -> None:
        """Record the vertices with one possible device."""
        self.settled: list[list[int]] = [[] for _ in self.code.problem.devices]
        for unit, devices in enumerate(self.possible):
            if len(devices) == 1:
                self.settled[devices[0]] += self.code.members[unit]

    def _longest(
        self,
        order: Sequence[int],
        neighbours: list[list[tuple[int, Delay]]],
        nearer: list[int],
        result: list[list[int]],
    ) -> None:
        """Propagate heads (or, backwards, tails) along precedences.

        Every input must arrive from some possible device. If ``v`` is on ``d``, so are the vertices
        of its unit and those settled there; those of them that come before ``v`` run one after
        another, and the first starts no earlier than the least of their heads.
        """
        code, never = self.code, self.code.makespan
        unit_of = code.problem.unit
        for v in order:
            unit = unit_of[v]
            for d in self.possible[unit]:
                longest = result[v][d]
                for w, delay in neighbours[v]:
                    least = never
                    for e in [d] if unit_of[w] == unit else self.possible[unit_of[w]]:
                        crossing = delay[e][d]
                        if crossing is not None:
                            least = min(least, result[w][e] + code.run[w][e] + crossing)
                    longest = max(longest, least)
                there = self.settled[d]
                if len(self.possible[unit]) > 1 and len(code.members[unit]) > 1:
                    there = there + code.members[unit]
                turns = [(result[w][d], code.run[w][d]) for w in there if nearer[v] >> w & 1]
                turns.sort(reverse=True)
                load = 0
                for begin, time in turns:
                    load += time
                    longest = max(longest, begin + load)
                if longest > result[v][d]:
                    result[v][d] = longest
                    self.changed = True

    def _drop(self) -> None:
        """Remove devices on which a unit would take too long or break a separation."""
        for unit, devices in enumerate(self.possible):
            fit = [d for d in devices if all(self._fits(v, d) for v in self.code.members[unit])]
            self._keep(unit, fit)
        for a, b in self.code.separated:
            for one, other in ((a, b), (b, a)):
                only = self.possible[one]
                if len(only) == 1:
                    self._keep(other, [d for d in self.possible[other] if d not in only])

    def _balance(self, weight: Sequence[int]) -> None:
        """Remove a device from a unit if the unit would leave the others too little time there.

        The vertices on a device take turns between the least head and the least tail there:
        ``rim_d + load_d ≤ C`` in a schedule of makespan ``C``. This also holds for an empty device
        if ``rim_d`` is at most a known lower bound of ``C``. The weighted sum, with every unit on
        the device where it weighs least, is ``Σ_u min_d w_d·load_u,d ≤ Σ_d w_d·(C − rim_d)``. Each
        load is a multiple of the common divisor of all run times on its device.
        """
        code = self.code
        if not all(self.possible):
            return
        least = 0  # of C
        there: list[list[int]] = [[] for _ in weight]
        for unit, devices in enumerate(self.possible):
            members = code.members[unit]
            for v in members:
                least = max(
                    least,
                    min(self.head[v][d] + code.run[v][d] + self.tail[v][d] for d in devices),
                )
            for d in devices:
                there[d] += members
        spare = 0
        for d, factor in enumerate(weight):
            rim = min((self.head[v][d] for v in there[d]), default=0)
            rim += min((self.tail[v][d] for v in there[d]), default=0)
            room = code.makespan - min(rim, least) - 1
            spare += factor * (room - room % code.step[d])
        loads = [
            {d: weight[d] * sum(code.run[v][d] for v in code.members[unit]) for d in devices}
            for unit, devices in enumerate(self.possible)
        ]
        spare -= sum(min(load.values()) for load in loads)
        for unit, load in enumerate(loads):
            limit = min(load.values()) + spare
            self._keep(unit, [d for d in self.possible[unit] if load[d] <= limit])

    def _keep(self, unit: int, devices: list[int]) -> None:
        if len(devices) < len(self.possible[unit]):
            self.possible[unit] = devices
            self.changed = True

    def _fits(self, v: int, d: int) -> bool:
        return self.head[v][d] + self.code.run[v][d] + self.tail[v][d] < self.code.makespan

    def _too_much(self, there: list[int], d: int) -> bool:
        """Return whether the units settled on a device exceed its memory or its time.

        The first of some vertices starts no earlier than their least head, and after the last at
        least their least tail follows.
        """
        code = self.code
        limit = code.capacity[d]
        if limit is not None and sum(code.need[v] for v in there) > limit:
            return True
        by_tail = sorted(there, key=lambda v: -self.tail[v][d])
        for begin in {self.head[v][d] for v in there}:
            load = 0
            for v in by_tail:
                if self.head[v][d] >= begin:
                    load += code.run[v][d]
                    if begin + load + self.tail[v][d] >= code.makespan:
                        return True
        return False

    def _no_order(self, there: list[int], d: int) -> bool:
        """Return whether two vertices on a device have no valid order; record forced orders."""
        code = self.code
        for a, b in combinations(there, 2):
            both = code.run[a][d] + code.run[b][d]
            a_first = self.head[a][d] + both + self.tail[b][d] < code.makespan
            b_first = self.head[b][d] + both + self.tail[a][d] < code.makespan
            a_first &= not self.later[b] >> a & 1
            b_first &= not self.later[a] >> b & 1
            if not a_first and not b_first:
                return True
            if not b_first and not self.earlier[b] >> a & 1:
                self._order(a, b)
            elif not a_first and not self.earlier[a] >> b & 1:
                self._order(b, a)
        return False


def holds(code: Precedence, lemma: Sequence[int], anyway: Consequences | None = None) -> bool:
    """Return whether every schedule shorter than the makespan satisfies a clause.

    ``anyway`` holds the consequences that need no assumption.
    """
    return Consequences(code, [-literal for literal in lemma], anyway).contradict()


def check(directory: str, instance: str | None = None) -> str:
    """Check the second refutation in a directory; return what it proves, in words.

    Parameters
    ----------
    instance : str, optional
        The instance file that the refutation must be about, byte for byte.

    Raises
    ------
    RejectedError
        If the refutation does not prove its claim; the message is the reason.
    """
    return judged(_check, directory, instance)


def _check(directory: str, instance: str | None) -> str:
    allowance = Allowance()
    _, document = read_document(directory, "precedence.json", allowance)
    known = "format instance_sha256 makespan weights lemmas"
    record = object_of(document, known, "precedence")
    demand(record.get("format") == FORMAT, f"precedence: not {FORMAT}")
    problem, digest = problem_of(record, directory, instance, allowance)
    makespan = not_negative(record.get("makespan"))
    demand_schedule(directory, problem, makespan)
    content = read_file(os.path.join(directory, "precedence.lrat.xz"), MAX_PACKED, allowance)
    how = refute(problem, makespan, record, unpacked_lines(content, allowance))
    least = shown(makespan, up=True)
    return f"{shown(problem.name)}: optimal makespan {least} ({how}; sha256 {digest})"


def refute(
    problem: Problem, makespan: Fraction, record: dict[str, object], proof: Iterable[bytes]
) -> str:
    """Check that no schedule is shorter than a makespan; return how, in words."""
    if makespan == 0:
        return "no schedule takes less than 0"
    listed = list_of(record.get("weights"), "weights")
    k = len(problem.devices)
    weights = [
        [integer(w, 0, MAX_WEIGHT, "weights") for w in list_of(weight, "weights", k)]
        for weight in listed
    ]
    code = Precedence(problem, makespan, weights)
    lemmas = list_of(record.get("lemmas"), "lemmas")
    anyway = Consequences(code, [])
    anyway.contradict()
    for i, lemma in enumerate(lemmas):
        for literal in list_of(lemma, "a lemma"):
            integer(literal, -code.variables, code.variables, "a lemma")
            demand(abs(literal) > 1, "record: a lemma has a literal without a variable")
        demand(holds(code, lemma, anyway), f"record: lemma {i} does not hold")
    formula = Formula(chain(clauses(code), lemmas), code.allowance)
    steps = check_proof(formula, code.variables, proof)
    return f"by precedence, {code.variables} variables, {len(lemmas)} lemmas, {steps} steps"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a directory, print one line, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check a second refutation of shorter schedules.")
    parser.add_argument("directory", help="holds precedence.json and its other files")
    parser.add_argument("--instance", help="read the instance from this file instead")
    options = parser.parse_args(arguments)
    try:
        print(f"ACCEPTED: {check(options.directory, options.instance)}")
    except RejectedError as error:
        print(f"REJECTED: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The proof of tier ``series`` as rows over places and starts, and as sums of them.

The formula has a variable ``x[u,d]`` for a unit on a device, the bits of each start ``σ_v``, and
one variable for each pair of vertices that no path orders: the first runs before the second. Every
further variable stands for a row, and is introduced with it: if the variable is true, the row
holds; if it is false, the row does not. So the proof can say that

- a part lasts at least ``t`` from the start of the cut before it to the start of its own, or takes
  at least ``m`` of the memory of a device. Several of these together, with the device of the cut,
  are an *outcome*. The ways to place a part are told apart, and the orders of vertices that share a
  device; each is a path that takes so long, hence one of the outcomes;
- what is left after a cut takes at least its potential, with all that it pays for memory, at the
  prices of a set. This follows from the outcomes, part by part, from the last;
- at a cut, one of some *labels* holds: the device of the cut, the memory used so far, the start.
  Each label and each outcome give another label at the next cut, or one with less. A label is
  dropped if it takes more memory than there is, or if its potential is too large for the horizon.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations, product
from typing import NamedTuple

from optpart.certificates.check import Prices, Series, Windows
from optpart.certificates.path_rows import Row

#: How many ways to place a part, how many labels at a cut, and how many bytes of text.
WAYS, LABELS, BYTES = 100_000, 20_000, 50_000_000

#: A variable, or its number negated for its opposite.
Literal = int

#: Coefficients of variables.
Terms = dict[int, int]

#: A factor, and what to add: a row by number, or a literal; nothing if ``None``.
Part = tuple[int, int | str | None]


class TooLargeError(Exception):
    """The proof is too large; the message says what of it."""


class Clause(NamedTuple):
    """A derived clause: its number in the proof, and its literals."""

    number: int | None
    literals: frozenset[Literal]


class Truth(NamedTuple):
    """A variable that stands for a row: the numbers and the big coefficients of both halves."""

    literal: Literal
    forth: int
    back: int
    if_false: int
    if_true: int


class Outcome(NamedTuple):
    """What a part comes to: the device of its cut, memory used by device, and time."""

    device: int
    memory: tuple[int, ...]
    time: int

    def implies(self, other: Outcome) -> bool:
        """Whether this is at least as much as another."""
        return (
            self.device == other.device
            and self.time >= other.time
            and all(m >= n for m, n in zip(self.memory, other.memory, strict=True))
        )


class Script:
    """A formula and the lines of a proof, numbered together."""

    def __init__(self) -> None:
        self.variables = 0
        self.rows: list[Row] = []
        self.lines: list[str] = []
        self.size = 0
        self._known: dict[str, int] = {}
        self._truths: dict[object, Truth] = {}
        self._implied: dict[tuple[int, int], Clause] = {}

    def variable(self) -> int:
        """Return a new variable."""
        self.variables += 1
        return self.variables

    def row(self, terms: Iterable[tuple[int, Literal]], least: int) -> int:
        """Add a row of the formula, over literals; return its number."""
        self.rows.append(_over_variables(terms, least))
        return len(self.rows)

    def _write(self, line: str) -> int:
        self.lines.append(line)
        self.size += len(line) + 1
        if self.size > BYTES:
            raise TooLargeError(f"the proof is longer than {BYTES} bytes")
        return len(self.rows) + len(self.lines)

    def sum(self, parts: Iterable[Part], end: str = "") -> int | None:
        """Add rows and literals, each with a factor; return the number of the result."""
        kept = [(factor, what) for factor, what in parts if factor and what is not None]
        if not kept:
            return None
        if len(kept) == 1 and kept[0][0] == 1 and isinstance(kept[0][1], int) and end in ("", "s"):
            return kept[0][1]
        words: list[str] = []
        for factor, what in kept:
            more = [str(what), *([str(factor), "*"] if factor != 1 else [])]
            words += [*more, "+"] if words else more
        body = " ".join([*words, *([end] if end else [])])
        if body not in self._known:
            self._known[body] = self._write(f"pol {body}")
        return self._known[body]

    def clause(
        self, parts: Iterable[Part], literals: Iterable[Literal], large: int
    ) -> Clause:
        """Add rows that leave these literals alone, with no coefficient above ``large``."""
        return Clause(self.sum(parts, f"{large} d"), frozenset(literals))

    def resolved(self, clauses: Iterable[Clause]) -> Clause:
        """Add clauses in which each opposite pair cancels once."""
        parts = [*clauses]
        literals = set[Literal]().union(*(clause.literals for clause in parts))
        left = frozenset(x for x in literals if -x not in literals)
        if len(parts) == 1:
            return parts[0]
        return Clause(self.sum([(1, clause.number) for clause in parts], "s"), left)

    def truth(self, terms: Mapping[int, int], constant: int, least: int) -> Truth:
        """Return the variable that is true if ``terms + constant ≥ least``, and only then."""
        terms = {x: a for x, a in terms.items() if a}
        key = (*sorted(terms.items()), constant - least)
        if key not in self._truths:
            low = constant + sum(a for a in terms.values() if a < 0)
            high = constant + sum(a for a in terms.values() if a > 0)
            z, most = self.variable(), (max(1, least - low), max(1, high - least + 1))
            pairs = [(a, x) for x, a in terms.items()]
            numbers = []
            for sign, literal, large in ((1, -z, most[0]), (-1, z, most[1])):
                at_least = least - constant if sign > 0 else 1 - least + constant
                row = _over_variables(
                    [*((sign * a, x) for a, x in pairs), (large, literal)], at_least
                )
                numbers.append(self._write(f"red {text(row)} x{z} -> {int(literal > 0)}"))
            self._truths[key] = Truth(z, *numbers, *most)
        return self._truths[key]

    def all_of(self, literals: Iterable[Literal]) -> tuple[Truth, tuple[Literal, ...]]:
        """Return the variable that is true if all of these are."""
        each = (*dict.fromkeys(literals),)
        return self.truth(dict.fromkeys(each, 1), 0, len(each)), each

    def implied(self, whole: tuple[Truth, tuple[Literal, ...]], literal: Literal) -> Clause:
        """Return that one of the literals of :meth:`all_of` holds if all do."""
        truth, each = whole
        others = [(1, f"~x{x}") for x in each if x != literal]
        number = self.sum([(1, truth.forth), *others], "s")
        return Clause(number, frozenset((-truth.literal, literal)))

    def cases(self, clauses: Iterable[tuple[Literal, Clause]], choice: Clause | None) -> Clause:
        """Return what holds in every case, of which one applies by the clause ``choice``.

        Without it, there are two cases, which are opposite. What holds without its case is enough.
        """
        literals, numbers = set[Literal](), list[Part]()
        given = set[Literal]()
        for case, clause in clauses:  # which may be a generator
            if -case not in clause.literals:
                return clause
            given.add(case)
            literals |= clause.literals - {-case}
            numbers.append((1, clause.number))
        if choice is not None:
            literals |= choice.literals - given
            numbers.append((1, choice.number))
        return Clause(self.sum(numbers, "s"), frozenset(literals))


def _over_variables(terms: Iterable[tuple[int, Literal]], least: int) -> Row:
    row: Terms = {}
    for a, x in terms:
        row[abs(x)] = row.get(abs(x), 0) + (a if x > 0 else -a)
        least -= 0 if x > 0 else a
    return {x: a for x, a in row.items() if a}, least


def text(row: Row) -> str:
    """Return a row as OPB writes it."""
    return " ".join([*(f"{a:+d} x{x}" for x, a in row[0].items()), f">= {row[1]} ;"])


class _Formula:
    """What every schedule within the horizon satisfies."""

    def __init__(self, windows: Windows) -> None:
        self.series = series = Series(windows)
        problem, every = windows.problem, range(series.k)
        self.script, self.horizon, self.unit = Script(), windows.horizon, [*problem.unit]
        self.run = windows.run
        self.on = [
            [d for d in every if all(windows.run[v][d] is not None for v in group)]
            for group in problem.members
        ]
        self.said: list[str] = []
        self.place = {
            (u, d): self._named(f"place {u} {d}") for u, on in enumerate(self.on) for d in on
        }
        bits = range(max(1, self.horizon.bit_length()))
        self.start: list[Terms] = [
            {self._named(f"bit {v} {j}"): 1 << j for j in bits} for v in range(series.sink)
        ]
        self._choose(problem.separated)
        self._follow(windows)
        self._take_turns()
        self._fit()

    def _named(self, what: str) -> int:
        number = self.script.variable()
        self.said.append(f"{what} x{number}")
        return number

    def _choose(self, separated: list[tuple[int, int]]) -> None:
        """Every unit is on one device, and separated ones are not on the same."""
        row, there = self.script.row, [[self.place[u, d] for d in on] for u, on in enumerate(self.on)]
        self.some = [Clause(row([(1, x) for x in each], 1), frozenset(each)) for each in there]
        self.one = [row([(-1, x) for x in each], -1) for each in there]
        self.apart: dict[tuple[int, int, int], Clause] = {}
        for u, w in {(self.unit[a], self.unit[b]) for a, b in separated}:
            for d in {*self.on[u]} & {*self.on[w]}:
                pair = [-self.place[u, d], -self.place[w, d]]
                self.apart[u, w, d] = Clause(row([(1, x) for x in pair], 1), frozenset(pair))

    def _follow(self, windows: Windows) -> None:
        """A vertex starts after its inputs have arrived, and ends by the horizon."""
        n, every = self.series.sink, range(self.series.k)
        self.lag: dict[tuple[int, int], list[list[int]]] = {}
        for u, v, tensor in windows.problem.edges:
            delay = windows.departure[tensor]
            before = self.lag.get((u, v), delay)
            self.lag[u, v] = [[*map(max, *rows)] for rows in zip(before, delay, strict=True)]
        for v in self.series.before[n]:
            self.lag[v, n] = [[0] * len(every)] * len(every)
        self.after: dict[tuple[int, int, int | None, int | None], int] = {}
        for (u, v), delay in self.lag.items():
            gap = [(-a, x) for x, a in self.start[u].items()]
            gap += [(a, x) for x, a in self.start[v].items()] if v < n else []
            gap += [(-self.time(u, d), self.place[self.unit[u], d]) for d in self.on[self.unit[u]]]
            least = 0 if v < n else -self.horizon
            self.after[u, v, None, None] = self.script.row(gap, least)
            for d, e in product(self.on[self.unit[u]], self.on[self.unit[v]] if v < n else ()):
                if t := delay[d][e]:
                    if self.unit[u] != self.unit[v]:
                        there = [-self.place[self.unit[u], d], -self.place[self.unit[v], e]]
                        self.after[u, v, d, e] = self.script.row([*gap, *((t, x) for x in there)], t)

    def _take_turns(self) -> None:
        """Of two vertices that no path orders, one runs before the other on a device."""
        self.turns: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
        self.first: dict[tuple[int, int], int] = {}
        for part in self.series.parts:
            later: dict[int, set[int]] = {}
            for v in reversed(part):
                following = self.series.after[v].keys() & later.keys()
                later[v] = following.union(*(later[w] for w in following))
            for u, v in combinations(part, 2):
                common = [d for d in self._devices(u) if d in self._devices(v)]
                if v in later[u] or not common:
                    continue
                b = self.first[u, v] = self._named(f"before {u} {v}")
                self.turns[u, v] = {}
                for d in common:
                    both = [-self.place[self.unit[w], d] for w in (u, v)]
                    numbers = []
                    for literal, one, other in ((-b, u, v), (b, v, u)):
                        time = self.time(one, d)
                        gap = [(a, x) for x, a in self.start[other].items()]
                        gap += [(-a, x) for x, a in self.start[one].items()]
                        large = max(1, self.horizon + time)
                        gap += [(large, x) for x in (literal, *both)]
                        numbers.append(self.script.row(gap, time))
                    self.turns[u, v][d] = numbers[0], numbers[1]

    def _fit(self) -> None:
        """No device exceeds its memory; needs count in the part of a unit's first vertex."""
        series = self.series
        self.needs: list[dict[int, int]] = [
            {self.unit[v]: series.need[v] for v in part if v < series.sink and series.need[v]}
            for part in series.parts
        ]
        self.limited: list[tuple[int, int]] = []
        self.room: dict[int, int] = {}
        for d, limit in enumerate(series.capacity):
            terms = [pair for part in range(len(self.needs)) for pair in self.need(part, d).items()]
            if limit is not None and sum(a for _, a in terms) > limit:
                self.limited.append((d, limit))
                self.room[d] = self.script.row([(-a, x) for x, a in terms], -limit)

    def need(self, part: int, d: int) -> Terms:
        """Return the memory that a part takes on a device."""
        return {
            self.place[u, d]: need for u, need in self.needs[part].items() if d in self.on[u]
        }

    def time(self, v: int, d: int) -> int:
        """Return a run time."""
        time = self.run[v][d]
        assert time is not None
        return time

    def _devices(self, v: int) -> list[int]:
        return self.on[self.unit[v]] if v < self.series.sink else []


class NotRefutedError(Exception):
    """The rows do not suffice."""


Whole = tuple[Truth, tuple[Literal, ...]]


class _Way(NamedTuple):
    """The longest path to a vertex: its length, the vertex before, the last row."""

    time: int
    before: int | None
    row: int | None
    literals: tuple[Literal, ...]


class PartRows:
    """The outcomes of a part, and that there is no other."""

    def __init__(self, proof: SeriesProof, i: int) -> None:
        self.proof, self.i, self.script = proof, i, proof.script
        self.vertices, self.cut = proof.series.parts[i], proof.cut(i - 1)
        self.end, inside = self.vertices[-1], {*self.vertices, self.cut}
        self.edges = [(u, v) for v in self.vertices for u in proof.series.before[v] if u in inside]
        named = [proof.unit[v] for v in (self.end, *self.vertices) if v < proof.series.sink]
        self.units = [*dict.fromkeys(named)]
        self.pairs = [pair for pair in proof.turns if pair[0] in inside and pair[1] in inside]
        around = {*self.units} | ({proof.unit[self.cut]} if self.cut is not None else set())
        self.apart = [at for at in proof.apart if at[0] in around and at[1] in around]
        self.ways = 0
        self.front: list[Outcome] = []
        self.wholes: dict[Outcome, Whole] = {}

    def all_outcomes(self) -> tuple[dict[int | None, list[Outcome]], dict[int | None, Clause]]:
        """Return the outcomes by the device of the cut before, and that one of them occurs."""
        proof, found, shown = self.proof, dict[int | None, list[Outcome]](), {}
        for d in proof.cut_devices(self.i - 1):
            placed = {} if d is None or self.cut is None else {proof.unit[self.cut]: d}
            self.front = []
            self._walk(placed, {}, False)
            self.wholes |= {x: self.script.all_of(self._parts(x)) for x in self.front}
            clause = self._walk(placed, {}, True)
            assert clause is not None
            shown[d] = clause
            found[d] = [x for x in self.front if self.wholes[x][0].literal in clause.literals]
        return found, shown

    def _parts(self, outcome: Outcome) -> list[Literal]:
        """Return the literals of an outcome."""
        proof, i = self.proof, self.i
        there = proof.at(i, outcome.device)
        parts = [] if there is None else [there]
        for (f, _), m in zip(proof.limited, outcome.memory, strict=True):
            if m:
                parts.append(proof.takes(i, f, m).literal)
        return [*parts, proof.lasts(i, outcome.time).literal]

    def _walk(self, placed: dict[int, int], order: dict[tuple[int, int], bool], prove: bool) -> Clause | None:
        """Find outcomes, or prove that there is one of those found."""
        proof, script = self.proof, self.script
        self.ways += 1
        if self.ways > WAYS:
            raise TooLargeError(f"part {self.i} has more than {WAYS} ways to be placed")
        for u, w, d in self.apart:
            if placed.get(u) == placed.get(w) == d:
                return proof.apart[u, w, d]
        ways = self._longest(placed, order)
        sink = self.end == proof.series.sink
        reached = None
        if sink or proof.unit[self.end] in placed:
            time, memory = min(ways[self.end].time, proof.horizon + 1), [0] * len(proof.limited)
            if time <= proof.horizon:
                for j, (f, _) in enumerate(proof.limited):
                    needs = proof.needs[self.i].items()
                    memory[j] = sum(m for u, m in needs if placed.get(u) == f)
            reached = Outcome(None if sink else placed[proof.unit[self.end]], tuple(memory), time)
            for outcome in self.front:
                if reached.implies(outcome):
                    return self._leaf(outcome, placed, ways) if prove else None
        unit = next((u for u in self.units if u not in placed), None)
        if unit is not None:
            cases = [(proof.place[unit, d], ({**placed, unit: d}, order)) for d in proof.on[unit]]
            choice = proof.some[unit]
        else:
            pair = self._overlap(placed, ways)
            if pair is None:
                assert reached is not None and not prove
                self.front = [x for x in self.front if not x.implies(reached)] + [reached]
                return None
            b, choice = proof.first[pair], None
            cases = [(s, (placed, {**order, pair: s > 0})) for s in (b, -b)]
        if prove:
            return script.cases(((x, self._walk(*case, True)) for x, case in cases), choice)
        for _, case in cases:
            self._walk(*case, False)
        return None

    def _overlap(self, placed, ways) -> tuple[int, int] | None:
        """Return two vertices that run on one device at one time."""
        proof = self.proof
        for u, v in self.pairs:
            d = placed[proof.unit[u]]
            if d == placed[proof.unit[v]]:
                s, t = ways[u].time, ways[v].time
                if s < t + proof.time(v, d) and t < s + proof.time(u, d):
                    return u, v
        return None

    def _longest(self, placed, order) -> dict[int, _Way]:
        """Return the longest path to each vertex, as far as places and orders are known."""
        proof, ways = self.proof, dict[int, _Way]()
        if self.cut is not None:
            ways[self.cut] = _Way(0, None, None, ())
        else:
            ways = {v: _Way(0, None, proof.positive(v), ()) for v in self.vertices if v < proof.series.sink}
            if self.end not in ways:
                ways[self.end] = _Way(0, None, None, ())
        arcs = []
        for (u, v), first in order.items():
            d = placed[proof.unit[u]]
            there = [-proof.place[proof.unit[w], d] for w in (u, v)]
            one, other = (u, v) if first else (v, u)
            b = proof.first[u, v]
            lits = (-b if first else b, *there)
            arcs.append((one, other, (proof.time(one, d), proof.turns[u, v][d][not first], lits)))
        arcs += [(u, v, proof.edge(u, v, placed)) for u, v in self.edges]
        changed = True
        while changed:
            changed = False
            for u, v, (time, row, literals) in arcs:
                if u in ways and (v not in ways or ways[v].time < ways[u].time + time):
                    ways[v] = _Way(ways[u].time + time, u, row, literals)
                    changed = True
        return ways

    def _leaf(self, outcome, placed, ways) -> Clause:
        """Prove an outcome by a path and needs."""
        proof, script, i = self.proof, self.script, self.i
        truth, each = self.wholes[outcome]
        clauses = [Clause(truth.back, frozenset((truth.literal, *(-x for x in each))))]
        for (f, _), m in zip(proof.limited, outcome.memory, strict=True):
            if m:
                takes, need, left = proof.takes(i, f, m), proof.need(i, f), m
                there = {proof.place[u, f]: a for u, a in proof.needs[i].items() if placed.get(u) == f}
                for x, a in sorted(there.items(), key=lambda pair: -pair[1]):
                    if left > 0:
                        left -= a
                        del need[x]
                chosen = [-x for x in proof.need(i, f) if x not in need]
                large = takes.if_true + sum(proof.need(i, f).values())
                total = [(1, takes.back), *proof.not_negative(need)]
                clauses.append(script.clause(total, [takes.literal, *chosen], large))
        lasts = proof.lasts(i, outcome.time)
        total, literals, v = [(1, lasts.back)], [lasts.literal], self.end
        while v is not None:
            total.append((1, ways[v].row))
            literals += ways[v].literals
            v = ways[v].before
        large = lasts.if_true + 4 * (proof.horizon + 1) * len(total)
        clauses.append(script.clause(total, literals, large))
        return script.resolved(clauses)


class PricedRows:
    """What is left after each cut, with what it pays."""

    def __init__(self, proof: SeriesProof, prices: Prices) -> None:
        self.proof, self.per, last = proof, prices.per, proof.last
        self.price = {f: prices.numerator[f] for f, _ in proof.limited}
        self.potential: dict[int, dict[int | None, int]] = {last: {None: 0}}
        self.rest: dict[int, int | None] = {last: None}
        for i in reversed(range(last + 1)):
            self._add(i)

    def _coefficients(self, i: int, sign: int) -> dict[int, Terms]:
        """Return the potentials of a cut as coefficients of its places, by unit."""
        v = self.proof.cut(i)
        if v is None or v == self.proof.series.sink:
            return {}
        u = self.proof.unit[v]
        return {u: {self.proof.place[u, d]: sign * x for d, x in self.potential[i].items() if d is not None}}

    def _add(self, i: int) -> None:
        proof, script, per = self.proof, self.proof.script, self.per
        following = self.potential[i]
        self.potential[i - 1] = {
            d: min(
                (
                    per * o.time + self._pays(o.memory) + following[o.device]
                    for o in outcomes
                ),
                default=per * (proof.horizon + 1),
            )
            for d, outcomes in proof.outcomes[i].items()
        }
        (before, early), (after, late) = proof.moment(i - 1), proof.moment(i)
        terms = {x: per * a for x, a in difference(after, before).items()}
        constant = per * (late - early) - self.potential[i - 1].get(None, 0)
        for f, price in self.price.items():
            add(terms, proof.need(i, f), price)
        places = self._coefficients(i, -1)
        for u, row in self._coefficients(i - 1, 1).items():
            add(places.setdefault(u, {}), row, 1)
        for row in places.values():
            add(terms, row, -1)
        truth = script.truth(terms, constant, 0)
        cases = []
        for d, shown in proof.shown[i].items():
            ways = (
                (proof.wholes[i][o][0].literal, self._from(i, d, o, truth, places))
                for o in proof.outcomes[i][d]
            )
            cases.append((proof.at(i - 1, d) or 0, script.cases(ways, shown)))
        clause = cases[0][1]
        if cases[0][0]:
            v = proof.cut(i - 1)
            clause = script.cases(cases, proof.some[proof.unit[v]])
        self.rest[i - 1] = script.sum(
            [(1, truth.forth), (truth.if_false, clause.number), (1, self.rest[i])]
        )

    def _pays(self, memory: tuple[int, ...]) -> int:
        return sum(price * m for price, m in zip(self.price.values(), memory, strict=True))

    def _from(self, i, d, outcome, truth, places) -> Clause:
        """Prove what a part and its potentials come to, from one of its outcomes."""
        proof, script, per = self.proof, self.proof.script, self.per
        lasts = proof.lasts(i, outcome.time)
        total: list[Part] = [(1, truth.back), (per, lasts.forth)]
        literals, large = [truth.literal, -lasts.literal], truth.if_true + per * lasts.if_false
        for (f, price), m in zip(self.price.items(), outcome.memory, strict=True):
            if m:
                takes = proof.takes(i, f, m)
                total.append((price, takes.forth))
                if price:
                    literals.append(-takes.literal)
                large += price * takes.if_false
            else:
                total.append((price, proof.none[i, f]))
        chosen = {proof.at(i, outcome.device), proof.at(i - 1, d)}
        for u, row in places.items():
            more, literal, most = proof.decided(u, row, chosen)
            total += more
            literals += literal
            large += most
        clause = script.clause(total, literals, large)
        whole = proof.wholes[i][outcome]
        given = [script.implied(whole, x) for x in whole[1] if -x in clause.literals]
        return script.resolved([clause, *given])

    def too_late(self, i: int, d: int | None, memory: tuple[int, ...]) -> int:
        """Return the least start of a cut that is too late, if so much memory is used."""
        proof, potential = self.proof, self.potential[i][d]
        for (f, limit), m in zip(proof.limited, memory, strict=True):
            potential -= self.price[f] * min(limit - m, proof.left[i, f])
        return max(0, (self.per * proof.horizon - potential) // self.per + 1)

    def excluded(self, i: int, d: int | None, memory: tuple[int, ...], t: int) -> Clause:
        """Prove that a cut does not start so late."""
        proof, script = self.proof, self.proof.script
        total, literals, large = [(1, self.rest[i])], [], 0
        more, literal, most = proof.since(i, t, self.per)
        total += more
        literals += literal
        large += most
        for (f, limit), m in zip(proof.limited, memory, strict=True):
            price = self.price[f]
            if not price:
                continue
            if limit - m < proof.left[i, f]:
                more, literal, most = proof.so_far(i, f, m, price)
                total += [(price, proof.room[f]), *more]
                literals += literal
                large += most
            else:
                total.append((price, proof.later[i, f]))
        for u, row in self._coefficients(i, -1).items():
            more, literal, most = proof.decided(u, row, {proof.at(i, d)})
            total += more
            literals += literal
            large += most
        return script.clause(total, literals, max(1, large))


class Label(NamedTuple):
    device: int | None
    memory: tuple[int, ...]
    time: int


class SeriesProof(_Formula):
    """A refutation in series.

    Attributes
    ----------
    said : list of str
        What each variable of the formula means.
    script : Script
        Its rows, and the lines of the proof; the last is ``0 ≥ 1``.

    Raises
    ------
    TooLargeError
        If there are too many ways, labels or lines.
    NotRefutedError
        If the rows do not suffice, since they leave out what connects parts other than by cuts.
    """

    def __init__(self, windows: Windows, record: Mapping[str, list[object]]) -> None:
        super().__init__(windows)
        self.last = len(self.series.parts) - 1
        self.outcomes: list[dict[int | None, list[Outcome]]] = []
        self.shown: list[dict[int | None, Clause]] = []
        self.wholes: list[dict[Outcome, Whole]] = []
        self.meaning: dict[Literal, tuple[int | None, int]] = {}
        self._sums_of_memory()
        for i in range(len(self.series.parts)):
            part = PartRows(self, i)
            found, shown = part.all_outcomes()
            self.outcomes.append(found)
            self.shown.append(shown)
            self.wholes.append(part.wholes)
        self.sets = [PricedRows(self, Prices(self.series, each)) for each in record["sets"]]
        self.counts: list[int] = []
        self._forwards()

    # --- times and memory -----------------------------------------------------------------

    def cut(self, i: int) -> int | None:
        """Return the last vertex of a part; ``None`` before the first."""
        return self.series.parts[i][-1] if i >= 0 else None

    def cut_devices(self, i: int) -> list[int | None]:
        """Return where the cut of a part can be."""
        v = self.cut(i)
        return [None] if v is None or v == self.series.sink else [*self.on[self.unit[v]]]

    def at(self, i: int, d: int | None) -> Literal | None:
        """Return the literal that says where the cut of a part is."""
        v = self.cut(i)
        return None if d is None or v is None else self.place[self.unit[v], d]

    def moment(self, i: int) -> tuple[Terms, int]:
        """Return the start of the cut of a part, as a row: 0 before the first, then the horizon."""
        v = self.cut(i)
        if v is None:
            return {}, 0
        return (self.start[v], 0) if v < self.series.sink else ({}, self.horizon)

    def begun(self, i: int, t: int) -> Truth:
        """Return that the cut of a part starts at ``t`` or later."""
        truth = self.script.truth(*self.moment(i), t)
        self.meaning[truth.literal] = None, t
        return truth

    def lasts(self, i: int, t: int) -> Truth:
        """Return that a part lasts ``t`` or longer."""
        (before, early), (after, late) = self.moment(i - 1), self.moment(i)
        return self.script.truth(difference(after, before), late - early, t)

    def takes(self, i: int, d: int, m: int) -> Truth:
        """Return that a part takes ``m`` or more of a memory."""
        return self.script.truth(self.need(i, d), 0, m)

    def used(self, i: int, d: int, m: int) -> Truth:
        """Return that the parts up to one take ``m`` or more of a memory."""
        terms: Terms = {}
        for j in range(i + 1):
            terms |= self.need(j, d)
        truth = self.script.truth(terms, 0, m)
        self.meaning[truth.literal] = d, m
        return truth

    def not_negative(self, terms: Mapping[int, int]) -> list[Part]:
        """Return the axioms that drop coefficients of variables from a sum."""
        return [(a, f"x{x}") for x, a in terms.items()]

    def positive(self, v: int) -> int | None:
        """Return that a vertex starts at 0 or later."""
        return self.script.sum(self.not_negative(self.start[v]))

    def edge(self, u: int, v: int, placed: Mapping[int, int]) -> tuple[int, int | None, tuple[Literal, ...]]:
        """Return the time between the starts of two vertices, the row and its conditions."""
        unit = self.unit[u]
        d, e = placed.get(unit), placed.get(self.unit[v]) if v < self.series.sink else None
        if (u, v, d, e) not in self.edges:
            base, on = self.after[u, v, None, None], self.on[unit]
            if d is None:
                least = min(self.time(u, f) for f in on)
                over = {self.place[unit, f]: self.time(u, f) - least for f in on}
                row = self.script.sum([(1, base), (least, self.some[unit].number), *self.not_negative(over)])
                found = least, row, ()
            else:
                others = {self.place[unit, f]: self.time(u, f) for f in on if f != d}
                number, lag = self.after.get((u, v, d, e)), 0
                if number is not None and e is not None:
                    lag = self.lag[u, v][d][e]
                row = self.script.sum([(1, number or base), *self.not_negative(others)])
                time = self.time(u, d)
                literals = [-self.place[unit, d]] * (time + lag > 0)
                if lag:
                    literals.append(-self.place[self.unit[v], e])
                found = time + lag, row, tuple(literals)
            self.edges[u, v, d, e] = found
        return self.edges[u, v, d, e]

    def decided(self, u: int, row: Terms, chosen: set[int | None]) -> tuple[list[Part], list[Literal], int]:
        """Return what leaves the place of a unit as a condition only, how, and its coefficient."""
        x = next(x for x in row if x in chosen)
        most = max(0, *row.values())
        total: list[Part] = [(most, self.one[u])]
        total += [(most - a, f"x{y}") for y, a in row.items() if y != x]
        literals = [-x] * (most != row[x])
        return total, literals, most - row[x]

    def since(self, i: int, t: int, factor: int) -> tuple[list[Part], list[Literal], int]:
        """Return a multiple of that a cut starts at ``t`` or later."""
        if t == 0:
            v = self.cut(i)
            return ([] if v is None or v == self.series.sink else [(factor, self.positive(v))]), [], 0
        begun = self.begun(i, t)
        return [(factor, begun.forth)], [-begun.literal], factor * begun.if_false

    def so_far(self, i: int, f: int, m: int, factor: int) -> tuple[list[Part], list[Literal], int]:
        """Return a multiple of that so much memory is used."""
        if m == 0:
            return [(factor, self.before[i, f])], [], 0
        used = self.used(i, f, m)
        return [(factor, used.forth)], [-used.literal], factor * used.if_false

    def _sums_of_memory(self) -> None:
        """Say of each cut that memory used, and still to be used, is neither negative nor more."""
        sum_of = self.script.sum
        self.edges: dict[object, tuple[int, int | None, tuple[Literal, ...]]] = {}
        self.none: dict[tuple[int, int], int | None] = {}
        self.before: dict[tuple[int, int], int | None] = {}
        self.behind: dict[tuple[int, int], int | None] = {}
        self.later: dict[tuple[int, int], int | None] = {}
        self.left: dict[tuple[int, int], int] = {}
        for f, _ in self.limited:
            needs = [self.need(i, f) for i in range(self.last + 1)]
            self.before[-1, f] = self.behind[self.last, f] = self.later[self.last, f] = None
            self.left[self.last, f] = 0
            for i, need in enumerate(needs):
                self.none[i, f] = sum_of(self.not_negative(need))
                self.before[i, f] = sum_of([(1, self.before[i - 1, f]), (1, self.none[i, f])])
            for i in reversed(range(self.last + 1)):
                most = [(a, f"~x{x}") for x, a in needs[i].items()]
                self.behind[i - 1, f] = sum_of([(1, self.behind[i, f]), (1, self.none[i, f])])
                self.later[i - 1, f] = sum_of([(1, self.later[i, f]), *most])
                self.left[i - 1, f] = self.left[i, f] + sum(needs[i].values())

    # --- forwards -------------------------------------------------------------------------

    def _forwards(self) -> None:
        script, start = self.script, Label(None, (0,) * len(self.limited), 0)
        wrong = self._excluded(-1, start)
        if wrong is not None:
            return
        whole = script.all_of([])
        labels = {start: whole}
        invariant = Clause(whole[0].back, frozenset([whole[0].literal]))
        for i in range(self.last + 1):
            labels, invariant = self._step(i, labels, invariant)
            self.counts.append(len(labels))
            if not labels:
                assert not invariant.literals
                return
            if len(labels) > LABELS:
                raise TooLargeError(f"there are more than {LABELS} labels after part {i}")
        raise NotRefutedError

    def _excluded(self, i: int, label: Label) -> Clause | None:
        """Return a clause that excludes a label, if there is one."""
        for j, ((f, limit), m) in enumerate(zip(self.limited, label.memory, strict=True)):
            if m > limit:
                used = self.used(i, f, limit + 1)
                total = [(1, self.room[f]), (1, used.forth), (1, self.behind[i, f])]
                return self.script.clause(total, [-used.literal], used.if_false)
        best = min((each.too_late(i, label.device, label.memory), j) for j, each in enumerate(self.sets))
        if best[0] <= label.time:
            return self.sets[best[1]].excluded(i, label.device, label.memory, best[0])
        return None

    def _step(self, i: int, labels: dict[Label, Whole], invariant: Clause) -> tuple[dict[Label, Whole], Clause]:
        script = self.script
        target: dict[Label, Clause | None] = {}
        for label in labels:
            for outcome in self.outcomes[i][label.device]:
                new = self._next(i, label, outcome)
                if new not in target:
                    target[new] = self._excluded(i, new)
        kept: dict[int | None, list[Label]] = {}
        for new in sorted((x for x, clause in target.items() if clause is None), key=lambda x: (x.time, x.memory)):
            front = kept.setdefault(new.device, [])
            better = next((x for x in front if all(a <= b for a, b in zip(x.memory, new.memory))), None)
            if better is None:
                front.append(new)
                if len(front) > LABELS: raise TooLargeError("labels")
                better = new
            target[new] = better
        wholes = {new: script.all_of(self._parts(i, new)) for front in kept.values() for new in front}
        clauses = []
        for label, whole in labels.items():
            ways = []
            for outcome in self.outcomes[i][label.device]:
                to = target[self._next(i, label, outcome)]
                if isinstance(to, Label):
                    truth, parts = wholes[to]
                    to = Clause(truth.back, frozenset((truth.literal, *(-y for y in parts))))
                pair = self._pair(i, label, whole, outcome, to)
                ways.append((self.wholes[i][outcome][0].literal, pair))
            each, x = script.cases(ways, self.shown[i][label.device]), self.at(i - 1, label.device)
            if x is not None and -x in each.literals:
                each = script.resolved([each, script.implied(whole, x)])
            clauses.append((whole[0].literal, each))
        return wholes, script.cases(clauses, invariant)

    def _next(self, i: int, label: Label, outcome: Outcome) -> Label:
        memory = []
        for (f, limit), m, n in zip(self.limited, label.memory, outcome.memory, strict=True):
            memory.append(m + n if limit - m - n < self.left[i, f] else 0)
        return Label(outcome.device, tuple(memory), min(label.time + outcome.time, self.horizon + 1))

    def _parts(self, i: int, label: Label) -> list[Literal]:
        there = self.at(i, label.device)
        parts = [] if there is None else [there]
        for (f, _), m in zip(self.limited, label.memory, strict=True):
            if m:
                parts.append(self.used(i, f, m).literal)
        if label.time:
            parts.append(self.begun(i, label.time).literal)
        return parts

    def _pair(self, i: int, label: Label, whole: Whole, outcome: Outcome, to: Clause) -> Clause:
        """Prove what a label and an outcome come to."""
        script, clauses = self.script, [to]
        known = {*whole[1], *self.wholes[i][outcome][1]}
        for literal in to.literals:
            if literal < 0 and -literal not in known:
                clauses.append(self._given(i, label, outcome, -literal))
        needed = {-x for clause in clauses for x in clause.literals}
        for given in (whole, self.wholes[i][outcome]):
            clauses += [script.implied(given, x) for x in given[1] if x in needed]
        return script.resolved(clauses)

    def _given(self, i: int, label: Label, outcome: Outcome, literal: Literal) -> Clause:
        """Return the clause by which a part of a new label follows from the old one."""
        f, least = self.meaning[literal]
        if f is None:
            truth, more = self.begun(i, least), self.lasts(i, outcome.time)
            total, literals, large = self.since(i - 1, label.time, 1)
        else:
            j = [f for f, _ in self.limited].index(f)
            truth = self.used(i, f, least)
            total, literals, large = self.so_far(i - 1, f, label.memory[j], 1)
            if not (m := outcome.memory[j]):
                total = [(1, truth.back), *total, (1, self.none[i, f])]
                return self.script.clause(total, [truth.literal, *literals], truth.if_true + large)
            more = self.takes(i, f, m)
        total = [(1, truth.back), *total, (1, more.forth)]
        large += truth.if_true + more.if_false
        return self.script.clause(total, [truth.literal, *literals, -more.literal], large)


def difference(one: Mapping[int, int], other: Mapping[int, int]) -> Terms:
    """Subtract rows."""
    terms = dict(one)
    add(terms, other, -1)
    return terms


def add(terms: Terms, more: Mapping[int, int], factor: int) -> None:
    """Add a multiple of a row."""
    for x, a in more.items():
        terms[x] = terms.get(x, 0) + factor * a

"""A formula of rows over 0-1 variables, and a proof by sums that it has no solution.

Rows and the lines of the proof are numbered together, as VeriPB does. Every variable beyond the
formula stands for a row, and is introduced with it: true if the row holds, false if it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

#: Coefficients of variables.
Terms = dict[int, int]

#: A sum of coefficients times variables, and what it is at least.
Row = tuple[Terms, int]

#: A variable, or its number negated for its opposite.
Literal = int

#: A factor, and what to add: a row by number, or a literal as text; nothing if ``None``.
Summand = tuple[int, int | str | None]

#: How many bytes a proof may have.
BYTES = 50_000_000


class TooLargeError(Exception):
    """The proof is too large; the message says what of it."""


class Clause(NamedTuple):
    """A derived clause: its number in the proof, and its literals."""

    number: int | None
    literals: frozenset[Literal]


class Truth(NamedTuple):
    """A variable that stands for a row.

    Attributes
    ----------
    literal : int
        The variable.
    forth, back : int
        The numbers of two rows: that the row holds if the variable is true, and that it does not
        if the variable is false.
    if_false, if_true : int
        The coefficients of the variable there, which are large.
    """

    literal: Literal
    forth: int
    back: int
    if_false: int
    if_true: int


#: A variable that is true if several literals are, and these.
Whole = tuple[Truth, tuple[Literal, ...]]


class Script:
    """A formula, and the lines of a proof.

    Attributes
    ----------
    variables : int
        How many there are, with those that the proof introduces.
    rows : list of Row
        The formula.
    lines : list of str
        The proof, as VeriPB writes it.
    size : int
        Its bytes.
    """

    def __init__(self) -> None:
        self.variables = self.size = 0
        self.rows: list[Row] = []
        self.lines: list[str] = []
        self._known: dict[str, int] = {}
        self._truths: dict[object, Truth] = {}

    def variable(self) -> int:
        """Return a new variable."""
        self.variables += 1
        return self.variables

    def row(self, terms: Iterable[tuple[int, Literal]], least: int) -> int:
        """Add a row of the formula, over literals; return its number."""
        self.rows.append(_over_variables(terms, least))
        return len(self.rows)

    def sum(self, summands: Iterable[Summand], end: str = "") -> int | None:
        """Add rows and literals; return the number of the result, or ``None`` if it is 0 ≥ 0."""
        kept = [(factor, what) for factor, what in summands if factor and what is not None]
        if not kept:
            return None
        if len(kept) == 1 and kept[0][0] == 1 and isinstance(kept[0][1], int) and end in ("", "s"):
            return kept[0][1]
        words: list[str] = []
        for factor, what in kept:
            once = [str(what)] if factor == 1 else [str(what), str(factor), "*"]
            words += [*once, "+"] if words else once
        body = " ".join([*words, *([end] if end else [])])
        if body not in self._known:
            self._known[body] = self._write(f"pol {body}")
        return self._known[body]

    def truth(self, terms: Mapping[int, int], least: int, kind: str = "") -> Truth:
        """Return the variable that stands for a row; those of different kinds are different."""
        terms = {x: a for x, a in terms.items() if a}
        key = kind, least, *sorted(terms.items())
        if key not in self._truths:
            low, high = (sum(a for a in terms.values() if a * sign > 0) for sign in (-1, 1))
            z, if_false, if_true = self.variable(), max(1, least - low), max(1, high - least + 1)
            holds = [*((a, x) for x, a in terms.items()), (if_false, -z)]
            fails = [*((-a, x) for x, a in terms.items()), (if_true, z)]
            forth = self._write(f"red {text(_over_variables(holds, least))} x{z} -> 0")
            back = self._write(f"red {text(_over_variables(fails, 1 - least))} x{z} -> 1")
            self._truths[key] = Truth(z, forth, back, if_false, if_true)
        return self._truths[key]

    def all_of(self, literals: Iterable[int]) -> Whole:
        """Return the variable that is true if all of these are."""
        each = (*dict.fromkeys(literals),)
        return self.truth(dict.fromkeys(each, 1), len(each), "all"), each

    def implied(self, whole: Whole, literal: int) -> Clause:
        """Return that one of these literals is true if all are."""
        truth, each = whole
        others: list[Summand] = [(1, f"~x{x}") for x in each if x != literal]
        number = self.sum([(1, truth.forth), *others], "s")
        return Clause(number, frozenset((-truth.literal, literal)))

    def resolved(self, clause: Clause, more: Iterable[Clause]) -> Clause:
        """Add to a clause others, each with one literal whose opposite it has."""
        parts = [clause, *more]
        literals = set[Literal]().union(*(part.literals for part in parts))
        left = frozenset(x for x in literals if -x not in literals)
        return Clause(self.sum([(1, part.number) for part in parts], "s"), left)

    def cases(self, clauses: Iterable[tuple[Literal, Clause]], choice: Clause | None) -> Clause:
        """Return what holds in every case, of which one applies by the clause ``choice``.

        Without it, there are two cases, which are opposite. A clause that holds without its case is
        the result, and no further ones are asked for.
        """
        literals, given, total = set[Literal](), set[Literal](), list[Summand]()
        for case, clause in clauses:
            if -case not in clause.literals:
                return clause
            given.add(case)
            literals |= clause.literals - {-case}
            total.append((1, clause.number))
        if choice is not None:
            literals |= choice.literals - given
            total.append((1, choice.number))
        return Clause(self.sum(total, "s"), frozenset(literals))

    def end(self, contradiction: Clause) -> None:
        """Leave out what follows the empty clause."""
        assert contradiction.number is not None
        assert not contradiction.literals
        del self.lines[contradiction.number - len(self.rows) :]

    def _write(self, line: str) -> int:
        self.lines.append(line)
        self.size += len(line) + 1
        if self.size > BYTES:
            raise TooLargeError(f"it has more than {BYTES} bytes")
        return len(self.rows) + len(self.lines)


class Conditional:
    """A sum of rows in which only literals are left, on whose opposites it depends: a clause.

    Parameters
    ----------
    goal : Truth, optional
        What is to be shown: the sum begins with the opposite of its row.
    """

    def __init__(self, script: Script, goal: Truth | None = None) -> None:
        self._script, self._total = script, list[Summand]()
        self._literals, self._large = set[Literal](), 1
        if goal is not None:
            self.add(1, goal.back)
            self.unless(goal.literal, goal.if_true)

    def add(self, factor: int, what: int | str | None) -> None:
        """Add a row or a literal."""
        self._total.append((factor, what))

    def given(self, truth: Truth, factor: int = 1) -> None:
        """Add the row for which a variable stands."""
        if factor:
            self.add(factor, truth.forth)
            self.unless(-truth.literal, factor * truth.if_false)

    def drop(self, terms: Mapping[int, int]) -> None:
        """Add variables, whose coefficients this cancels or increases to 0."""
        self._total += [(a, f"x{x}") for x, a in terms.items()]

    def decided(self, terms: Mapping[int, int], chosen: int, one: int) -> None:
        """Leave a condition of variables of which one at most is true, by a row: which one."""
        most = max(0, *terms.values())
        self.add(most, one)
        self.drop({x: most - a for x, a in terms.items() if x != chosen})
        if most != terms[chosen]:
            self.unless(-chosen, most - terms[chosen])

    def unless(self, literal: Literal, large: int) -> None:
        """Say that rows leave a literal, with no larger coefficient in all."""
        self._literals.add(literal)
        self._large += large

    def clause(self) -> Clause:
        """Return the clause."""
        return Clause(self._script.sum(self._total, f"{self._large} d"), frozenset(self._literals))


def _over_variables(terms: Iterable[tuple[int, Literal]], least: int) -> Row:
    row: Terms = {}
    for a, x in terms:
        row[abs(x)] = row.get(abs(x), 0) + (a if x > 0 else -a)
        least -= 0 if x > 0 else a
    return {x: a for x, a in row.items() if a}, least


def text(row: Row) -> str:
    """Return a row as OPB writes it."""
    return " ".join([*(f"{a:+d} x{x}" for x, a in row[0].items()), f">= {row[1]} ;"])


def add(terms: Terms, more: Mapping[int, int], factor: int = 1) -> Terms:
    """Add a multiple of a row to another, and return that."""
    for x, a in more.items():
        terms[x] = terms.get(x, 0) + factor * a
    return terms

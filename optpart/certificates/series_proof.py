"""The proof of tier ``series`` as sums of rows: from the outcomes of each part to a contradiction.

- At the prices of a set, what is left after a cut takes and pays at least its potential. This
  follows from the outcomes, part by part, from the last.
- At each cut, one of some *labels* holds: the device of the cut, the memory used so far on each
  device at least, and its least start. A label and an outcome give a label of the next cut. It is
  left out if it implies another, if it uses more memory than there is, or if it starts too late for
  its potential. In the end, no label is left.

Each label is said of one schedule: where dominance compares two, it is enough here that the label
which is nowhere more follows from the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import ge
from typing import Any

from optpart.certificates.check import Prices, Windows
from optpart.certificates.cutting_planes import (
    Clause,
    Conditional,
    Literal,
    Terms,
    TooLargeError,
    Truth,
    Whole,
    add,
)
from optpart.certificates.series_parts import Outcome, PartRows
from optpart.certificates.series_rows import SeriesRows

#: How many labels may be left at a cut.
LABELS = 20_000

#: What holds at a cut; its device, memory used, and least start.
Label = Outcome


def refutation(windows: Windows, record: Mapping[str, Any]) -> SeriesProof | None:
    """Return a refutation, in which parts are joined if the cuts alone do not suffice.

    Returns
    -------
    SeriesProof or None
        ``None`` if there is none.

    Raises
    ------
    TooLargeError
        If there are too many ways, labels or lines.
    """
    proofs = (SeriesProof(windows, record, joined=joined) for joined in (False, True))
    return next((proof for proof in proofs if proof.complete), None)


class _Priced:
    """What is left after each cut, at the prices of a set.

    Potentials and prices are multiplied by ``per``. Row ``i`` of ``rest`` says that what is left
    after cut ``i``, in time and in memory at its price, is at least the potential there.
    """

    def __init__(self, rows: SeriesRows, parts: list[PartRows], prices: Prices) -> None:
        self.rows, self.per = rows, prices.per
        self.price = {f: prices.numerator[f] for f in rows.limited}
        self.potential: dict[int, dict[int, int]] = {rows.last: {0: 0}}
        self.rest: dict[int, int | None] = {rows.last: None}
        for i in reversed(range(rows.last + 1)):
            self._add(i, parts[i])

    def _add(self, i: int, part: PartRows) -> None:
        rows, script, per = self.rows, self.rows.script, self.per
        potential, never = self.potential[i], per * (rows.horizon + 1)

        def least(outcome: Outcome) -> int:
            paid = zip(self.price.values(), outcome.memory, strict=True)
            pays = sum(price * m for price, m in paid)
            return per * outcome.time + pays + potential[outcome.device]

        outcomes = part.outcomes.items()
        self.potential[i - 1] = {d: min(map(least, each), default=never) for d, each in outcomes}
        gap, constant = rows.gap(i)
        terms = add({}, gap, per)
        for f, price in self.price.items():
            add(terms, rows.need(range(i, i + 1), f), price)
        add(terms, self._places(i))
        add(terms, self._places(i - 1), -1)
        at_least = -per * constant
        if rows.cut(i - 1) is None:
            at_least += self.potential[i - 1][0]
        truth = script.truth(terms, at_least, "left")
        cases, there = [], rows.at(i - 1)
        for d, shown in part.shown.items():
            each = (
                (part.whole[x][0].literal, self._from(part, d, x, truth)) for x in part.outcomes[d]
            )
            cases.append((there[d], script.cases(each, shown)))
        v, clause = rows.cut(i - 1), cases[0][1]
        if v is not None:
            known = ((x, each) for x, each in cases if x is not None)
            clause = script.cases(known, rows.some[rows.unit[v]])
        self.rest[i - 1] = script.sum(
            [(1, truth.forth), (truth.if_false, clause.number), (1, self.rest[i])]
        )

    def _places(self, i: int) -> Terms:
        """Return the potentials of a cut as coefficients of its places."""
        there = self.rows.at(i).items()
        return {x: self.potential[i][d] for d, x in there if x is not None}

    def _decided(self, total: Conditional, i: int, d: int, places: Terms) -> None:
        v, x = self.rows.cut(i), self.rows.at(i)[d]
        if v is not None and x is not None:
            total.decided(places, x, self.rows.one[self.rows.unit[v]])

    def _from(self, part: PartRows, d: int, outcome: Outcome, truth: Truth) -> Clause:
        """Prove what a part and its potentials come to, from one of its outcomes."""
        rows, i = self.rows, part.i
        total = Conditional(rows.script, truth)
        total.given(rows.lasts(i, outcome.time), self.per)
        for (f, price), m in zip(self.price.items(), outcome.memory, strict=True):
            rows.add_memory(total, range(i, i + 1), f, m, price)
        after = {x: -a for x, a in self._places(i).items()}
        before = self._places(i - 1)
        if after.keys() & before.keys():  # the two cuts are colocated
            self._decided(total, i, outcome.device, add(before, after))
        else:
            self._decided(total, i, outcome.device, after)
            self._decided(total, i - 1, d, before)
        clause, whole = total.clause(), part.whole[outcome]
        given = [rows.script.implied(whole, x) for x in whole[1] if -x in clause.literals]
        return rows.script.resolved(clause, given)

    def too_late(self, i: int, label: Label) -> int:
        """Return the least start of a cut that is too late for its device and memory."""
        left = self.per * self.rows.horizon - self.potential[i][label.device]
        for (f, limit), m in zip(self.rows.limited.items(), label.memory, strict=True):
            left += self.price[f] * min(limit - m, self.rows.most(i, f))
        return max(0, left // self.per + 1)

    def excluded(self, i: int, label: Label, t: int) -> Clause:
        """Prove that a cut does not start so late."""
        rows, total = self.rows, Conditional(self.rows.script)
        total.add(1, self.rest[i])
        rows.add_start(total, i, t, self.per)
        for (f, limit), m in zip(rows.limited.items(), label.memory, strict=True):
            if limit - m < rows.most(i, f):
                total.add(self.price[f], rows.room[f])
                rows.add_memory(total, range(i + 1), f, m, self.price[f])
            else:
                total.add(self.price[f], rows.everything(range(i + 1, rows.last + 1), f))
        self._decided(total, i, label.device, {x: -a for x, a in self._places(i).items()})
        return total.clause()


class SeriesProof:
    """What follows in series from places, starts and orders: a refutation, if it is complete.

    Parameters
    ----------
    record : dict
        The record of the certificate, of which only the prices of its sets are used.
    joined : bool
        Whether to join parts until nothing connects them but the cut between them.

    Attributes
    ----------
    rows : SeriesRows
        The formula; its ``script`` has the lines of the proof, of which the last is ``0 ≥ 1``, if
        it is complete.
    complete : bool
        Whether the formula is refuted. It leaves out what connects parts other than by cuts.
    counts : list of int
        How many labels there are at each cut.

    Raises
    ------
    TooLargeError
        If there are too many ways, labels or lines.
    """

    def __init__(
        self, windows: Windows, record: Mapping[str, Any], *, joined: bool = False
    ) -> None:
        self.rows = rows = SeriesRows(windows, joined=joined)
        self._script = rows.script
        self._parts = [PartRows(rows, i) for i in range(rows.last + 1)]
        prices = (Prices(rows.series, each) for each in record["sets"])
        self._sets = [_Priced(rows, self._parts, each) for each in prices]
        self._steps: dict[tuple[int, ...], Clause] = {}
        self._meaning: dict[Literal, tuple[int | None, int]] = {}
        self.counts: list[int] = []
        self.complete = self._refute()

    def _refute(self) -> bool:
        """Write the proof from cut to cut; return whether no label is left at last."""
        start = Label(0, (0,) * len(self.rows.limited), 0)
        if (wrong := self._excluded(-1, start)) is not None:
            self._script.end(wrong)
            return True
        whole = self._script.all_of([])
        labels, one = {start: whole}, Clause(whole[0].back, frozenset([whole[0].literal]))
        for i in range(self.rows.last + 1):
            labels, one = self._step(i, labels, one)
            self.counts.append(len(labels))
            if not labels:
                self._script.end(one)
                return True
        return False

    def _excluded(self, i: int, label: Label) -> Clause | None:
        """Return a clause that excludes a label, if there is one."""
        rows = self.rows
        for (f, limit), m in zip(rows.limited.items(), label.memory, strict=True):
            if m > limit:
                total = Conditional(self._script)
                total.add(1, rows.room[f])
                total.given(self._used(i, f, limit + 1))
                total.add(1, rows.nothing(range(i + 1, rows.last + 1), f))
                return total.clause()
        t, j = min((each.too_late(i, label), j) for j, each in enumerate(self._sets))
        if t > label.time:
            return None
        if t:
            self._begun(i, t)
        for (f, _), m in zip(rows.limited.items(), label.memory, strict=True):
            if m:
                self._used(i, f, m)
        return self._sets[j].excluded(i, label, t)

    # --- from cut to cut -------------------------------------------------------------------

    def _step(
        self, i: int, labels: dict[Label, Whole], one: Clause
    ) -> tuple[dict[Label, Whole], Clause]:
        """Return the labels of a cut, and that one of them holds, from those before."""
        script, part = self._script, self._parts[i]
        whole, goals = self._goals(i, labels)
        cases = []
        for label, before in labels.items():
            ways = []
            for outcome in part.outcomes[label.device]:
                goal = goals[self._next(i, label, outcome)]
                pair = self._pair(i, label, before, outcome, goal)
                ways.append((part.whole[outcome][0].literal, pair))
            found, there = script.cases(ways, part.shown[label.device]), self.rows.at(i - 1)
            x = there[label.device]
            given = [] if x is None or -x not in found.literals else [script.implied(before, x)]
            cases.append((before[0].literal, script.resolved(found, given)))
        return whole, script.cases(cases, one)

    def _goals(
        self, i: int, labels: dict[Label, Whole]
    ) -> tuple[dict[Label, Whole], dict[Label, Clause]]:
        """Return the labels of a cut, and of all that come up which clause takes their place.

        Its literals are the opposites of some of theirs and, unless that is impossible, the label
        that they imply.
        """
        part, goals, left = self._parts[i], dict[Label, Clause](), dict[Label, None]()
        for label in labels:
            for outcome in part.outcomes[label.device]:
                new = self._next(i, label, outcome)
                if new not in goals and new not in left:
                    clause = self._excluded(i, new)
                    if clause is None:
                        left[new] = None
                    else:
                        goals[new] = clause
        whole: dict[Label, Whole] = {}
        front: dict[int, list[Label]] = {}
        for new in sorted(left, key=lambda label: label[::-1]):
            kept = front.setdefault(new.device, [])
            # None of them is later.
            least = next((x for x in kept if all(map(ge, new.memory, x.memory))), None)
            if least is None:
                kept.append(new)
                truth, parts = whole[new] = self._script.all_of(self._literals(i, new))
                goals[new] = Clause(truth.back, frozenset((truth.literal, *(-x for x in parts))))
                if len(kept) > LABELS:
                    raise TooLargeError(f"a cut has more than {LABELS} labels")
            else:
                goals[new] = goals[least]
        return whole, goals

    def _next(self, i: int, label: Label, outcome: Outcome) -> Label:
        """Return the label after an outcome; memory of which there is enough does not matter."""
        rows, memory = self.rows, []
        each = zip(rows.limited.items(), label.memory, outcome.memory, strict=True)
        for (f, limit), m, n in each:
            memory.append(m + n if limit - m - n < rows.most(i, f) else 0)
        time = min(label.time + outcome.time, rows.horizon + 1)
        return Label(outcome.device, tuple(memory), time)

    def _literals(self, i: int, label: Label) -> list[Literal]:
        there = self.rows.at(i)[label.device]
        memory = zip(self.rows.limited, label.memory, strict=True)
        used = [self._used(i, f, m).literal for f, m in memory if m]
        begun = [self._begun(i, label.time).literal] if label.time else []
        return [*([] if there is None else [there]), *used, *begun]

    def _pair(self, i: int, label: Label, before: Whole, outcome: Outcome, goal: Clause) -> Clause:
        """Prove what a label and an outcome come to: another label, or nothing."""
        script, after = self._script, self._parts[i].whole[outcome]
        known = {*before[1], *after[1]}
        more = [
            self._given(i, label, outcome, -x)
            for x in sorted(goal.literals)
            if x < 0 and -x not in known
        ]
        needed = {-x for clause in (goal, *more) for x in clause.literals}
        for whole in (before, after):
            # Once only, if both say where a unit is.
            more += [script.implied(whole, x) for x in whole[1] if x in needed]
            needed.difference_update(whole[1])
        return script.resolved(goal, more)

    def _given(self, i: int, label: Label, outcome: Outcome, literal: Literal) -> Clause:
        """Return how a literal of a label follows from those of the label before and an outcome."""
        rows, (f, least) = self.rows, self._meaning[literal]
        j = None if f is None else [*rows.limited].index(f)
        both = [x.time if j is None else x.memory[j] for x in (label, outcome)]
        key = (i, literal, *both)
        if key not in self._steps:
            if f is None:
                total = Conditional(self._script, rows.begun(i, least))
                rows.add_start(total, i - 1, both[0])
                total.given(rows.lasts(i, both[1]))
            else:
                total = Conditional(self._script, rows.takes(range(i + 1), f, least))
                rows.add_memory(total, range(i), f, both[0])
                rows.add_memory(total, range(i, i + 1), f, both[1])
            self._steps[key] = total.clause()
        return self._steps[key]

    def _begun(self, i: int, t: int) -> Truth:
        truth = self.rows.begun(i, t)
        self._meaning[truth.literal] = None, t
        return truth

    def _used(self, i: int, f: int, m: int) -> Truth:
        truth = self.rows.takes(range(i + 1), f, m)
        self._meaning[truth.literal] = f, m
        return truth

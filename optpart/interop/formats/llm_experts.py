"""Experts of a mixture: how many the tokens of a step use, and groups of them as vertices.

Uses of experts are counted by whoever ran the model: a row of counts for each mixture, in the order
of its blocks, one for each expert (:func:`read`). If expert ``e`` has ``c[e]`` of ``C`` uses, and
each token uses ``k`` different experts, then a token uses it with probability
``p[e] = k c[e] / C``. Tokens are taken to be independent of each other, so that ``n`` of them are
expected to use ``Σ 1 − (1 − p[e])^n`` different experts. This number is rounded to nine decimals.
Uniform use is that of equal counts. Without any counts, tokens use as many as they can:
``min(E, n k)`` of ``E``.

Groups have equally many experts, as nearly as possible, the first ones one more. By counts, those
that are used most are in the first group; otherwise, they follow their numbers. Of the work, a
group has the share of its uses; of experts that tokens use without counts, that of its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

from optpart.base.errors import FaultsOf, InputError
from optpart.base.files import read_text
from optpart.interop.formats.json import read_json, sequence
from optpart.interop.formats.parsing import is_whole
from optpart.problem.rational import shown

#: In place of a file: all experts are used alike.
UNIFORM = "uniform"

#: Far beyond any measurement.
_MOST_USES = 10**15

#: Digits of the sums, and those that are kept after the point.
_EXACT, _KEPT = Context(prec=60), Decimal("1e-9")

Counts = Sequence[Sequence[int]]


class Group(NamedTuple):
    """Experts of a block.

    Attributes
    ----------
    experts : int
    work : Fraction
        Share of the work of all.
    used : Fraction
        How many of them the tokens of a step use.
    """

    experts: int
    work: Fraction
    used: Fraction


class Use(NamedTuple):
    """How the tokens of a step use the experts of every mixture.

    Attributes
    ----------
    experts, used, tokens : int
        How many there are, how many of them a token uses, and how many tokens there are.
    counts : sequence of sequence of int, optional
        Of every mixture.
    """

    experts: int
    used: int
    tokens: int
    counts: Counts | None = None

    def groups(self, mixture: int, number: int = 1) -> list[Group]:
        """Return so many groups of the experts of a mixture."""
        least, more = divmod(self.experts, number)
        sizes = [least + (i < more) for i in range(number)]
        if self.counts is None:
            most = min(self.experts, self.tokens * self.used)
            shares = [Fraction(size, self.experts) for size in sizes]
            return [Group(s, x, most * x) for s, x in zip(sizes, shares, strict=True)]
        row = self.counts[mixture]
        ordered = sorted(row, reverse=True)
        ends = pairwise(accumulate(sizes, initial=0))
        inside = [ordered[first:end] for first, end in ends]
        return [
            Group(len(each), Fraction(sum(each), sum(row)), self._expected(each, sum(row)))
            for each in inside
        ]

    def _expected(self, counts: Sequence[int], total: int) -> Fraction:
        spared = Decimal(0)
        for count in counts:
            left = _EXACT.divide(Decimal(total - self.used * count), Decimal(total))
            spared = _EXACT.add(spared, _EXACT.power(left, self.tokens))
        return Fraction(_EXACT.subtract(Decimal(len(counts)), spared).quantize(_KEPT))


def use_of(
    given: str | Path | Counts | None, size: tuple[int, int], mixtures: int, tokens: int
) -> Use:
    """Return how the tokens of a step use the experts of a model.

    Parameters
    ----------
    given : path, ``"uniform"``, or sequence of sequence of int, optional
        Counts of uses, or the file that has them.
    size : (int, int)
        How many experts there are, and how many a token uses.
    mixtures : int
        Blocks with a mixture.

    Raises
    ------
    InputError
        If the counts are not those of such a model.
    """
    experts, used = size
    if given is None:
        return Use(experts, used, tokens)
    if not mixtures:
        raise InputError("expert_use", "the model has no experts", "leave the option out")
    if isinstance(given, str | Path):
        if str(given) == UNIFORM:
            return Use(experts, used, tokens, [[1] * experts] * mixtures)
        with FaultsOf(given):
            return Use(experts, used, tokens, _checked(read(given), size, mixtures))
    return Use(experts, used, tokens, _checked(given, size, mixtures))


def read(path: str | Path) -> Counts:
    """Read counts of uses: a list of lists in JSON (``.json``), otherwise CSV without a header."""
    if Path(path).suffix.lower() == ".json":
        return [sequence(row, f"row {r}") for r, row in enumerate(sequence(read_json(path), ""), 1)]
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    return [
        [_whole(cell.strip(), f"row {r}, column {c}") for c, cell in enumerate(line.split(","), 1)]
        for r, line in enumerate(lines, 1)
    ]


def _whole(text: str, place: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InputError(place, shown(text), f"give a whole number of 0 to {_MOST_USES:,}")
    return int(text)


def _checked(rows: Counts, size: tuple[int, int], mixtures: int) -> Counts:
    """Return counts that such a model may have."""
    experts, used = size
    if len(rows) != mixtures:
        problem = f"{len(rows)} rows, but {mixtures} blocks have experts"
        raise InputError("expert use", problem, "give a row for each of these blocks, in order")
    for r, row in enumerate(rows, 1):
        if len(row) != experts:
            problem, remedy = f"{len(row)} counts, but {experts} experts", "give one for each"
            raise InputError(f"row {r}", problem, remedy)
        for c, count in enumerate(row, 1):
            if not is_whole(count, 0, _MOST_USES):
                remedy = f"give a whole number of 0 to {_MOST_USES:,}"
                raise InputError(f"row {r}, column {c}", shown(count), remedy)
        total, most = sum(row), max(row)
        if not total or used * most > total:
            problem = f"an expert has {most:,} of {total:,} uses"
            why = f"a token uses {used} different experts" if total else "tokens use some"
            remedy = "count every expert that a token uses once"
            raise InputError(f"row {r}", f"{problem}, but {why}", remedy)
    return rows

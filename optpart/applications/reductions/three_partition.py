"""3-PARTITION → TF.

M. R. Garey, D. S. Johnson, Computers and Intractability (1979), SP15: given ``3m`` whole numbers of
sum ``m·B``, each between ``B/4`` and ``B/2``, do they split into ``m`` triples of sum ``B``? As run
times on ``m`` equal devices, they can end at ``B`` if and only if they do: every device is then
busy from 0 to ``B``, and runs three of them, since each takes between a quarter and a half of that.
The problem is NP-complete in the strong sense, so no table of sums helps; TF, even without edges,
is strongly NP-hard, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from optpart.applications.reductions.base import Question, Reduction, one_after_the_other, wholes
from optpart.applications.reductions.partition import listed, run_times
from optpart.base.errors import InputError
from optpart.problem.cluster import Cluster
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Triples = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Threes:
    """``3m`` numbers, each between a quarter and a half of ``bound = sum / m``."""

    numbers: tuple[int, ...]

    def __post_init__(self) -> None:
        count, total = len(self.numbers), sum(self.numbers)
        if not count or count % 3:
            raise InputError("numbers", f"{count} numbers", "give three, six, nine, …")
        if total % self.triples:
            raise InputError(
                "numbers", f"sum {total}", f"give numbers whose sum is divisible by {self.triples}"
            )
        for i, number in enumerate(self.numbers):
            if not self.bound < 4 * number or not 2 * number < self.bound:
                raise InputError(
                    f"numbers[{i}]",
                    f"{number} is not between a quarter and a half of {self.bound}",
                    "give numbers closer to one another",
                )

    @property
    def triples(self) -> int:
        """The number of triples."""
        return len(self.numbers) // 3

    @property
    def bound(self) -> int:
        """The sum of each triple."""
        return sum(self.numbers) // self.triples


class ThreePartition(Reduction[Threes, Triples]):
    """Numbers become run times; triples become devices."""

    name = "three-partition"
    title = "3-PARTITION, strongly NP-complete"
    reference = "Garey & Johnson 1975; 1979, SP15"
    reading = "TF is strongly NP-hard without edges"
    size = 12
    keys = frozenset({"numbers"})

    def read(self, document: Mapping[str, Any]) -> Threes:
        """Read a list of positive whole numbers."""
        return Threes(wholes(document["numbers"], "numbers"))

    def document(self, source: Threes) -> dict[str, Any]:
        """Return the list."""
        return {"problem": self.name, "numbers": list(source.numbers)}

    def random(self, size: int, rng: np.random.Generator) -> Threes:
        """Draw about ``size`` numbers, a multiple of three, such that both answers are likely."""
        triples = max(2, round(size / 3))
        return random_threes(triples, critical_bound(triples), rng)

    def to_tf(self, source: Threes) -> Question:
        """Build a vertex per number, and ``m`` devices of speed 1."""
        instance = Instance(
            run_times(source.numbers),
            Cluster.uniform(source.triples),
            name=f"three-partition-{source.triples}",
            source="3-PARTITION (Garey & Johnson SP15)",
        )
        return Question(instance, Fraction(source.bound))

    def forth(self, source: Threes, solution: Triples) -> Schedule:
        """Run each triple on its own device; the triple of the first number is on the first."""
        placement = [0] * len(source.numbers)
        for d, triple in enumerate(sorted(solution, key=min)):
            for i in triple:
                placement[i] = d
        return one_after_the_other(self.to_tf(source), placement)

    def back(self, source: Threes, schedule: Schedule) -> Triples:
        """Return the numbers on each device."""
        device = schedule.placement.tolist()
        return tuple(
            tuple(i for i, d in enumerate(device) if d == chosen)
            for chosen in range(source.triples)
        )

    def check(self, source: Threes, solution: Triples) -> str:
        """Check that every number is in one triple, and check every sum."""
        if sorted(i for triple in solution for i in triple) != list(range(len(source.numbers))):
            return "not every number is in exactly one triple"
        for triple in solution:
            total = sum(source.numbers[i] for i in triple)
            if len(triple) != 3 or total != source.bound:
                return f"{len(triple)} numbers of sum {total}, not 3 of sum {source.bound}"
        return ""

    def describe(self, source: Threes) -> str:
        """Return the numbers and the bound."""
        return (
            f"{len(source.numbers)} numbers: {listed(source.numbers, 18)}; do they split into "
            f"{source.triples} triples of sum {source.bound}?"
        )

    def describe_solution(self, source: Threes, solution: Triples) -> str:
        """Return the sums."""
        return ", ".join(" + ".join(str(source.numbers[i]) for i in triple) for triple in solution)

    def draw(self, axes: Axes, source: Threes, solution: Triples | None) -> None:
        """Draw the numbers as bars, coloured by triple."""
        from optpart.applications.reductions.picture import draw_numbers

        group = None
        if solution is not None:
            of = {i: t for t, triple in enumerate(solution) for i in triple}
            group = [of[i] for i in range(len(source.numbers))]
        draw_numbers(axes, source.numbers, group)
        axes.set_xlabel("number")


def critical_bound(triples: int) -> int:
    """Return a bound at which random numbers are expected to have about one solution.

    There are ``(3m)! / (6^m m!)`` ways to split them. The sum of three numbers that are uniform
    between ``B/4`` and ``B/2`` has a standard deviation of ``B/8``, so it is ``B`` with probability
    about ``8 / (√(2π) B)``; the last triple fits if the others do.
    """
    log_ways = math.lgamma(3 * triples + 1) - triples * math.log(6) - math.lgamma(triples + 1)
    return max(24, round(8 / math.sqrt(2 * math.pi) * math.exp(log_ways / max(1, triples - 1))))


def random_threes(triples: int, bound: int, rng: np.random.Generator) -> Threes:
    """Draw ``3·triples`` numbers between a quarter and a half of ``bound``, of mean ``bound/3``."""
    low, high = bound // 4 + 1, (bound - 1) // 2
    numbers = rng.integers(low, high, size=3 * triples, endpoint=True).tolist()
    while (missing := triples * bound - sum(numbers)) != 0:
        i, step = int(rng.integers(len(numbers))), 1 if missing > 0 else -1
        if low <= numbers[i] + step <= high:
            numbers[i] += step
    return Threes(tuple(numbers))


THREE_PARTITION = ThreePartition()

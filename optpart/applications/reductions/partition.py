"""PARTITION, or P2||Cmax → TF.

M. R. Garey, D. S. Johnson, Computers and Intractability (1979), SP12; R. M. Karp (1972): do some of
the given positive whole numbers sum to half of the total? As run times on two equal devices, they
can end at half of the total if and only if they do. So TF is NP-hard even without edges and on two
devices, but only in the ordinary sense: a table of all sums gives the answer in time polynomial in
the numbers themselves (:func:`optpart.applications.reductions.special_cases.halves`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from optpart.applications.reductions.base import Question, Reduction, one_after_the_other, wholes
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Half = frozenset[int]


@dataclass(frozen=True)
class Numbers:
    """Positive whole numbers."""

    numbers: tuple[int, ...]


class Partition(Reduction[Numbers, Half]):
    """Numbers become run times; the two sides become two devices."""

    name = "partition"
    title = "PARTITION, P2||Cmax"
    reference = "Karp 1972; Garey & Johnson 1979, SP12"
    reading = "TF is NP-hard without edges and on two equal devices"
    size = 10
    keys = frozenset({"numbers"})

    def read(self, document: Mapping[str, Any]) -> Numbers:
        """Read a list of positive whole numbers."""
        return Numbers(wholes(document["numbers"], "numbers"))

    def document(self, source: Numbers) -> dict[str, Any]:
        """Return the list."""
        return {"problem": self.name, "numbers": list(source.numbers)}

    def random(self, size: int, rng: np.random.Generator) -> Numbers:
        """Draw numbers of even sum and slightly fewer than ``size`` bits: both answers occur."""
        return random_numbers(size, min(max(3, size - 2), 36), rng)

    def to_tf(self, source: Numbers) -> Question:
        """Build a vertex per number and two devices of speed 1."""
        instance = Instance(
            run_times(source.numbers),
            Cluster.uniform(2),
            name=f"partition-{len(source.numbers)}",
            source="PARTITION (Garey & Johnson SP12)",
        )
        return Question(instance, Fraction(sum(source.numbers), 2))

    def forth(self, source: Numbers, solution: Half) -> Schedule:
        """Run the half with the first number on the first device."""
        side = 0 in solution
        placement = [int((i in solution) != side) for i in range(len(source.numbers))]
        return one_after_the_other(self.to_tf(source), placement)

    def back(self, source: Numbers, schedule: Schedule) -> Half:
        """Return the numbers on the first device."""
        return frozenset(i for i, d in enumerate(schedule.placement.tolist()) if d == 0)

    def check(self, source: Numbers, solution: Half) -> str:
        """Check that both sides have the same sum."""
        if not solution <= set(range(len(source.numbers))):
            return "a number that does not exist"
        one = sum(source.numbers[i] for i in solution)
        other = sum(source.numbers) - one
        return "" if one == other else f"the sides sum to {one} and {other}"

    def describe(self, source: Numbers) -> str:
        """Return the numbers."""
        total = sum(source.numbers)
        half = Fraction(total, 2)
        return (
            f"{len(source.numbers)} numbers of sum {total}: {listed(source.numbers)}; do some of "
            f"them sum to {half}?"
        )

    def describe_solution(self, source: Numbers, solution: Half) -> str:
        """Return both sides of the equation."""
        sides: tuple[list[str], list[str]] = [], []
        for i, number in enumerate(source.numbers):
            sides[i not in solution].append(str(number))
        return " = ".join(" + ".join(side) for side in sides)

    def draw(self, axes: Axes, source: Numbers, solution: Half | None) -> None:
        """Draw the numbers as bars, coloured by side."""
        from optpart.applications.reductions.picture import draw_numbers

        side = None if solution is None else [i not in solution for i in range(len(source.numbers))]
        draw_numbers(axes, source.numbers, side)
        axes.set_xlabel("number")


def random_numbers(count: int, bits: int, rng: np.random.Generator) -> Numbers:
    """Draw ``count`` numbers of up to ``bits`` bits whose sum is even."""
    while True:
        numbers = tuple(int(x) for x in rng.integers(1, 2**bits, size=count, endpoint=True))
        if sum(numbers) % 2 == 0:
            return Numbers(numbers)


def listed(numbers: Sequence[int], most: int = 16) -> str:
    """Return numbers as text; if there are many, only the first ones."""
    shown = " ".join(map(str, numbers[:most]))
    return shown if len(numbers) <= most else f"{shown} …"


def run_times(numbers: Sequence[int]) -> Any:
    """Return a graph of one vertex per number, without edges."""
    builder = GraphBuilder()
    for i, number in enumerate(numbers):
        builder.vertex(f"a{i}", number)
    return builder.build()


PARTITION = Partition()

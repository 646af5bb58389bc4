"""Bin packing → feasibility of TF under ``estimate`` memory.

M. R. Garey, D. S. Johnson, Computers and Intractability (1979), SR1: do items of given sizes fit
into a given number of bins of equal capacity? An item becomes a vertex that takes no time and has
the item's size as resident memory; a bin becomes a device with that capacity. All times are zero,
so every placement that fits has makespan 0: it is NP-hard to decide whether *any* placement exists.
Under ``estimate`` ([L] §4.1 (3)), a vertex without tensors counts only its resident memory. [L]
writes ``<`` for a device's capacity; this project, and so this reduction, uses ``≤``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from optpart.applications.reductions.base import (
    Question,
    Reduction,
    one_after_the_other,
    whole,
    wholes,
)
from optpart.applications.reductions.partition import listed
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.problem.model import Model
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bins = tuple[int, ...]


@dataclass(frozen=True)
class Items:
    """The sizes of the items, and the bins."""

    sizes: tuple[int, ...]
    capacity: int
    bins: int


class BinPacking(Reduction[Items, Bins]):
    """Items become vertices, bins become devices; all times are zero."""

    name = "bin-packing"
    title = "bin packing"
    reference = "Garey & Johnson 1979, SR1"
    reading = "even whether any placement fits the memory is NP-hard"
    size = 12
    keys = frozenset({"sizes", "capacity", "bins"})

    def read(self, document: Mapping[str, Any]) -> Items:
        """Read a list of sizes, a capacity and a number of bins."""
        return Items(
            wholes(document["sizes"], "sizes"),
            whole(document["capacity"], "capacity"),
            whole(document["bins"], "bins"),
        )

    def document(self, source: Items) -> dict[str, Any]:
        """Return sizes, capacity and bins."""
        return {
            "problem": self.name,
            "sizes": list(source.sizes),
            "capacity": source.capacity,
            "bins": source.bins,
        }

    def random(self, size: int, rng: np.random.Generator) -> Items:
        """Draw items, about three per bin, and a capacity that they almost fill."""
        sizes = tuple(int(x) for x in rng.integers(20, 60, size=size, endpoint=True))
        bins = max(2, size // 3)
        least = max(max(sizes), -(-sum(sizes) // bins))
        return Items(sizes, least + int(rng.integers(0, 3)), bins)

    def to_tf(self, source: Items) -> Question:
        """Build vertices that take memory but no time."""
        builder = GraphBuilder()
        for i, size in enumerate(source.sizes):
            builder.vertex(f"a{i}", 0, memory=size)
        instance = Instance(
            builder.build(),
            Cluster.uniform(source.bins, memory=source.capacity),
            Model(memory="estimate"),
            name=f"bin-packing-{len(source.sizes)}-{source.bins}",
            source="bin packing (Garey & Johnson SR1)",
        )
        return Question(instance, Fraction(0))

    def forth(self, source: Items, solution: Bins) -> Schedule:
        """Place each item on the device of its bin, at time 0."""
        return one_after_the_other(self.to_tf(source), solution)

    def back(self, source: Items, schedule: Schedule) -> Bins:
        """Return the device of each item."""
        return tuple(schedule.placement.tolist())

    def check(self, source: Items, solution: Bins) -> str:
        """Check that every item is in a bin and no bin is too full."""
        if len(solution) != len(source.sizes):
            return f"{len(solution)} bins given for {len(source.sizes)} items"
        held = [0] * source.bins
        for size, b in zip(source.sizes, solution, strict=True):
            if not 0 <= b < source.bins:
                return f"no bin {b}"
            held[b] += size
        for b, amount in enumerate(held):
            if amount > source.capacity:
                return f"bin {b} holds {amount} of {source.capacity}"
        return ""

    def describe(self, source: Items) -> str:
        """Return the sizes and the bins."""
        return (
            f"{len(source.sizes)} items of sizes {listed(source.sizes)}; do they fit "
            f"{source.bins} bins of {source.capacity}?"
        )

    def describe_solution(self, source: Items, solution: Bins) -> str:
        """Return the contents of each bin."""
        held: list[list[str]] = [[] for _ in range(source.bins)]
        for size, b in zip(source.sizes, solution, strict=True):
            held[b].append(str(size))
        return ", ".join(" + ".join(bin_) or "nothing" for bin_ in held)

    def draw(self, axes: Axes, source: Items, solution: Bins | None) -> None:
        """Draw the items as bars, coloured by bin."""
        from optpart.applications.reductions.picture import draw_numbers

        draw_numbers(axes, source.sizes, solution, limit=source.capacity)
        axes.set_xlabel("item")


BIN_PACKING = BinPacking()

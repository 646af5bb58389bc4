"""Unit tasks with unit communication delays on any number of processors → TF.

J. A. Hoogeveen, J. K. Lenstra, B. Veltman, Three, four, five, six, or the complexity of scheduling
with communication delays, Operations Research Letters 16 (1994): whether P∞|prec,p=1,c=1|Cmax has
a schedule of length at most 6 is NP-complete (and of length at most 5 polynomial). A task takes one
slot. If a task needs another on a different processor, it starts at least one slot after the other
has ended. The number of processors is unlimited. TF contains that problem: with as many devices as
tasks, c = s = 1, and one tensor per task whose size equals the bandwidth. No device is scarce here:
TF is hard because of communication alone.

This module has the embedding only, not the proof of Hoogeveen, Lenstra and Veltman.

Starts in TF need not be whole; rounding all of them down keeps a schedule of unit tasks and unit
delays valid.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optpart.applications.reductions.base import Question, Reduction, arcs, names, parallel, whole
from optpart.applications.reductions.single_execution_time import acyclic, by_slot
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Placed(NamedTuple):
    """The processor and slot of a task."""

    processor: int
    slot: int


Places = tuple[Placed, ...]


@dataclass(frozen=True)
class Tasks:
    """Unit tasks, pairs (earlier, later) where the later needs the earlier, and the limit."""

    names: tuple[str, ...]
    order: tuple[tuple[int, int], ...]
    limit: int = 6

    def __post_init__(self) -> None:
        acyclic(self.names, self.order)


class UnitDelays(Reduction[Tasks, Places]):
    """Tasks become vertices, processors become devices, one per task."""

    name = "communication"
    title = "unit communication delays, P∞|prec,p=1,c=1|Cmax ≤ 6"
    reference = "Hoogeveen, Lenstra & Veltman 1994"
    reading = "TF is NP-hard with a device for every vertex: for its communication alone"
    size = 10
    keys = frozenset({"tasks", "order", "limit"})

    def read(self, document: Mapping[str, Any]) -> Tasks:
        """Read names, pairs of names and the limit."""
        known = names(document["tasks"], "tasks")
        order = arcs(document["order"], "order", known)
        return Tasks(known, order, whole(document["limit"], "limit"))

    def document(self, source: Tasks) -> dict[str, Any]:
        """Return names, pairs of names and the limit."""
        return {
            "problem": self.name,
            "tasks": list(source.names),
            "order": [[source.names[u], source.names[v]] for u, v in source.order],
            "limit": source.limit,
        }

    def random(self, size: int, rng: np.random.Generator) -> Tasks:
        """Draw tasks in four layers, each with one or two inputs from the layer before."""
        layer = sorted(int(x) for x in rng.integers(0, 4, size=size))
        order = []
        for v, at in enumerate(layer):
            before = [u for u in range(size) if layer[u] == at - 1]
            count = min(len(before), int(rng.integers(1, 3)))
            order += [(int(u), v) for u in sorted(rng.permutation(before)[:count].tolist())]
        return Tasks(tuple(f"t{v}" for v in range(size)), tuple(order), 6)

    def to_tf(self, source: Tasks) -> Question:
        """Build a vertex per task, with one tensor for its successors, and as many devices."""
        builder = GraphBuilder()
        for name in source.names:
            builder.vertex(name, 1, outputs=[1])
        for u, v in source.order:
            builder.edge(source.names[u], source.names[v])
        instance = Instance(
            builder.build(),
            Cluster.uniform(len(source.names), speed=1, bandwidth=1),
            name=f"communication-{len(source.names)}",
            source="P∞|prec,p=1,c=1|Cmax (Hoogeveen, Lenstra & Veltman 1994)",
        )
        return Question(instance, Fraction(source.limit))

    def forth(self, source: Tasks, solution: Places) -> Schedule:
        """Run each task on its processor in its slot."""
        used = {processor: d for d, processor in enumerate(sorted({p for p, _ in solution}))}
        return parallel(
            self.to_tf(source),
            [used[place.processor] for place in solution],
            [Fraction(place.slot) for place in solution],
        )

    def back(self, source: Tasks, schedule: Schedule) -> Places:
        """Round the starts down."""
        starts = schedule.start.fractions()
        return tuple(
            Placed(d, math.floor(start))
            for d, start in zip(schedule.placement.tolist(), starts, strict=True)
        )

    def check(self, source: Tasks, solution: Places) -> str:
        """Check slots, processors and delays."""
        known = source.names
        if len(solution) != len(known):
            return f"{len(solution)} places for {len(known)} tasks"
        if len(set(solution)) < len(solution):
            return "two tasks on one processor in one slot"
        for name, place in zip(known, solution, strict=True):
            if not 0 <= place.slot < source.limit:
                return f"{name} is in slot {place.slot} of {source.limit}"
        for u, v in source.order:
            apart = solution[u].processor != solution[v].processor
            if solution[v].slot < solution[u].slot + 1 + apart:
                return f"{known[v]} is too early after {known[u]}"
        return ""

    def describe(self, source: Tasks) -> str:
        """Return the numbers of tasks, pairs and slots."""
        return (
            f"{len(source.names)} unit tasks, {len(source.order)} pairs with a delay of 1 unless "
            f"on one processor, any number of processors; do {source.limit} slots suffice?"
        )

    def describe_solution(self, source: Tasks, solution: Places) -> str:
        """Return the tasks of each slot, with their processors."""
        known = [
            f"{name}@{place.processor}" for name, place in zip(source.names, solution, strict=True)
        ]
        return by_slot(known, [place.slot for place in solution])

    def draw(self, axes: Axes, source: Tasks, solution: Places | None) -> None:
        """Draw the tasks, from left to right by slot or by depth, coloured by processor."""
        from optpart.applications.reductions.picture import draw_order
        from optpart.applications.reductions.single_execution_time import levels

        if solution is None:
            axes.set_xlabel("depth")
            draw_order(axes, source.names, source.order, levels(len(source.names), source.order))
            return
        axes.set_xlabel("slot")
        slots = [place.slot for place in solution]
        draw_order(axes, source.names, source.order, slots, [place.processor for place in solution])


UNIT_DELAYS = UnitDelays()

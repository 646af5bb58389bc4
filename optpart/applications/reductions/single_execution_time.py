"""Single execution time scheduling → TF, exactly as in [M] lemma 2.2.

J. D. Ullman, NP-complete scheduling problems, Journal of Computer and System Sciences 10 (1975):
given jobs that take one time slot each, a partial order ≺ on them, k′ processors and a limit, is
there a ``g: jobs → {0, …, limit − 1}`` with ``g(v) < g(w)`` if ``v ≺ w``, and at most k′ jobs in
each slot? [M] builds a vertex per job, an edge wherever ``v ≺ w``, k′ devices of speed 1, and
c = 1.

Where the text of [M] is not precise, it is read as follows.

* "``t_i = B_ij = 0``, i.e., we ignore network communication": a time of 0/0 is undefined. Taken
  literally, a bandwidth of 0 is a missing link, and the lemma is false: one job before two others
  ends after 2 slots on two processors, but without a link all three vertices must share a device.
  So tensors have size 0, bandwidth is infinite, and everything crosses in no time.
* "an edge iff ``v₁ ≺ v₂``": ≺ is transitive, so pairs that follow from others become edges too.
* ``max f(v) < t_max`` compares the *starts* of the jobs with the limit. Jobs take one slot and
  start in whole slots, so this means makespan ≤ t_max, which is the question here. The artificial
  sink of [M] §2 is different: its start is the makespan itself, and ``<`` would exclude the last
  slot.
* ``f`` maps to ℕ. Here starts are rational; rounding all of them down keeps a schedule of
  unit jobs valid, since two starts that are at least 1 apart still are.
* "``< C_j``" in equation 2: edges carry nothing, so any positive capacity would do; none is set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from optpart.applications.reductions.base import Question, Reduction, arcs, names, parallel, whole
from optpart.base.errors import InputError
from optpart.problem.cluster import Cluster
from optpart.problem.graph import GraphBuilder
from optpart.problem.instance import Instance
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Slots = tuple[int, ...]


@dataclass(frozen=True)
class Jobs:
    """Jobs that take one slot each.

    Attributes
    ----------
    names : tuple of str
    order : tuple of (int, int)
        Pairs of jobs, earlier before later; ≺ is their transitive closure.
    processors, limit : int
    """

    names: tuple[str, ...]
    order: tuple[tuple[int, int], ...]
    processors: int
    limit: int

    def __post_init__(self) -> None:
        acyclic(self.names, self.order)

    @property
    def before(self) -> list[tuple[int, int]]:
        """All pairs of ≺."""
        graph: nx.DiGraph[int] = nx.DiGraph(self.order)
        return sorted(nx.transitive_closure_dag(graph).edges)


def acyclic(known: Sequence[str], order: Sequence[tuple[int, int]]) -> None:
    """Raise :class:`InputError` if the pairs form a cycle."""
    graph: nx.DiGraph[int] = nx.DiGraph(order)
    if not nx.is_directed_acyclic_graph(graph):
        cycle = " ≺ ".join(known[u] for u, *_ in nx.find_cycle(graph))
        raise InputError("order", f"cycle {cycle} ≺ …", "remove one of its pairs")


class SingleExecutionTime(Reduction[Jobs, Slots]):
    """Jobs become vertices; a slot is a unit of time."""

    name = "scheduling"
    title = "single execution time scheduling, P|prec,p=1|Cmax"
    reference = "Ullman 1975; [M] lemma 2.2"
    reading = "t = B = 0 is read as no time to cross; max f < limit as makespan ≤ limit"
    size = 10
    keys = frozenset({"jobs", "order", "processors", "limit"})
    colours = "never"

    def read(self, document: Mapping[str, Any]) -> Jobs:
        """Read names, pairs of names and two numbers."""
        known = names(document["jobs"], "jobs")
        return Jobs(
            known,
            arcs(document["order"], "order", known),
            whole(document["processors"], "processors"),
            whole(document["limit"], "limit"),
        )

    def document(self, source: Jobs) -> dict[str, Any]:
        """Return names, pairs of names and two numbers."""
        return {
            "problem": self.name,
            "jobs": list(source.names),
            "order": [[source.names[u], source.names[v]] for u, v in source.order],
            "processors": source.processors,
            "limit": source.limit,
        }

    def random(self, size: int, rng: np.random.Generator) -> Jobs:
        """Draw a sparse order and the least limit that load and longest chain allow."""
        processors = 2 + size // 8
        chance = 2 / max(2, size - 1)
        order = [(u, v) for v in range(size) for u in range(v) if rng.random() < chance]
        level = levels(size, order)
        limit = max(-(-size // processors), max(level) + 1)
        return Jobs(tuple(f"j{v}" for v in range(size)), tuple(order), processors, limit)

    def to_tf(self, source: Jobs) -> Question:
        """Build G, k, c, s and t as in the lemma."""
        builder = GraphBuilder()
        for name in source.names:
            builder.vertex(name, 1, outputs=[0])
        for u, v in source.before:
            builder.edge(source.names[u], source.names[v])
        instance = Instance(
            builder.build(),
            Cluster.uniform(source.processors, speed=1, bandwidth=None),
            name=f"scheduling-{len(source.names)}-{source.processors}",
            source="single execution time scheduling, [M] lemma 2.2",
        )
        return Question(instance, Fraction(source.limit))

    def forth(self, source: Jobs, solution: Slots) -> Schedule:
        """Run the jobs of a slot on the first devices."""
        taken = [0] * source.limit
        placement = []
        for slot in solution:
            placement.append(taken[slot])
            taken[slot] += 1
        return parallel(self.to_tf(source), placement, [Fraction(slot) for slot in solution])

    def back(self, source: Jobs, schedule: Schedule) -> Slots:
        """Round the starts down."""
        return tuple(math.floor(start) for start in schedule.start.fractions())

    def check(self, source: Jobs, solution: Slots) -> str:
        """Check the three properties of [M] §2.1, in their order."""
        known = source.names
        if len(solution) != len(known):
            return f"{len(solution)} slots for {len(known)} jobs"
        for u, v in source.order:
            if solution[u] >= solution[v]:
                return f"{known[u]} is not before {known[v]}"
        for name, slot in zip(known, solution, strict=True):
            if not 0 <= slot < source.limit:
                return f"{name} is in slot {slot} of {source.limit}"
        for slot in set(solution):
            if solution.count(slot) > source.processors:
                return f"{solution.count(slot)} jobs in slot {slot}"
        return ""

    def describe(self, source: Jobs) -> str:
        """Return the numbers of jobs, pairs, processors and slots."""
        return (
            f"{len(source.names)} jobs of one slot each, {len(source.order)} ordered pairs, "
            f"{source.processors} processors; do {source.limit} slots suffice?"
        )

    def added(self, source: Jobs) -> str:
        """Return how many edges follow from others."""
        more = len(source.before) - len(source.order)
        if not more:
            return ""
        follow = "1 edge follows" if more == 1 else f"{more} edges follow"
        return f"{follow} from the {len(source.order)} pairs (transitive closure)"

    def describe_solution(self, source: Jobs, solution: Slots) -> str:
        """Return the jobs of each slot."""
        return by_slot(source.names, solution)

    def draw(self, axes: Axes, source: Jobs, solution: Slots | None) -> None:
        """Draw the order, from left to right by slot or by depth."""
        from optpart.applications.reductions.picture import draw_order

        column = levels(len(source.names), source.order) if solution is None else list(solution)
        axes.set_xlabel("depth" if solution is None else "slot")
        draw_order(axes, source.names, source.order, column)


def levels(n: int, order: Sequence[tuple[int, int]]) -> list[int]:
    """Return the length of the longest chain of jobs before each job."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(order)
    level = [0] * n
    for v in nx.topological_sort(graph):
        for w in graph[v]:
            level[w] = max(level[w], level[v] + 1)
    return level


def by_slot(known: Sequence[str], slots: Sequence[int]) -> str:
    """Return the contents of every slot as text."""
    held = [
        " ".join(name for name, slot in zip(known, slots, strict=True) if slot == at)
        for at in range(max(slots) + 1)
    ]
    return " | ".join(slot or "–" for slot in held)


SINGLE_EXECUTION_TIME = SingleExecutionTime()

"""CLIQUE → TF, through unit jobs and a limit of three slots.

J. K. Lenstra, A. H. G. Rinnooy Kan, Complexity of scheduling under precedence constraints,
Operations Research 26 (1978): does a graph of ``n`` nodes and ``e`` edges have a clique of ``k``
nodes? Every node becomes a unit job, and every edge a unit job after those of its two ends. A
clique has ``l = k(k−1)/2`` edges. Three groups of filler jobs, each before all of the next, leave
``k`` processors free in the first slot, ``n − k + l`` in the second, and ``e − l`` in the third. In
a schedule of three slots, all slots are full. So ``k`` nodes run in the first slot and ``l`` edges
in the second, and only the ``k`` nodes of a clique have that many edges between them. Hence single
execution time scheduling, and with it TF by [M] lemma 2.2, is NP-hard even for a makespan of 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from optpart.applications.reductions.base import Question, Reduction, arcs, names, whole
from optpart.applications.reductions.single_execution_time import SINGLE_EXECUTION_TIME, Jobs
from optpart.base.errors import InputError
from optpart.solution.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Nodes = frozenset[int]


@dataclass(frozen=True)
class Network:
    """An undirected graph, and the size of the clique to find."""

    names: tuple[str, ...]
    edges: tuple[tuple[int, int], ...]
    size: int

    def __post_init__(self) -> None:
        if self.size > len(self.names):
            raise InputError(
                "size",
                f"{self.size} of {len(self.names)} nodes",
                "give at most that many",
            )
        found: set[frozenset[int]] = set()
        for e, (u, v) in enumerate(self.edges):
            if u == v or frozenset((u, v)) in found:
                raise InputError(f"edges[{e}]", "a loop or a duplicate", "join two nodes once")
            found.add(frozenset((u, v)))

    @property
    def within(self) -> int:
        """The number of edges in a clique of this size."""
        return self.size * (self.size - 1) // 2

    @property
    def plain_no(self) -> bool:
        """True if there are too few edges for any such clique."""
        return len(self.edges) < self.within

    @cached_property
    def jobs(self) -> Jobs:
        """Return the scheduling problem with the same answer: jobs of nodes, edges, fillers."""
        n, e = len(self.names), len(self.edges)
        if self.plain_no:  # too few edges to fill the slots; a trivial no
            return Jobs(("u", "v"), ((0, 1),), 1, 1)
        wanted = (self.size, n - self.size + self.within, e - self.within)
        processors = max(wanted) + 1
        fillers = [
            tuple(f"f{slot}.{i}" for i in range(processors - jobs))
            for slot, jobs in enumerate(wanted)
        ]
        known = [*self.names, *(f"{self.names[u]}-{self.names[v]}" for u, v in self.edges)]
        order = [(end, n + i) for i, ends in enumerate(self.edges) for end in ends]
        first = [n + e]
        for group in fillers:
            first.append(first[-1] + len(group))
        for slot in (0, 1):
            order += [
                (u, v)
                for u in range(first[slot], first[slot + 1])
                for v in range(first[slot + 1], first[slot + 2])
            ]
        return Jobs((*known, *fillers[0], *fillers[1], *fillers[2]), tuple(order), processors, 3)


class Clique(Reduction[Network, Nodes]):
    """Nodes and edges become unit jobs, and these become vertices."""

    name = "clique"
    title = "CLIQUE, by P|prec,p=1|Cmax ≤ 3"
    reference = "Lenstra & Rinnooy Kan 1978; Karp 1972"
    reading = "TF is NP-hard for a makespan of 3, with unit times and nothing to communicate"
    size = 6
    keys = frozenset({"nodes", "edges", "size"})
    colours = "never"

    def read(self, document: Mapping[str, Any]) -> Network:
        """Read names, pairs of names and a size."""
        known = names(document["nodes"], "nodes")
        for i, name in enumerate(known):
            if not name.isalnum():
                raise InputError(f"nodes[{i}]", repr(name), "use only letters and digits")
        return Network(
            known, arcs(document["edges"], "edges", known), whole(document["size"], "size")
        )

    def document(self, source: Network) -> dict[str, Any]:
        """Return names, pairs of names and a size."""
        return {
            "problem": self.name,
            "nodes": list(source.names),
            "edges": [[source.names[u], source.names[v]] for u, v in source.edges],
            "size": source.size,
        }

    def random(self, size: int, rng: np.random.Generator) -> Network:
        """Draw every edge with probability 0.6, and ask for a clique of half of the nodes."""
        pairs = tuple(pair for pair in combinations(range(size), 2) if rng.random() < 0.6)
        return Network(tuple(f"n{v}" for v in range(size)), pairs, max(1, (size + 1) // 2))

    def to_tf(self, source: Network) -> Question:
        """Build the scheduling problem, and TF from that."""
        return SINGLE_EXECUTION_TIME.to_tf(source.jobs)

    def forth(self, source: Network, solution: Nodes) -> Schedule:
        """Run the clique first, its edges and all other nodes second, all other edges third."""
        n, e = len(source.names), len(source.edges)
        slots = [0 if v in solution else 1 for v in range(n)]
        slots += [1 if set(ends) <= solution else 2 for ends in source.edges]
        slots += [int(name[1 : name.index(".")]) for name in source.jobs.names[n + e :]]
        return SINGLE_EXECUTION_TIME.forth(source.jobs, tuple(slots))

    def back(self, source: Network, schedule: Schedule) -> Nodes:
        """Return the nodes that run in the first slot."""
        slots = SINGLE_EXECUTION_TIME.back(source.jobs, schedule)
        return frozenset(v for v in range(len(source.names)) if slots[v] == 0)

    def check(self, source: Network, solution: Nodes) -> str:
        """Check the number of nodes, and that all are joined."""
        if len(solution) != source.size or not solution <= set(range(len(source.names))):
            return f"{len(solution)} nodes, not {source.size}"
        joined = {frozenset(ends) for ends in source.edges}
        for u, v in combinations(sorted(solution), 2):
            if frozenset((u, v)) not in joined:
                return f"{source.names[u]} and {source.names[v]} are not joined"
        return ""

    def describe(self, source: Network) -> str:
        """Return the numbers of nodes and edges, and the size."""
        return (
            f"a graph of {len(source.names)} nodes and {len(source.edges)} edges; does it have a "
            f"clique of {source.size} nodes?"
        )

    def describe_solution(self, source: Network, solution: Nodes) -> str:
        """Return the clique."""
        return " ".join(source.names[v] for v in sorted(solution))

    def draw(self, axes: Axes, source: Network, solution: Nodes | None) -> None:
        """Draw the graph on a circle, the clique in colour."""
        from optpart.applications.reductions.picture import draw_network

        draw_network(axes, source.names, source.edges, solution or frozenset())


CLIQUE = Clique()

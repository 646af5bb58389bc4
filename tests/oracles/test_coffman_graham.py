"""Tasks of equal length on two machines, any precedence, in polynomial time.

Labels in lexicographic order (E. G. Coffman, R. L. Graham, Optimal scheduling for two-processor
systems, Acta Informatica 1 (1972)) and, sharing nothing with them, largest matchings (M. Fujii,
T. Kasami, K. Ninomiya, Optimal sequencing of two equivalent processors, SIAM J. Appl. Math. 17
(1969)).
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from oracles.proving import prove
from oracles.unit_tasks import LENGTH, list_length, unit_tasks

Arcs = list[tuple[int, int]]


def random_dag(n: int, density: float, rng: np.random.Generator) -> Arcs:
    """Draw arcs to the next few vertices only, transitive ones among them."""
    return [(u, v) for u in range(n) for v in range(u + 1, min(n, u + 9)) if rng.random() < density]


def as_digraph(n: int, arcs: Arcs) -> nx.DiGraph[int]:
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(arcs)
    return graph


def coffman_graham(n: int, arcs: Arcs) -> int:
    """Label from the sinks: first whose successors' labels, falling, are the least word."""
    graph = nx.transitive_reduction(as_digraph(n, arcs))
    label: dict[int, int] = {}
    while len(label) < n:
        free = [v for v in range(n) if v not in label and all(w in label for w in graph[v])]
        v = min(free, key=lambda v: sorted((label[w] for w in graph[v]), reverse=True))
        label[v] = len(label) + 1
    return list_length(n, arcs, 2, [label[v] for v in range(n)])


def fujii_kasami_ninomiya(n: int, arcs: Arcs) -> int:
    """As many pairs run together as a largest matching of independent tasks has."""
    comparable = nx.transitive_closure_dag(as_digraph(n, arcs)).to_undirected()
    return n - len(nx.max_weight_matching(nx.complement(comparable), maxcardinality=True))


SIZES = [(6, 0.3), (7, 0.4), (7, 0.2), (12, 0.3), (25, 0.3), (40, 0.2), (60, 0.3), (100, 0.4)]


@pytest.mark.parametrize(("n", "density"), SIZES)
def test_two_machines(n: int, density: float) -> None:
    rng = np.random.default_rng([n, round(100 * density)])
    arcs = random_dag(n, density, rng)
    steps = coffman_graham(n, arcs)
    assert steps == fujii_kasami_ninomiya(n, arcs)
    instance = unit_tasks(n, arcs, 2, rng, f"two-machines-{n}")
    prove(instance, steps * LENGTH, "enumerate", "milp")


def test_both_algorithms_agree() -> None:
    rng = np.random.default_rng(0)
    for _ in range(150):
        n = int(rng.integers(1, 22))
        arcs = random_dag(n, float(rng.uniform(0.05, 0.6)), rng)
        assert coffman_graham(n, arcs) == fujii_kasami_ninomiya(n, arcs)

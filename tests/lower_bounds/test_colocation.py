"""Colocated vertices run one after another, and what follows them waits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.lower_bounds.colocation import colocation_bound
from optpart.testing.brute_force import optimum


def fan(backwards: bool = False) -> Instance:
    """Three colocated vertices of length 4, and one of length 2 that waits for all of them."""
    builder = GraphBuilder().vertex("w", 2)
    for v in "abc":
        builder.vertex(v, 4)
        builder.edge(*(("w", v) if backwards else (v, "w")), None)
    return Instance(builder.colocate(*"abc").build(), Cluster.uniform(3))


@pytest.mark.parametrize("backwards", [False, True])
def test_what_follows_a_group_starts_after_all_of_it(backwards: bool) -> None:
    assert colocation_bound(fan(backwards)) == 3 * 4 + 2


def test_groups_wait_for_each_other() -> None:
    """``b`` runs twice 5 after ``a`` has run once 3 and before it runs again."""
    builder = GraphBuilder()
    for name, length in (("a1", 3), ("a2", 3), ("b1", 5), ("b2", 5), ("end", 1)):
        builder.vertex(name, length)
    for source, target in (("a1", "b1"), ("a1", "b2"), ("b1", "a2"), ("b2", "a2"), ("a2", "end")):
        builder.edge(source, target, None)
    builder.colocate("a1", "a2").colocate("b1", "b2")
    instance = Instance(builder.build(), Cluster.uniform(9))
    assert colocation_bound(instance) == 3 + 10 + 3 + 1


def test_each_vertex_takes_its_least_time() -> None:
    graph = GraphBuilder().vertex("a").vertex("b").colocate("a", "b").build()
    instance = Instance(graph, Cluster.uniform(2), durations=[[2, 9], [7, 3]])
    assert colocation_bound(instance) == 2 + 3
    assert optimum(instance).makespan == 2 + 7  # type: ignore[union-attr]


def test_without_groups_it_is_the_longest_path() -> None:
    graph = GraphBuilder().vertex("a", 5).vertex("b", 2).vertex("c", 4).edge("a", "b", None)
    assert colocation_bound(Instance(graph.build(), Cluster.uniform(2))) == 5 + 2
    assert colocation_bound(Instance(GraphBuilder().build(), Cluster.uniform(2))) == 0


def test_without_a_device_there_is_no_schedule() -> None:
    graph = GraphBuilder().vertex("a").build()
    assert colocation_bound(Instance(graph, Cluster.uniform(1), durations=[[None]])) is None


def test_without_time_only_whole_groups_count() -> None:
    builder = GraphBuilder().vertex("v", 2)
    for name in "abcxyz":
        builder.vertex(name, 4)
        builder.edge(*((name, "v") if name in "abc" else ("v", name)), None)
    instance = Instance(builder.colocate(*"abc").colocate(*"xyz").build(), Cluster.uniform(3))
    assert colocation_bound(instance, 0.0) == 3 * 4 + 2 + 4
    assert colocation_bound(instance) == 3 * 4 + 2 + 3 * 4


@pytest.mark.parametrize("seed", range(12))
def test_heads_and_tails_are_those_of_all_sets_of_ancestors(seed: int) -> None:
    """The largest least head + run times + least time after them, as Carlier defines it."""
    rng = np.random.default_rng(seed)
    run = rng.integers(1, 9, 10).tolist()
    group = rng.integers(0, 3, 10).tolist()
    edges = [(v, w) for v, w in combinations(range(10), 2) if rng.random() < 0.25]
    builder = GraphBuilder()
    for v, length in enumerate(run):
        builder.vertex(str(v), length)
    for v, w in edges:
        builder.edge(str(v), str(w), None)
    members = [[str(v) for v in range(10) if group[v] == g] for g in range(3)]
    for names in members:
        builder.colocate(*names)
    instance = Instance(builder.build(), Cluster.uniform(3))

    head = heads(run, group, edges)
    tail = heads(run[::-1], group[::-1], [(9 - w, 9 - v) for v, w in edges])[::-1]
    wholes = [set(map(int, names)) for names in members if names]
    assert colocation_bound(instance) == max(largest(each, head, run, tail) for each in wholes)


def heads(run: list[int], group: list[int], edges: list[tuple[int, int]]) -> list[int]:
    """Heads of vertices in topological order."""
    head: list[int] = []
    for v in range(len(run)):
        after = {v: -run[v]}
        for w in range(v - 1, -1, -1):
            behind = [run[x] + after[x] for y, x in edges if y == w and x in after]
            after.update({w: max(behind)} if behind else {})
        before = [head[w] + run[w] for w in after if w != v]
        for g in range(3):
            of_group = {w for w in after if w != v and group[w] == g}
            before.append(largest(of_group, head, run, after))
        head.append(max(before, default=0))
    return head


def largest(jobs: set[int], head: Sequence[int], run: Sequence[int], after: Any) -> int:
    """Return the largest one-machine bound of any set of the jobs."""
    found = [0]
    for size in range(1, len(jobs) + 1):
        for some in combinations(jobs, size):
            ready, left = min(head[v] for v in some), min(after[v] for v in some)
            found.append(ready + sum(run[v] for v in some) + left)
    return max(found)

"""A placement is contiguous if no path leaves a device and comes back to it."""

from __future__ import annotations

from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest

from optpart import Cluster, GraphBuilder, Instance
from optpart.solution.contiguity import first_violation, is_contiguous
from optpart.testing.draw import random_instance


def instance_of(edges: str, devices: int = 3) -> Instance:
    graph = GraphBuilder()
    for name in sorted(set(edges) - {" "}):
        graph.vertex(name, 1, outputs=[1])
    for source, target in edges.split():
        graph.edge(source, target)
    return Instance(graph.build(), Cluster.uniform(devices, bandwidth=1))


def where(placement: str) -> np.ndarray:
    return np.array([int(d) for d in placement], dtype=np.int32)


CHAIN = instance_of("ab bc cd")


@pytest.mark.parametrize(
    ("placement", "violation"),
    [
        ("0000", ""),
        ("0011", ""),
        ("2110", ""),
        ("0100", "the path a → b → c leaves d0 and comes back to it"),
        ("0120", "the path a → b → c → d leaves d0 and comes back to it"),
        ("0101", "the path a → b → c leaves d0 and comes back to it"),
    ],
)
def test_a_path_that_returns_is_named(placement: str, violation: str) -> None:
    assert first_violation(CHAIN, where(placement)) == violation
    assert is_contiguous(CHAIN, where(placement)) == (not violation)


def test_two_blocks_may_feed_each_other() -> None:
    """a and d on d0 feed b and c on d1 in opposite directions: no path returns to either."""
    crossed = instance_of("ab cd", 2)
    assert is_contiguous(crossed, where("0110"))
    assert first_violation(crossed, where("0110"), [0, 1]) == (
        "the edge from c to d goes from d1 back to d0"
    )


@pytest.mark.parametrize(
    ("placement", "order", "violation"),
    [
        ("0011", [0, 1], ""),
        ("0011", [0, 2, 1], ""),
        ("0000", [1, 0], ""),
        ("0011", [1, 0], "the edge from b to c goes from d0 back to d1"),
        ("0012", [0, 1], "d is on d2, which is not in the order of devices"),
    ],
)
def test_an_order_of_devices(placement: str, order: list[int], violation: str) -> None:
    assert first_violation(CHAIN, where(placement), order) == violation


def test_long_paths_are_abridged() -> None:
    names = "abcdefghijkl"
    long = instance_of(" ".join(a + b for a, b in pairwise(names)))
    assert first_violation(long, where("0" + 10 * "1" + "0")) == (
        "the path a → b → c → d → … → i → j → k → l leaves d0 and comes back to it"
    )


def test_agrees_with_the_definition_by_all_paths() -> None:
    rng = np.random.default_rng(4)
    seen = {True: 0, False: 0}
    for _ in range(60):
        instance = random_instance(rng, 5, 2)
        if instance.devices < 2:
            continue
        graph = nx.DiGraph(
            list(zip(instance.graph.edge_source, instance.graph.edge_target, strict=True))
        )
        for devices in product(range(2), repeat=instance.vertices):
            returns = any(
                devices[path[0]] == devices[path[-1]] and len({devices[v] for v in path}) > 1
                for u, w in product(graph, repeat=2)
                for path in nx.all_simple_paths(graph, u, w)
            )
            placement = np.array(devices, dtype=np.int32)
            assert is_contiguous(instance, placement) == (not returns)
            seen[returns] += 1
            backward = any(devices[u] > devices[v] for u, v in graph.edges)
            assert is_contiguous(instance, placement, [0, 1]) == (not backward)
            if not backward:
                assert not returns
    assert min(seen.values()) > 100
